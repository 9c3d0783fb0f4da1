"""SST-5, by the column names and label codes of the Hugging Face data set SetFit/sst5."""

from __future__ import annotations

from isoviz.tasks.protocol import Task

TASKS = (
    Task(
        slug="sst5",
        title="SST-5",
        description="How positive is this sentence of a film review, in five steps?",
        columns=("text",),
        label_names=("very negative", "negative", "neutral", "positive", "very positive"),
        metrics=("accuracy", "macro-f1"),
        source="Socher et al. 2013",
        cites=("socher2013recursive",),
        licence="No licence given; asks for a citation.",
        hub=("SetFit/sst5", "default"),
    ),
)

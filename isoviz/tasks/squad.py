"""SQuAD 1.1, by the column names of the Hugging Face data set rajpurkar/squad."""

from __future__ import annotations

from isoviz.tasks.protocol import Task

TASKS = (
    Task(
        slug="squad",
        title="SQuAD 1.1",
        description="Which stretch of this paragraph answers the question?",
        columns=("question", "context"),
        # Rudman & Eickhoff 2024 print both and choose their checkpoint by exact match
        metrics=("exact_match", "f1"),
        kind="span",
        label="answers",
        source="Rajpurkar et al. 2016",
        cites=("rajpurkar2016squad",),
        licence="CC BY-SA 4.0.",
        hub=("rajpurkar/squad", "plain_text"),
    ),
)

"""GLUE tasks of the papers, by the column names of the Hugging Face data set nyu-mll/glue."""

from __future__ import annotations

from isoviz.tasks.protocol import Task

TASKS = (
    Task(
        slug="glue/cola",
        title="CoLA",
        description="Is this English sentence acceptable? From published linguistics works.",
        columns=("sentence",),
        label_names=("unacceptable", "acceptable"),
        metrics=("matthews", "accuracy"),
        primary="matthews",
        source="Warstadt et al. 2019, GLUE",
        licence="No licence; excerpts of published works, research use expected to be fair use.",
        hub=("nyu-mll/glue", "cola"),
    ),
    Task(
        slug="glue/mrpc",
        title="MRPC",
        description="Do these two news sentences say the same?",
        columns=("sentence1", "sentence2"),
        label_names=("not_equivalent", "equivalent"),
        # accuracy in papers 000-002, F1 in 003: both are kept
        metrics=("accuracy", "f1"),
        primary="accuracy",
        source="Dolan & Brockett 2005, GLUE",
        licence="Microsoft Research Paraphrase Corpus agreement.",
        hub=("nyu-mll/glue", "mrpc"),
    ),
    Task(
        slug="glue/stsb",
        title="STS-B",
        description="How alike are these two sentences, from 0 to 5?",
        columns=("sentence1", "sentence2"),
        label_names=(),
        metrics=("pearson", "spearman"),
        primary="pearson",
        source="Cer et al. 2017, GLUE",
        licence="CC BY-SA 4.0",
        hub=("nyu-mll/glue", "stsb"),
        kind="regression",
    ),
)

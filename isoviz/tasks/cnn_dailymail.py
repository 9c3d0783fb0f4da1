"""CNN / Daily Mail summaries, by the column names of the Hugging Face data set abisee/cnn_dailymail, version 3.0.0."""

from __future__ import annotations

from isoviz.tasks.protocol import Task

TASKS = (
    Task(
        slug="cnn_dailymail",
        title="CNN / Daily Mail",
        description="Summarise a news article in a few sentences.",
        columns=("source", "target"),
        places=(("source", "article"), ("target", "highlights")),
        # the R-L of Ding et al. 2022 is rougeL by its size, not rougeLsum
        metrics=("rouge1", "rouge2", "rougeL", "rougeLsum"),
        kind="seq2seq",
        guess="first three sentences",
        source="Hermann et al. 2015, See et al. 2017",
        cites=("hermann2015teaching", "see2017get"),
        licence="No licence given for the texts, which belong to CNN and the Daily Mail.",
        hub=("abisee/cnn_dailymail", "3.0.0"),
    ),
)

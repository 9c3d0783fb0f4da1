"""Pairs of sentences with a score, for embedding models: the rows of the regression tasks, each sentence with its own vector."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from isoviz.tasks import demo, glue
from isoviz.tasks.kinds import Embedding
from isoviz.tasks.protocol import Task


def _embedded(tasks: tuple[Task, ...], of: str, **changes: Any) -> Task:
    return replace(
        next(task for task in tasks if task.slug == of),
        kind=Embedding.slug,
        metrics=Embedding.metrics,
        scale=(0.0, 5.0),
        **changes,
    )


TASKS = (
    _embedded(
        demo.TASKS,
        "demo/similarity",
        slug="demo/sts",
        rows="demo/similarity",
        title="Sentence embeddings (demo)",
        description="One vector per sentence, close in meaning as the cosine says. The sentences and scores are those of demo/similarity.",
    ),
    _embedded(
        glue.TASKS,
        "glue/stsb",
        slug="stsb",
        title="STS-B, embeddings",
        description="One vector per sentence: is the cosine of two high where people find them similar?",
    ),
)

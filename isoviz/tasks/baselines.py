"""Baselines for a run's primary metric: simple guesses, and for generated tasks what was recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from isoviz.demo import baselines, mean
from isoviz.tasks import metrics
from isoviz.tasks.protocol import Task

if TYPE_CHECKING:
    import pandas as pd


def reference_values(task: Task, simple: Mapping[str, float | None]) -> dict[str, float | None]:
    """Name → value of the primary metric: the task's simple guess; for generated tasks also `bag_of_words`, `random_weights`.

    The recorded ones hold for the task's full training set; `isoviz.demo.baselines` says what was recorded.

    Args:
        simple: the metrics of the task's simple guess (`guess`), or nothing.
    """
    values_by_name = {task.simple_guess: simple[task.primary]} if task.primary in simple else {}
    if task.generated:
        values = baselines(task.slug)
        values_by_name |= {name: mean(values[name]) for name in ("bag_of_words", "random_weights") if name in values}
    return values_by_name


def guess(task: Task, train: pd.DataFrame, validation: pd.DataFrame) -> dict[str, float | None]:
    """The task's metrics of its simple guess on validation rows: what a model must beat to have learned anything.

    `majority`: the most frequent class of train. `mean`: the mean label of train (its correlations are undefined). `whole
    context`: the context as the answer. `source`: the source text unchanged. `first three sentences`: of the source.

    Raises:
        ValueError: a guess that is none of these.
    """
    guesses = task.rules.simple_guess(task, train, validation)
    if guesses is None:
        return {}
    return metrics.compute(task.metrics, validation[task.reference].tolist(), guesses, task.kind)

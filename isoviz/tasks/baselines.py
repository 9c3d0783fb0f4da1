"""What a run's primary metric should be held against: simple guesses, and for generated tasks what was recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from isoviz.tasks import metrics
from isoviz.tasks.protocol import Task

if TYPE_CHECKING:
    import pandas as pd


def of(task: Task, majority: Mapping[str, float | None]) -> dict[str, float | None]:
    """Name → value of the primary metric: `majority`; for generated tasks also `bag_of_words` and `random_weights`.

    The recorded ones hold for the task's full training set; `isoviz.demo.baselines` says how each was recorded.
    """
    found = {"majority": majority[task.primary]} if task.primary in majority else {}
    if task.generated:
        from isoviz.demo import baselines as recorded

        values = recorded.baselines(task.slug)
        found |= {name: recorded.mean(values[name]) for name in ("bag_of_words", "random_weights") if name in values}
    return found


def guess(task: Task, train: pd.DataFrame, validation: pd.DataFrame) -> dict[str, float | None]:
    """The metrics of the best guess that reads no text; {} where there is none worth the name."""
    if task.kind == "classification":
        return metrics.majority(task.metrics, train["label"].to_numpy(), validation["label"].to_numpy())
    if task.kind == "regression":
        mean = np.full(len(validation), train["label"].mean())
        return metrics.compute(task.metrics, validation["label"].to_numpy(), mean, kind="regression")
    return {}

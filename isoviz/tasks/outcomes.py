"""What a run is held against: simple guesses, whether its predictions collapsed, and the rows that went wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from isoviz.demo import baselines, mean
from isoviz.tasks import metrics
from isoviz.tasks.protocol import Task

if TYPE_CHECKING:
    import pandas as pd


def collapse(task: Task, rows: pd.DataFrame, predictions: Sequence[Any]) -> str | None:
    """Why predictions count as collapsed: they do not depend on the row, or do no better than chance (`at_chance`).

    Numbers count as one where they spread less than `CONSTANT` of the labels' own spread: rounding in half precision does not
    make a constant vary. Where all right answers are equal (a validation split with one class, a single row), a constant
    prediction says nothing about the model: the result is None, and `isoviz.tasks.report.score_notes` says so.

    Args:
        rows: checked rows of the task, as in `TaskData`.
        predictions: class codes, numbers or texts (spans, seq2seq), one per row.
    """
    if one_answer(task, rows):
        return None
    return task.rules.constant(rows, predictions)


def one_answer(task: Task, rows: pd.DataFrame) -> bool:
    """Whether the right answers of all rows are equal."""
    return len({str(answer) for answer in rows[task.reference]}) <= 1


def errors(
    task: Task,
    rows: pd.DataFrame,
    predictions: Sequence[Any] | np.ndarray,
    confidence: np.ndarray | None = None,
) -> pd.DataFrame:
    """One line per row, the worst first, for people to read.

    Args:
        rows: checked rows of the task, as in `TaskData`.
        predictions: class codes, numbers or texts (spans, seq2seq), one per row.
        confidence: (n,) if known.

    Returns:
        `row` (number in `rows`, from 1), the text columns, `label`, `prediction` (names for classes; all right answers
        joined for spans), and per kind: `correct` (classification), `residual` (regression), `correct` and `f1` (span),
        for seq2seq neither. Then `confidence` if given. Wrong and confident ones first, large residuals, low F1.

    Raises:
        ValueError: another number of predictions than of rows.
    """
    import pandas as pd

    if len(predictions) != len(rows):
        raise ValueError(f"{len(rows)} rows but {len(predictions)} predictions")
    table: dict[str, Any] = {"row": np.arange(1, len(rows) + 1)}
    table |= {column: rows[column].to_numpy() for column in task.columns}
    compared, badness = task.rules.errors(task, rows, predictions, confidence)
    table |= compared
    if confidence is not None:
        table["confidence"] = np.asarray(confidence, dtype=np.float64)
    order = np.argsort(-np.nan_to_num(badness, nan=np.inf), kind="stable")
    return pd.DataFrame(table).iloc[order].reset_index(drop=True)


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

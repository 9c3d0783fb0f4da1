"""After a run: which classes are taken for which, how far numbers are off, and the rows that went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from isoviz.tasks.chance import AT_CHANCE, CORRELATIONS, at_chance
from isoviz.tasks.metrics import compute, confusion_counts
from isoviz.tasks.protocol import Task
from isoviz.tasks.text_metrics import exact_match, token_f1

if TYPE_CHECKING:
    import pandas as pd


CONSTANT = 1e-3
"""Numbers that spread less than this share of the labels' spread are one number."""


@dataclass(frozen=True)
class Confusion:
    """Counts of true classes (rows) against predicted classes (columns), both in the order of `names`."""

    names: tuple[str, ...]
    counts: np.ndarray


def confusion(task: Task, labels: np.ndarray, predictions: np.ndarray) -> Confusion:
    """(k, k) int64 counts of n class codes; `ValueError` for a task without classes."""
    if task.kind != "classification":
        raise ValueError(f"'{task.slug}' has no classes")
    return Confusion(task.label_names, confusion_counts(labels, predictions, len(task.label_names)))


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
    if task.kind == "classification":
        return "predicts one class" if len(set(predictions)) == 1 else _chance(task, rows, predictions)
    if task.kind == "regression":
        spread = np.ptp(np.asarray(predictions, dtype=np.float64))
        constant = spread <= CONSTANT * np.ptp(rows["label"].to_numpy())
        return "predicts one number" if constant else _chance(task, rows, predictions)
    texts = {text.strip() for text in predictions}
    if len(texts) > 1:
        return None
    if task.kind == "span":
        return "answers nothing" if texts == {""} else "gives every question the same answer"
    return "writes nothing" if texts == {""} else "writes the same text for every row"


def _chance(task: Task, rows: pd.DataFrame, predictions: Sequence[Any]) -> str | None:
    name = CORRELATIONS[task.kind]
    score = compute([name], rows["label"].to_numpy(), predictions, task.kind)[name]
    return AT_CHANCE if at_chance(score, len(rows)) else None


def one_answer(task: Task, rows: pd.DataFrame) -> bool:
    """Whether the right answers of all rows are equal."""
    return len({str(answer) for answer in rows[task.reference]}) <= 1


def residuals(labels: np.ndarray, predictions: np.ndarray) -> pd.DataFrame:
    """Columns `true`, `predicted` and `residual` (predicted − true) of n numbers, in their order."""
    import pandas as pd

    true, predicted = np.asarray(labels, dtype=np.float64), np.asarray(predictions, dtype=np.float64)
    return pd.DataFrame({"true": true, "predicted": predicted, "residual": predicted - true})


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
    badness = np.zeros(len(rows))
    if task.kind == "classification":
        labels, codes = rows["label"].to_numpy(), np.asarray(predictions)
        table["label"] = [task.label_names[code] for code in labels]
        table["prediction"] = [task.label_names[code] for code in codes]
        table["correct"] = labels == codes
        badness = (labels != codes).astype(np.float64)
        if confidence is not None:  # wrong and sure first, right and sure last
            badness += np.where(labels != codes, 1, -1) * np.asarray(confidence, dtype=np.float64)
    elif task.kind == "regression":
        off = residuals(rows["label"].to_numpy(), np.asarray(predictions))
        table |= {"label": off["true"], "prediction": off["predicted"], "residual": off["residual"]}
        badness = off["residual"].abs().to_numpy()
    elif task.kind == "span":
        pairs = list(zip(rows["answer_texts"], predictions, strict=True))
        table["label"] = [" / ".join(dict.fromkeys(texts)) for texts, _ in pairs]
        table["prediction"] = list(predictions)
        table["correct"] = [any(exact_match(text, got) == 1 for text in texts) for texts, got in pairs]
        table["f1"] = [max(token_f1(text, got) for text in texts) for texts, got in pairs]
        badness = -np.asarray(table["f1"])
    else:
        table["prediction"] = list(predictions)
    if confidence is not None:
        table["confidence"] = np.asarray(confidence, dtype=np.float64)
    order = np.argsort(-np.nan_to_num(badness, nan=np.inf), kind="stable")
    return pd.DataFrame(table).iloc[order].reset_index(drop=True)

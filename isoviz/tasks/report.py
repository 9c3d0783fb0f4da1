"""A report on a task's rows, for a look before launching: counts, labels, first rows and oddities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from isoviz.tasks import outcomes
from isoviz.tasks.protocol import TRAIN, DataReport, Task

if TYPE_CHECKING:
    import pandas as pd

SAMPLE = 50_000
"""Rows of a split that are looked at, at most."""
LONGEST_TEXT = 2_000
"""Characters of a cell that are shown of a file; a page cuts them further."""
_ITEMS = 20
_DEPTH = 4


def data_report(task: Task, splits: Mapping[str, pd.DataFrame], totals: Mapping[str, int]) -> DataReport:
    """The report of checked rows, of which there are `totals` in all."""
    repeated = {split: int(_texts(task, frame).duplicated().sum()) for split, frame in splits.items()}
    repeats = [f"{count} rows are repeated inside {split}." for split, count in repeated.items() if count]
    return DataReport(
        rows={split: totals[split] for split in splits},
        looked_at={split: len(frame) for split, frame in splits.items()},
        labels={split: _counts(task, frame) for split, frame in splits.items()},
        preview={
            split: [{str(name): plain(value) for name, value in row.items()} for _, row in frame.head(5).iterrows()]
            for split, frame in splits.items()
        },
        notes=(*score_notes(task, splits), *repeats),
    )


def score_notes(task: Task, splits: Mapping[str, pd.DataFrame]) -> list[str]:
    """Notes on the scores of these splits, as sentences.

    Args:
        splits: checked rows of the validation split, of the extra ones and, to compare with, of the training split.
    """
    validation = {split: frame for split, frame in splits.items() if split != TRAIN}
    train = splits.get(TRAIN)
    notes = [
        f"The data has no {name} split ('{theirs}'): the scores are those of the {task.validation} split alone."
        for name, theirs in task.extra
        if name not in validation
    ]
    for split, frame in validation.items():
        if train is not None and (shared := int(_texts(task, frame).isin(set(_texts(task, train))).sum())):
            notes.append(f"{shared} {split} rows also appear in train.")
        if train is not None and task.label_names:
            unseen = [task.label_names[code] for code in sorted(set(frame["label"]) - set(train["label"]))]
            notes += [f"The class '{name}' is in {split} but not in train: no model can learn it." for name in unseen]
        if len(frame) > 1 and outcomes.one_answer(task, frame):
            answer = frame[task.reference].iloc[0]
            answer_text = task.label_names[answer] if task.label_names else answer
            notes.append(
                f"All {len(frame)} {split} rows that were read have the same correct answer ({answer_text}): their scores cannot tell a "
                "model from a constant guess."
            )
    return notes


def _counts(task: Task, frame: pd.DataFrame) -> dict[str, int]:
    return {name: int((frame["label"] == code).sum()) for code, name in enumerate(task.label_names)}


def _texts(task: Task, frame: pd.DataFrame) -> pd.Series:
    return frame[list(task.columns)].agg("\t".join, axis=1)


def plain(value: object, depth: int = _DEPTH) -> object:
    """A cell as JSON can hold it, shortened: texts, lists and depth."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        value = value[:_ITEMS].tolist()
    if value is None or isinstance(value, (bool, int)):
        return value if not isinstance(value, int) or abs(value) < 2**63 else str(value)[:LONGEST_TEXT]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if isinstance(value, (dict, list, tuple)):
        if not depth:
            return "…"
        if isinstance(value, Mapping):
            return {str(key)[:LONGEST_TEXT]: plain(item, depth - 1) for key, item in list(value.items())[:_ITEMS]}
        return [plain(item, depth - 1) for item in value[:_ITEMS]]
    text = value if isinstance(value, str) else str(value)
    text = text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "…"
    return text.encode("utf-8", "replace").decode()

"""Raw rows become the rows of a task, or are refused with the rows at fault: texts, classes, numbers and answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from isoviz.errors import DataError
from isoviz.tasks.protocol import Task

if TYPE_CHECKING:
    import pandas as pd

_SHORT = 80


def shortened(value: object) -> str:
    """A value as Python shows it, at most 80 characters."""
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= _SHORT else text[: _SHORT - 1] + "…"


def check(frame: pd.DataFrame, task: Task, name: str, direction: str | None = None, whole: bool = True) -> pd.DataFrame:
    """Rows of a task from raw ones.

    Args:
        frame: raw columns as `isoviz.tasks.files.read` gives them, indexed by row number from 0.
        name: what the rows are, for messages.
        direction: of a translation task, as the frame was read.
        whole: False for a part of a split, which may lack classes.

    Returns:
        Columns as `TaskData` says, indexed from 0.

    Raises:
        DataError: one line that names the first rows at fault, counted from 1.
    """
    import pandas as pd

    if len(frame) == 0:
        raise DataError.at("data", f"{name} has no rows")
    faults: list[tuple[str, str, int]] = []
    places = task.wanted(direction)
    checked: dict[str, Any] = {}
    good = np.ones(len(frame), dtype=bool)

    def refuse(bad: Any, column: str, what: str, values: Sequence[object] | None = None) -> None:
        """Note rows at fault; one fault a row is enough."""
        for place in np.flatnonzero(np.asarray(bad, dtype=bool) & good).tolist():
            got = f"; got {shortened(values[place])}" if values is not None else ""
            faults.append((f"{column}: {what}", got, int(frame.index[place]) + 1))
            good[place] = False

    for column in task.columns:
        place = places[column]
        values = frame[column]
        refuse(values.isna() | (values.astype(str).str.strip() == ""), place, f"empty '{place}'")
        nested = [isinstance(value, (dict, list, np.ndarray)) for value in values]
        refuse(nested, place, f"'{place}' must be text", list(values))
        checked[column] = values.astype(str)
    task.rules.check(frame, task, checked, refuse)
    if faults:
        what, got, _ = faults[0]
        rows = [row for fault, _, row in faults if fault == what]
        numbers = ", ".join(map(str, rows[:5])) + (", …" if len(rows) > 5 else "")
        where = f"{len(rows)} row{'s' if len(rows) > 1 else ''} ({numbers})"
        raise DataError.at("data", f"{name}: {what.partition(': ')[2]}{got} in {where}")
    rows_checked = pd.DataFrame(checked, index=frame.index).reset_index(drop=True)
    if task.label_names:
        rows_checked["label"] = rows_checked["label"].astype("int64")
    if whole and "label" in rows_checked and rows_checked["label"].nunique() < 2:
        only = rows_checked["label"].iloc[0]
        if not task.label_names:
            raise DataError.at("data", f"{name} has one label only ({only:g})")
        raise DataError.at("data", f"{name} has one class only ('{task.label_names[only]}'); at least two are needed")
    return rows_checked

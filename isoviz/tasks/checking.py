"""Raw rows become the rows of a task, or are refused with the rows at fault: texts, classes, numbers and answers."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from isoviz.errors import DataError
from isoviz.tasks.protocol import Problem, Task

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
    if len(frame) == 0:
        raise DataError.at("data", f"{name} has no rows")
    checked, problems = examine(frame, task, direction)
    if problems:
        first = problems[0]
        rows = [one.row for one in problems if (one.column, one.what) == (first.column, first.what)]
        numbers = ", ".join(map(str, rows[:5])) + (", …" if len(rows) > 5 else "")
        got = f"; got {first.value}" if first.value else ""
        where = f"{len(rows)} row{'s' if len(rows) > 1 else ''} ({numbers})"
        raise DataError.at("data", f"{name}: {first.what}{got} in {where}")
    if whole and task.kind in ("classification", "regression") and checked["label"].nunique() < 2:
        if task.kind == "regression":
            raise DataError.at("data", f"{name} has one label only ({checked['label'].iloc[0]:g})")
        only = task.label_names[int(checked["label"].iloc[0])]
        raise DataError.at("data", f"{name} has one class only ('{only}'); at least two are needed")
    return checked


def examine(
    frame: pd.DataFrame, task: Task, direction: str | None = None, split: str = ""
) -> tuple[pd.DataFrame, list[Problem]]:
    """The checked rows, without those at fault, and what is wrong with these; one fault a row is enough."""
    import pandas as pd

    problems: list[Problem] = []
    places = task.wanted(direction)
    checked: dict[str, Any] = {}
    good = np.ones(len(frame), dtype=bool)

    def refuse(bad: Any, column: str, what: str, values: Sequence[object] | None = None) -> None:
        for place in np.flatnonzero(np.asarray(bad, dtype=bool) & good).tolist():
            value = "" if values is None else shortened(values[place])
            problems.append(Problem(split, int(frame.index[place]) + 1, column, what, value))
            good[place] = False

    for column in task.columns:
        place = places[column]
        values = frame[column]
        refuse(values.isna() | (values.astype(str).str.strip() == ""), place, f"empty '{place}'")
        nested = [isinstance(value, (dict, list, np.ndarray)) for value in values]
        refuse(nested, place, f"'{place}' must be text", list(values))
        checked[column] = values.astype(str)
    if task.kind == "classification":
        checked["label"] = _classes(frame["label"], task, refuse)
    elif task.kind == "regression":
        checked["label"] = _numbers(frame["label"], task, refuse)
    elif task.kind == "span":
        # missing: refused above
        contexts = [text if isinstance(text, str) else "" for text in checked[task.columns[1]]]
        parsed = [answers(value, context) for value, context in zip(frame["answers"], contexts, strict=True)]
        refuse([problem == "" for _, _, problem in parsed], task.label, f"no answer in '{task.label}'")
        refuse(
            [problem is not None for _, _, problem in parsed],
            task.label,
            f"an answer of '{task.label}' is not in the context at its stated position",
            [problem for _, _, problem in parsed],
        )
        checked["answer_texts"] = pd.Series([texts for texts, _, _ in parsed], index=frame.index, dtype="object")
        checked["answer_starts"] = pd.Series([starts for _, starts, _ in parsed], index=frame.index, dtype="object")
        rows = pd.Series([str(int(number)) for number in frame.index], index=frame.index)
        checked["id"] = frame["id"].astype(str) if "id" in frame.columns else rows
    rows_checked = pd.DataFrame(checked, index=frame.index)[good].reset_index(drop=True)
    if task.kind == "classification":
        rows_checked["label"] = rows_checked["label"].astype("int64")
    return rows_checked, problems


def as_name(value: object) -> str:
    """A class as people write it: `3` for 3 and 3.0."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def _classes(labels: pd.Series, task: Task, refuse: Any) -> pd.Series:
    import pandas as pd

    column = task.label
    refuse(labels.isna(), column, f"empty '{column}'")
    names = task.label_names
    if not task.by_name and pd.api.types.is_numeric_dtype(labels) and not pd.api.types.is_bool_dtype(labels):
        codes = labels
    else:
        by_name = {} if task.by_name else {str(code): code for code in range(len(names))}
        by_name = {name: code for code, name in enumerate(names)} | by_name
        codes = labels.map(as_name).map(by_name)
    if not task.by_name:
        hidden = f"'{column}' is -1, a hidden label of a test split; labels are needed"
        refuse(pd.to_numeric(labels, errors="coerce") == -1, column, hidden, list(labels))
    allowed = ", ".join(names) if task.by_name else ", ".join(f"{code} = {name}" for code, name in enumerate(names))
    refuse(~codes.isin(range(len(names))), column, f"'{column}' must be one of {allowed}", list(labels))
    return codes


def _numbers(labels: pd.Series, task: Task, refuse: Any) -> pd.Series:
    import pandas as pd

    refuse(labels.isna(), task.label, f"empty '{task.label}'")
    numbers = pd.to_numeric(labels, errors="coerce").astype("float64")
    refuse(~np.isfinite(numbers.fillna(np.nan)), task.label, f"'{task.label}' must be a number", list(labels))
    if task.hub is not None:  # of an own file -1 may be a number like any other
        hidden = f"'{task.label}' is -1, a hidden label of a test split; labels are needed"
        refuse(numbers == -1, task.label, hidden, list(labels))
    return numbers


def answers(value: object, context: str) -> tuple[list[str], list[int], str | None]:
    """Texts and starts of a question's answers, and what is wrong with them: None, "" if there are none, or the answer.

    An answer is taken from `{"text": [...], "answer_start": [...]}`, from a list of `{"text", "answer_start"}`, from either
    as JSON text, or from plain text, which then counts where it first stands in the context.
    """
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        with contextlib.suppress(ValueError):  # else it is plain text that begins with a bracket
            value = json.loads(value)
    if isinstance(value, str):
        start = context.find(value.strip())
        return [value.strip()], [start], "" if not value.strip() else None if start >= 0 else value
    texts, starts = _lists(value)
    if not texts or len(texts) != len(starts):
        return [], [], ""
    for text, start in zip(texts, starts, strict=True):
        if not text.strip() or start < 0 or context[start : start + len(text)] != text:
            return texts, starts, text
    return texts, starts, None


def _lists(value: object) -> tuple[list[str], list[int]]:
    try:
        if isinstance(value, dict):
            return [str(text) for text in _many(value["text"])], [int(start) for start in _many(value["answer_start"])]
        if isinstance(value, (list, np.ndarray)):
            return [str(answer["text"]) for answer in value], [int(answer["answer_start"]) for answer in value]
    except (KeyError, TypeError, ValueError, OverflowError):
        pass
    return [], []


def _many(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple, np.ndarray)) else [value]

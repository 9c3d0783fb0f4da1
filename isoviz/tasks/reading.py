"""Task data for pages, as functions that `isoviz.jobs.guarded` can call: plain arguments, small answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from isoviz import tasks
from isoviz.errors import DataError
from isoviz.tasks import files, own
from isoviz.tasks.own import Preview, completed, guess
from isoviz.tasks.protocol import DataReport, OwnTask, Problems

__all__ = ["check", "check_tables", "completed", "counted", "guess", "plain", "preview", "problems", "report"]

LONGEST_TEXT = 2_000
"""Characters of a cell that are shown of a file; a page cuts them further."""
_ITEMS = 20
_DEPTH = 4


def preview(data: str) -> Preview:
    """Columns and first rows of a person's own files, long cells shortened."""
    raw = own.preview(data)
    rows = tuple({name: plain(value) for name, value in row.items()} for row in raw.rows)
    return replace(raw, rows=rows)


def report(slug: str, columns: OwnTask | None, data: str | None, direction: str | None) -> DataReport:
    """See `isoviz.tasks.check_data`; long cells of the preview are shortened."""
    data_report = tasks.check_data(tasks.get(slug, columns), data, direction)
    rows_by_split = {
        split: [{k: plain(v) for k, v in row.items()} for row in rows] for split, rows in data_report.preview.items()
    }
    return replace(data_report, preview=rows_by_split)


def problems(slug: str, columns: OwnTask | None, data: str | None, direction: str | None) -> Problems:
    """See `isoviz.tasks.problems`."""
    return tasks.problems(tasks.get(slug, columns), data, direction)


def check(
    slug: str,
    columns: OwnTask | None,
    data: str | None,
    direction: str | None = None,
    max_train: int | None = None,
    max_eval: int | None = None,
) -> str:
    """Read and check what `isoviz.tasks.load` would give; its fingerprint."""
    return tasks.load(tasks.get(slug, columns), data, direction, max_train, max_eval).fingerprint


def counted(slug: str, data: str | None) -> tuple[str, dict[str, int]]:
    """The fingerprint, and the number of rows of train and validation."""
    task_data = tasks.load(tasks.get(slug), data)
    return task_data.fingerprint, {"train": len(task_data.train), "validation": len(task_data.validation)}


def check_tables(folder: str) -> None:
    """Raise `DataError` unless all of a person's own files are tables with rows."""
    for paths in own.find(folder).values():
        for path in paths:
            if files.tabular(path, 1).empty:
                raise DataError(f"data: {path.name} has no rows", field="data")


def plain(value: object, depth: int = _DEPTH) -> object:
    """A cell as JSON can hold it, shortened: texts, lists and depth."""
    import numpy as np

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

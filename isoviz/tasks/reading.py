"""Task data for pages, as functions that `isoviz.jobs.guarded` can call: plain arguments, small answers."""

from __future__ import annotations

from dataclasses import replace

from isoviz import tasks
from isoviz.errors import DataError
from isoviz.tasks import files, own
from isoviz.tasks.own import Preview
from isoviz.tasks.protocol import Task
from isoviz.tasks.report import plain


def preview(data: str) -> Preview:
    """Columns and first rows of a person's own files, long cells shortened."""
    raw = own.preview(data)
    rows = tuple({name: plain(value) for name, value in row.items()} for row in raw.rows)
    return replace(raw, rows=rows)


def check(
    task: Task,
    data: str | None,
    direction: str | None = None,
    max_train: int | None = None,
    max_eval: int | None = None,
) -> str:
    """Read and check what `isoviz.tasks.load` would give; its fingerprint."""
    return tasks.load(task, data, direction, max_train, max_eval).fingerprint


def counted(task: Task, data: str | None) -> tuple[str, dict[str, int]]:
    """The fingerprint, and the number of rows of train and validation."""
    task_data = tasks.load(task, data)
    return task_data.fingerprint, {"train": len(task_data.train), "validation": len(task_data.validation)}


def check_tables(folder: str) -> None:
    """Raise `DataError` unless all of a person's own files are tables with rows."""
    for paths in own.find(folder).values():
        for path in paths:
            if files.tabular(path, 1).empty:
                raise DataError.at("data", f"{path.name} has no rows")

"""The catalogue of tasks: every module of this folder that defines `TASKS` adds to it. Also where task data is loaded."""

from __future__ import annotations

import functools
import hashlib
import importlib
import pkgutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from isoviz.errors import DataError, unknown_name
from isoviz.tasks import files, hub
from isoviz.tasks.protocol import DataReport, Task, TaskData

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Task", "TaskData", "catalogue", "check_data", "get", "load"]


@functools.cache
def catalogue() -> Mapping[str, Task]:
    """All tasks by slug."""
    found: dict[str, Task] = {}
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        for task in getattr(module, "TASKS", ()):
            found[task.slug] = task
    return MappingProxyType(found)


def get(slug: str) -> Task:
    """The task of that name; `InputError` with the allowed names otherwise."""
    try:
        return catalogue()[slug]
    except KeyError:
        raise unknown_name("task", slug, catalogue(), field="task") from None


def load(task: Task, data: str | Path | None = None) -> TaskData:
    """All rows of a task, checked: generated, from the folder `data`, or from the hub's cache or the hub.

    Raises:
        DataError: with what is wrong, and where, if the rows cannot serve this task.
    """
    frames = _frames(task, data)
    checked = {split: files.check(frame, task, f"{split} split") for split, frame in frames.items()}
    return TaskData(checked["train"], checked["validation"], _fingerprint(checked))


def check_data(task: Task, data: str | Path | None = None) -> DataReport:
    """What a person should know of the rows before launching; raises like `load`."""
    rows = load(task, data)
    splits = {"train": rows.train, "validation": rows.validation}
    notes = []
    texts = {split: frame[list(task.columns)].agg("\t".join, axis=1) for split, frame in splits.items()}
    shared = int(texts["validation"].isin(set(texts["train"])).sum())
    if shared:
        notes.append(f"{shared} validation rows also stand in train.")
    for split, text in texts.items():
        if repeated := int(text.duplicated().sum()):
            notes.append(f"{repeated} rows are repeated inside {split}.")
    return DataReport(
        rows={split: len(frame) for split, frame in splits.items()},
        labels={
            split: {name: int((frame["label"] == code).sum()) for code, name in enumerate(task.label_names)}
            for split, frame in splits.items()
        },
        preview={split: [dict(row) for _, row in frame.head(5).iterrows()] for split, frame in splits.items()},
        notes=tuple(notes),
    )


def _frames(task: Task, data: str | Path | None) -> dict[str, pd.DataFrame]:
    if task.generated:
        if data is not None:
            raise DataError(f"data: '{task.slug}' generates its own rows and takes no data folder", field="data")
        from isoviz.demo import tasks as generated

        return _generated(generated, task.slug)
    if data is not None:
        found = files.find(data)
        return {split: files.read(path, [*task.columns, task.label]) for split, path in found.items()}
    return _from_hub(task)


def _generated(generator: object, slug: str) -> dict[str, pd.DataFrame]:
    import pandas as pd

    return {split: pd.DataFrame(rows) for split, rows in generator.generate(slug).items()}  # type: ignore[attr-defined]


def _from_hub(task: Task) -> dict[str, pd.DataFrame]:
    assert task.hub is not None
    name, configuration = task.hub
    splits = {split: split for split in files.SPLITS}
    return hub.load(task.slug, name, configuration, [*task.columns, task.label], splits).frames


def _fingerprint(frames: Mapping[str, pd.DataFrame]) -> str:
    import pandas as pd

    digest = hashlib.sha256()
    for split in sorted(frames):
        digest.update(split.encode())
        digest.update(pd.util.hash_pandas_object(frames[split], index=False).to_numpy().tobytes())
    return digest.hexdigest()[:16]

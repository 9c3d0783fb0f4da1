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
from isoviz.tasks import files
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


def load(task: Task, data: str | Path | None = None, direction: str | None = None) -> TaskData:
    """All rows of a task, checked: generated, from the folder `data`, or from the hub's cache or the hub.

    Raises:
        DataError: with what is wrong, and where, if the rows cannot serve this task.
    """
    frames = _frames(task, data)
    if task.kind in ("span", "seq2seq"):
        checked = {
            split: _opened(frame, task, direction or task.slug.split("/")[-1]) for split, frame in frames.items()
        }
        return TaskData(checked["train"], checked["validation"], _fingerprint(checked))
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
        columns = {"span": ["id", *task.columns, task.label], "seq2seq": [task.label]}
        names = columns.get(task.kind, [*task.columns, task.label])
        return {split: files.read(path, names) for split, path in found.items()}
    return _from_hub(task)


def _opened(frame: pd.DataFrame, task: Task, direction: str) -> pd.DataFrame:
    import pandas as pd

    values = frame[task.label]
    if task.kind == "span":
        answers = {
            "answer_texts": pd.Series([list(value["text"]) for value in values], dtype=object),
            "answer_starts": pd.Series([[int(at) for at in value["answer_start"]] for value in values], dtype=object),
        }
        return pd.DataFrame({**frame[["id", *task.columns]], **answers})
    first, second = direction.split("-")
    return pd.DataFrame({"source": [value[first] for value in values], "target": [value[second] for value in values]})


def _generated(generator: object, slug: str) -> dict[str, pd.DataFrame]:
    import pandas as pd

    return {split: pd.DataFrame(rows) for split, rows in generator.generate(slug).items()}  # type: ignore[attr-defined]


def _from_hub(task: Task) -> dict[str, pd.DataFrame]:
    assert task.hub is not None
    name, configuration = task.hub
    import datasets

    try:
        loaded = datasets.load_dataset(name, configuration)
    except (
        OSError,
        ValueError,
    ) as error:  # ConnectionError and datasets' offline errors are OSErrors, a missing cache a ValueError
        reason = str(error).strip().splitlines()[0]
        raise DataError(
            f"data: '{task.slug}' is not on this machine and the hub cannot be reached ({reason}); "
            "give a folder with train and validation files",
            field="data",
        ) from None
    return {split: loaded[split].to_pandas()[[*task.columns, task.label]] for split in files.SPLITS}


def _fingerprint(frames: Mapping[str, pd.DataFrame]) -> str:
    import pandas as pd

    digest = hashlib.sha256()
    for split in sorted(frames):
        digest.update(split.encode())
        digest.update(pd.util.hash_pandas_object(frames[split].astype(str), index=False).to_numpy().tobytes())
    return digest.hexdigest()[:16]

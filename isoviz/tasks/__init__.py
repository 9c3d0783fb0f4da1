"""The catalogue of tasks: what the modules of this folder and installed packages list in `TASKS`. Also loads task data."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from isoviz.catalogues import discover
from isoviz.demo import rows_dir
from isoviz.errors import DataError, InputError, unknown_name

# The rooms that read rows want numpy and pandas; who only lists tasks shall not wait for those.
from isoviz.tasks.protocol import OWN, SPLITS, TRAIN, VALIDATION, DataReport, OwnTask, Task, TaskData

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from isoviz.tasks import files

__all__ = ["OWN", "Task", "TaskData", "catalogue", "check_data", "files_of", "fingerprint", "get", "load"]


@functools.cache
def catalogue() -> Mapping[str, Task]:
    """All tasks by slug; those that need no files come first, and so are what a form offers first."""
    items = discover(__name__, "isoviz.tasks", Task, listed_as="TASKS", reserved=(OWN,))
    return MappingProxyType(dict(sorted(items.items(), key=lambda pair: not pair[1].generated)))


def get(slug: str, columns: OwnTask | None = None) -> Task:
    """The task of that name; `InputError` with the allowed names otherwise.

    Args:
        columns: for the task `own`, which column is what (`RunConfig.own`), with kind and classes filled in
            (`isoviz.tasks.own.completed`); other tasks take none.
    """
    if slug == OWN:
        if columns is None:
            raise InputError.at("task", "'own' needs to know its columns (text and label)")
        from isoviz.tasks import own

        return own.task(columns)
    if columns is not None:
        raise InputError.at("own", f"'{slug}' has its own columns (columns are for --task {OWN})")
    try:
        return catalogue()[slug]
    except KeyError:
        raise unknown_name("task", slug, [*catalogue(), OWN], field="task") from None


def load(
    task: Task,
    data: str | Path | None = None,
    direction: str | None = None,
    max_train: int | None = None,
    max_eval: int | None = None,
) -> TaskData:
    """The rows of a task, checked: bundled, from `data`, or from the hub's cache or the hub.

    Args:
        data: folder with a file per split; for own data also one file.
        direction: of a translation task, None for its first.
        max_train: a random choice of at most this many training rows, the same for every run. Only they are read (parquet:
            only the row groups that hold them), checked and fingerprinted.
        max_eval: at most this many validation rows, the first ones; of extra splits too.

    Raises:
        InputError: a direction that the task does not have.
        DataError: with what is wrong, and where, if the rows cannot serve this task.
    """
    limits = {split: max_train if split == TRAIN else max_eval for split in _splits(task)}
    picks = {split: _pick(split, limit) for split, limit in limits.items()}
    checked, revision = _checked(task, data, direction, picks, lambda split, rows: limits[split] is None)
    extra = {split: frame for split, frame in checked.items() if split not in SPLITS}
    return TaskData(checked[TRAIN], checked[VALIDATION], fingerprint(checked), extra, revision)


def _checked(
    task: Task,
    data: str | Path | None,
    direction: str | None,
    picks: Mapping[str, files.Pick | None],
    is_whole: Callable[[str, int], bool],
) -> tuple[dict[str, pd.DataFrame], str | None]:
    """Checked rows by split, and the commit, of rows of the hub. `is_whole`: whether so many rows are all of a split."""
    from isoviz.tasks import checking

    direction = task.checked_direction(direction) or None
    frames, revision = _raw(task, data, direction, picks)
    checked = {}
    for split, frame in frames.items():
        complete = is_whole(split, len(frame)) and not (task.own is not None and split != TRAIN)
        checked[split] = checking.check(frame, task, f"{split} split", direction, complete)
    return checked, revision


def check_data(
    task: Task, data: str | Path | None = None, direction: str | None = None, sample: int | None = None
) -> DataReport:
    """A report on the rows, for a look before launching; raises the same as `load`.

    Args:
        data, direction: as for `load`.
        sample: rows that are read and checked of a longer split, `isoviz.tasks.report.SAMPLE` by default: the first ones and a
            random choice. The report has the number of all (of parquet from the files' own count) and of those.
    """
    from isoviz.tasks import files, report

    totals: dict[str, int] = {}
    glance = files.glance(sample or report.SAMPLE)

    def pick(split: str, total: int) -> np.ndarray:
        totals[split] = total
        return glance(total)

    picks: dict[str, files.Pick | None] = {split: functools.partial(pick, split) for split in _splits(task)}
    checked, _ = _checked(task, data, direction, picks, lambda split, rows: rows == totals[split])
    return report.data_report(task, checked, totals)


def _raw(
    task: Task, data: str | Path | None, direction: str | None, picks: Mapping[str, files.Pick | None]
) -> tuple[dict[str, pd.DataFrame], str | None]:
    """Raw frames by split, indexed by row number in their file; and the commit, of rows of the hub."""
    from isoviz.tasks import files, own

    columns = task.wanted(direction)
    if task.generated:
        if data is not None:
            raise DataError.at("data", f"'{task.slug}' has its own rows and takes no data folder")
        data = rows_dir(task.rows or task.slug)
    if task.own is not None:
        return own.frames(task, data, columns, picks), None
    if data is not None:
        return {
            split: files.read(paths, columns, picks[split]) for split, paths in files.find(data, task).items()
        }, None
    return files.from_hub(task, columns, picks)


def primary_metric(slug: str, reported: Iterable[str]) -> str:
    """The metric by which runs of a task are compared; the first one reported if the task is not in the catalogue."""
    task = catalogue().get(slug)
    return task.primary if task else next(iter(reported), "")


def files_of(task: Task, data: str | Path) -> list[Path]:
    """The files that `load` would read; raises like it for files that are not there."""
    from isoviz.tasks import files, own

    by_split = own.find(data) if task.own is not None else files.find(data, task)
    return [path for paths in by_split.values() for path in paths]


def _splits(task: Task) -> list[str]:
    return [*SPLITS, *(name for name, _ in task.extra)]


def _pick(split: str, limit: int | None) -> files.Pick | None:
    from isoviz.tasks import files

    if limit is None:
        return None
    return files.chosen(limit) if split == TRAIN else files.first(limit)


def fingerprint(frames: Mapping[str, pd.DataFrame]) -> str:
    """Sixteen hex digits of the content of checked rows, by split."""
    import pandas as pd

    digest = hashlib.sha256()
    for split in sorted(frames):
        digest.update(split.encode())
        frame = frames[split].copy(deep=False)
        for column in ("answer_texts", "answer_starts"):  # lists have no hash of their own
            if column in frame:
                frame[column] = [json.dumps(value) for value in frame[column]]
        hashes: np.ndarray = pd.util.hash_pandas_object(frame, index=False).to_numpy()
        digest.update(hashes.tobytes())
    return digest.hexdigest()[:16]

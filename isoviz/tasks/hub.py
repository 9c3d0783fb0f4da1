"""Rows of a data set of the Hugging Face hub, downloaded or from this machine's cache, and their commit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isoviz import hub
from isoviz.errors import DataError
from isoviz.tasks import files
from isoviz.tasks.protocol import TRAIN, VALIDATION, Task

if TYPE_CHECKING:
    import datasets
    import pandas as pd


@dataclass(frozen=True)
class HubRows:
    """The loaded rows.

    Attributes:
        frames: split → its rows.
        revision: the data set's commit, 40 hex digits; None where the cache does not know it.
    """

    frames: dict[str, pd.DataFrame]
    revision: str | None


def load(task: Task, columns: Mapping[str, str], picks: Mapping[str, files.Pick | None]) -> HubRows:
    """The chosen rows of each split, raw; the rest stays in the memory-mapped cache. They are those of the main branch, or what
    the cache has while the hub cannot be reached. Code that comes with a data set is never run; the library has no way to.

    Args:
        columns: our name of a column → where it lies in the data set.
        picks: split → which of its rows; None for all.

    Raises:
        DataError: it is not there, is gated, lacks a split or a column, or cannot be downloaded.
    """
    assert task.hub is not None
    import datasets
    from huggingface_hub.errors import HTTPError

    name, configuration = task.hub
    title = "/".join(filter(None, (name, configuration)))
    reason = hub.offline()
    frames = {}
    try:
        builder = cached(name, configuration) if reason else datasets.load_dataset_builder(name, configuration)
        builder.download_and_prepare()
        for split, hub_split in {TRAIN: TRAIN, VALIDATION: task.validation, **dict(task.extra)}.items():
            if hub_split not in (builder.info.splits or {}):
                has = ", ".join(map(str, builder.info.splits or ()))
                raise DataError(f"data: '{title}' has no split '{hub_split}' (it has: {has})", field="data")
            frames[split] = _rows(builder.as_dataset(split=hub_split), title, columns, picks[split])
    except DataError:
        raise
    except (datasets.exceptions.DatasetsError, HTTPError, OSError, ValueError, RuntimeError) as error:
        raise data_error(f"data: '{title}', the data of '{task.slug}',", error, reason) from None
    commit = builder.hash if re.fullmatch(r"[0-9a-f]{40}", builder.hash or "") else None
    return HubRows(frames, commit)


def cached(name: str, configuration: str | None) -> datasets.DatasetBuilder:
    """The newest cached version of a data set. `load_dataset_builder` ends here too, after half a minute of retries, unless the
    whole process is in offline mode; that is no state to set for one load among others."""
    from datasets.packaged_modules.cache.cache import Cache

    dataset = name.split("/")[-1]
    return Cache(dataset_name=dataset, repo_id=name, config_name=configuration, version="auto", hash="auto")


def _rows(rows: datasets.Dataset, title: str, columns: Mapping[str, str], pick: files.Pick | None) -> pd.DataFrame:
    heads = dict.fromkeys(place.split(".")[0] for place in columns.values())
    missing = [head for head in heads if head not in rows.column_names]
    if missing:
        has = ", ".join(rows.column_names)
        raise DataError(f"data: '{title}' lacks the column {missing[0]} (it has: {has})", field="data")
    rows = rows.select_columns(
        [*heads, *(name for name in files.OPTIONAL if name in rows.column_names and name not in heads)]
    )
    numbers = None if pick is None else pick(len(rows))
    frame: pd.DataFrame = (rows if numbers is None else rows.select(numbers)).to_pandas()
    if numbers is not None:
        frame.index = numbers
    return files.columns_of(frame, columns)


def data_error(
    subject: str, error: Exception, reason: str | None, instead: str = "give a folder with train and validation files"
) -> DataError:
    """Why a data set could not be loaded.

    Args:
        subject: the data set, the beginning of a sentence.
        error: what the library raised.
        reason: why the hub is unreachable; None if it is reachable.
        instead: what else to do.
    """
    import datasets

    text = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    if reason:
        problem = f"is not on this machine and {reason}; {instead}"
    elif "gated" in text.lower():
        problem = (
            f"is gated: accept its terms on the hub, then log in with `hf auth login` or set HF_TOKEN, or {instead}"
        )
    elif isinstance(error, datasets.exceptions.DatasetNotFoundError):
        problem = f"is not on the hub, or it is private and you are not logged in; check the spelling, or {instead}"
    else:
        problem = f"could not be downloaded from the hub ({text.rstrip('.')}); try again, or {instead}"
    return DataError(f"{subject} {problem}", field="data")

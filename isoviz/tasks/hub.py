"""Rows of a data set of the Hugging Face hub, from this machine's cache or fetched; at a commit that is told."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isoviz.errors import DataError
from isoviz.models import hub
from isoviz.tasks import files
from isoviz.tasks.protocol import TRAIN, VALIDATION, Task

if TYPE_CHECKING:
    import datasets
    import pandas as pd


@dataclass(frozen=True)
class HubRows:
    """What was loaded.

    Attributes:
        frames: split → its rows.
        revision: the data set's commit, 40 hex digits; None where the cache does not know it.
    """

    frames: dict[str, pd.DataFrame]
    revision: str | None


def load(
    task: Task,
    wanted: Mapping[str, str],
    picks: Mapping[str, files.Pick | None],
    revision: str | None = None,
) -> HubRows:
    """The chosen rows of each split, raw; the rest stays in the memory-mapped cache. Code that comes with a data set is never
    run; the library has no way to.

    Args:
        wanted: our name of a column → where it lies in the data set.
        picks: split → which of its rows; None for all.
        revision: a branch, a tag or a commit; None for the main branch, or what the cache has where the hub is out of reach.

    Raises:
        DataError: it is not there, is gated, lacks a split or a column, or cannot be fetched.
    """
    assert task.hub is not None
    import datasets
    from huggingface_hub.errors import HTTPError

    name, configuration = task.hub
    shown = "/".join(filter(None, (name, configuration)))
    reason = hub.offline()
    frames = {}
    try:
        with _out_of_reach(reason is not None):
            builder = datasets.load_dataset_builder(name, configuration, revision=revision)
            builder.download_and_prepare()
        for split, theirs in {TRAIN: TRAIN, VALIDATION: task.validation, **dict(task.extra)}.items():
            if theirs not in (builder.info.splits or {}):
                has = ", ".join(map(str, builder.info.splits or ()))
                raise DataError(f"data: '{shown}' has no split '{theirs}' (it has: {has})", field="data")
            frames[split] = _rows(builder.as_dataset(split=theirs), shown, wanted, picks[split])
    except DataError:
        raise
    except (datasets.exceptions.DatasetsError, HTTPError, OSError, ValueError, RuntimeError) as error:
        raise _explained(f"data: '{shown}', the data of '{task.slug}',", error, reason) from None
    commit = builder.hash if re.fullmatch(r"[0-9a-f]{40}", builder.hash or "") else None
    return HubRows(frames, commit)


@contextmanager
def _out_of_reach(known: bool) -> Iterator[None]:
    """Where the hub is known to be out of reach the library looks into its cache at once, and not after half a minute of tries."""
    import datasets
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE
    if known:
        constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE = before


def _rows(rows: datasets.Dataset, shown: str, wanted: Mapping[str, str], pick: files.Pick | None) -> pd.DataFrame:
    heads = dict.fromkeys(place.split(".")[0] for place in wanted.values())
    lacking = [head for head in heads if head not in rows.column_names]
    if lacking:
        has = ", ".join(rows.column_names)
        raise DataError(f"data: '{shown}' lacks the column {lacking[0]} (it has: {has})", field="data")
    rows = rows.select_columns(
        [*heads, *(name for name in files.OPTIONAL if name in rows.column_names and name not in heads)]
    )
    numbers = None if pick is None else pick(len(rows))
    frame: pd.DataFrame = (rows if numbers is None else rows.select(numbers)).to_pandas()
    if numbers is not None:
        frame.index = numbers
    return files.columns_of(frame, wanted)


def _explained(what: str, error: Exception, reason: str | None) -> DataError:
    import datasets

    text = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    elsewhere = "or give a folder with train and validation files"
    if reason:
        said = f"is not on this machine and {reason}; give a folder with train and validation files"
    elif "gated" in text.lower():
        said = f"is gated: accept its terms on the hub, then log in with `hf auth login` or set HF_TOKEN, {elsewhere}"
    elif isinstance(error, datasets.exceptions.DatasetNotFoundError):
        said = f"is not on the hub (or it is private, and you are not logged in); look at the spelling, {elsewhere}"
    else:
        said = f"could not be had from the hub ({text.rstrip('.')}); try again, {elsewhere}"
    return DataError(f"{what} {said}", field="data")

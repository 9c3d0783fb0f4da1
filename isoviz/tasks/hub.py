"""Rows of a data set of the Hugging Face hub, from this machine's cache or fetched; at a commit that is told."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isoviz.errors import DataError
from isoviz.models import hub

if TYPE_CHECKING:
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
    slug: str,
    name: str,
    configuration: str | None,
    columns: Sequence[str],
    splits: Mapping[str, str],
    revision: str | None = None,
) -> HubRows:
    """Some columns of some splits of a data set. Code that comes with it is never run; the library has no way to.

    Args:
        slug: the task, for messages.
        name, configuration: on the hub.
        columns: those that are read.
        splits: our name of a split → the data set's own.
        revision: a branch, a tag or a commit; None for the main branch, or what the cache has where the hub is out of reach.

    Raises:
        DataError: it is not there, is gated, lacks a split or a column, or cannot be fetched.
    """
    import datasets
    from huggingface_hub.errors import HTTPError

    frames = {}
    reason = hub.offline()
    shown = "/".join(filter(None, (name, configuration)))
    try:
        builder = datasets.load_dataset_builder(name, configuration, revision=revision)
        builder.download_and_prepare()
        for ours, theirs in splits.items():
            if theirs not in (builder.info.splits or {}):
                has = ", ".join(map(str, builder.info.splits or ()))
                raise DataError(f"data: '{shown}' has no split '{theirs}' (it has: {has})", field="data")
            rows = builder.as_dataset(split=theirs)
            lacking = [column for column in columns if column not in rows.column_names]
            if lacking:
                has = ", ".join(rows.column_names)
                raise DataError(f"data: '{shown}' lacks the column {lacking[0]} (it has: {has})", field="data")
            frames[ours] = rows.select_columns(list(columns)).to_pandas()
    except DataError:
        raise
    except (datasets.exceptions.DatasetsError, HTTPError, OSError, ValueError, RuntimeError) as error:
        raise _explained(f"data: '{shown}', the data of '{slug}',", error, reason) from None
    commit = builder.hash if re.fullmatch(r"[0-9a-f]{40}", builder.hash or "") else None
    return HubRows(frames, commit)


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

"""Data sets of the Hugging Face hub, downloaded or from this machine's cache."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from isoviz import hub
from isoviz.errors import DataError, InputError, shortened

if TYPE_CHECKING:
    import datasets
    import pyarrow as pa

_REPOSITORY: Final = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*", re.ASCII)


def load(
    repository: str,
    configuration: str | None,
    splits: Sequence[str],
    subject: str,
    instead: str,
    *,
    field: str = "data",
) -> tuple[list[datasets.Dataset], str | None]:
    """The memory-mapped splits of a data set, of its main branch, or of what the cache has while the hub is unreachable; and its commit.

    Code that comes with a data set is never run; the library has no way to.

    Args:
        subject: the data set, the beginning of a sentence.
        instead: what else the user can do, for errors.

    Returns:
        One data set per split; the commit has 40 hex digits, or is None if the cache does not know it.

    Raises:
        DataError: it does not exist, is gated, lacks a split, or cannot be downloaded.
    """
    import datasets

    title = "/".join(filter(None, (repository, configuration)))
    reason = hub.offline()
    try:
        builder = (_cached if reason else datasets.load_dataset_builder)(repository, configuration)
        builder.download_and_prepare()
        present = builder.info.splits or {}
        if missing := [split for split in splits if split not in present]:
            has = ", ".join(map(str, present))
            raise DataError.at(field, f"'{title}' has no split '{missing[0]}' (it has: {has})")
        loaded = [builder.as_dataset(split=split) for split in splits]
    except DataError:
        raise
    except Exception as error:
        raise _not_loaded(subject, error, reason, instead, field) from None
    return loaded, builder.hash if re.fullmatch(r"[0-9a-f]{40}", builder.hash or "") else None


def _cached(name: str, configuration: str | None) -> datasets.DatasetBuilder:
    """The newest cached version of a data set. `load_dataset_builder` ends here too, after half a minute of retries, unless the
    whole process is in offline mode; that is no state to set for one load among others."""
    from datasets.packaged_modules.cache.cache import Cache

    dataset = name.split("/")[-1]
    return Cache(dataset_name=dataset, repo_id=name, config_name=configuration, version="auto", hash="auto")


def _not_loaded(subject: str, error: Exception, reason: str | None, instead: str, field: str) -> DataError:
    import datasets

    text = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    gated = "accept its terms on the hub, then log in with `hf auth login` or set HF_TOKEN"
    if reason:
        problem = f"is not on this machine and {reason};"
    elif "gated" in text.lower():
        problem = f"is gated: {gated}, or"
    elif isinstance(error, datasets.exceptions.DatasetNotFoundError):
        problem = "is not on the hub, or it is private and you are not logged in; check the spelling, or"
    else:
        problem = f"could not be downloaded from the hub ({text.rstrip('.')}); try again, or"
    return DataError(f"{subject} {problem} {instead}", field=field)


def table(name: str, field: str) -> pa.Table:
    """A whole split, by a name such as `owner/name:split` or `owner/name/configuration:split`.

    Raises:
        InputError: there is no such data set or split.
    """
    title, _, split = name.partition(":")
    owner, _, path_in_repository = title.partition("/")
    dataset, _, configuration = path_in_repository.partition("/")
    repository = f"{owner}/{dataset}"
    if not _REPOSITORY.fullmatch(repository):
        raise InputError.at(field, f"'{shortened(title)}' is not a data set of the hub; expected hub:owner/name:split")
    if Path(repository).exists():  # the library would read the folder, bypassing the file access rules
        raise InputError.at(field, f"'{repository}' is also a folder on this server; enter the path of a file in it")
    subject = f"{field}: '{shortened(title)}'"
    (rows,), _ = load(repository, configuration or None, [split or "train"], subject, "use a file instead", field=field)
    return rows.with_format("arrow")[:]

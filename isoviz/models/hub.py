"""Models of the Hugging Face hub and in its cache on this machine, through its own client. No torch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from isoviz.errors import ModelError
from isoviz.hub import cache_folder, reason, remembered
from isoviz.models import folders

Report = Callable[[int, int, str], None]
"""Called with bytes done, bytes in all, and what is being done."""

_REMEMBERED: Final = 60.0
_NAME: Final = re.compile(r"(?:[A-Za-z0-9][\w.-]{0,95}\b/)?[A-Za-z0-9][\w.-]{0,95}\b", re.ASCII)
_REVISION: Final = re.compile(r"[\w][\w./-]{0,199}", re.ASCII)


@dataclass(frozen=True)
class Remote:
    """A model on the hub at one commit.

    Attributes:
        name: the repository.
        revision: the commit, 40 hex digits, whatever branch or tag was requested.
        files: name and bytes of those that loading it needs.
        config: its `config.json`.
    """

    name: str
    revision: str
    files: tuple[tuple[str, int], ...]
    config: dict[str, Any]

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(count for _, count in self.files)


def parse(text: str) -> tuple[str, str | None] | None:
    """`org/name` or `org/name@revision` → (name, revision or None); None for what cannot be a hub id."""
    name, separator, revision = text.partition("@")
    if not _NAME.fullmatch(name) or ".." in name or "--" in name or name.endswith(".git"):
        return None
    if separator and (not _REVISION.fullmatch(revision) or ".." in revision):
        return None
    return name, revision or None


def look(name: str, revision: str | None = None) -> Remote:
    """What the hub has under that name: fetches `config.json` alone, and remembers its answer for a minute.

    Raises:
        ModelError: there is none, it is gated, or the hub cannot be asked.
    """
    return remembered(("model", name, revision), _REMEMBERED, lambda: _look_up(name, revision))


def _look_up(name: str, revision: str | None) -> Remote:
    from huggingface_hub import HfApi, hf_hub_download

    requested = f"{name}@{revision}" if revision else name
    with _in_our_terms(f"model: '{requested}'"):
        path = Path(hf_hub_download(name, "config.json", revision=revision, etag_timeout=10))
        commit = path.parent.name
        info = HfApi().model_info(name, revision=commit, files_metadata=True, timeout=10)
    siblings = info.siblings or ()
    files = tuple((file.rfilename, file.size or 0) for file in siblings if folders.is_wanted(file.rfilename))
    config = folders.config_of(path.parent)
    if config is None:
        raise ModelError.at("model", f"'{requested}' has a config.json that is not valid JSON")
    if problem := folders.problem_in({file.rfilename for file in siblings}, config):
        raise ModelError.at("model", f"'{requested}' {problem}")
    return Remote(name, commit, files, config)


def fetch(remote: Remote, report: Report = lambda *_: None) -> Path:
    """Download its files into the cache, with the client's progress bars; their folder. Complete files are not fetched again.

    File by file, not by `snapshot_download`: that one starts all files at once and, interrupted, ends only when they are all
    downloaded.

    Args:
        report: called before each file, and at the end.

    Raises:
        ModelError: the download broke off, and how far it was.
    """
    from huggingface_hub import hf_hub_download

    done, folder = 0, Path()
    for name, size in remote.files:
        report(done, remote.size, "downloading the model")
        with _in_our_terms(f"model: '{remote.name}'", done):
            folder = Path(hf_hub_download(remote.name, name, revision=remote.revision)).parents[name.count("/")]
        done += size
    report(remote.size, remote.size, "downloading the model")
    if folders.MODULES not in {name for name, _ in remote.files}:
        _has_modules(remote.name, remote.revision)  # the client caches a negative answer
    return folder


def lacks_modules(name: str, folder: Path) -> bool:
    """Whether a cached commit is without the sentence-transformers modules that the hub has for it: a library that reads bare
    transformers leaves such a folder behind.

    Asks the hub once per commit: the client caches that the file does not exist.

    Args:
        folder: of the commit in the cache.
    """
    if (folder / folders.MODULES).is_file():
        return bool(folders.missing_module_files(folder))
    from huggingface_hub import try_to_load_from_cache

    if try_to_load_from_cache(name, folders.MODULES, cache_dir=cache_folder(), revision=folder.name) is not None:
        return False  # the hub has none
    return remembered(("modules", name, folder.name), _REMEMBERED, lambda: _has_modules(name, folder.name))


def _has_modules(name: str, commit: str) -> bool:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, HTTPError

    try:
        hf_hub_download(name, folders.MODULES, revision=commit, etag_timeout=10)
    except (EntryNotFoundError, HTTPError, OSError):  # there are none, or no one knows
        return False
    return True


def cached() -> list[str]:
    """Names of the cached models that can be used, last used first: hub ids, with `@revision` where the main branch points elsewhere."""
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        cache = scan_cache_dir(cache_folder())
    except CacheNotFound:
        return []
    used: dict[str, float] = {}
    for repository in cache.repos:
        if repository.repo_type != "model":
            continue
        for revision in repository.revisions:
            weights = folders.has_weights(
                {file.file_name for file in revision.files}
            )  # else looked up, but never downloaded
            if weights and folders.problem(revision.snapshot_path) is None:
                named = next((ref for ref in sorted(revision.refs) if ref != "main"), revision.commit_hash)
                name = repository.repo_id if "main" in revision.refs else f"{repository.repo_id}@{named}"
                used[name] = repository.last_accessed
    return sorted(used, key=lambda name: (-used[name], name))


def find(name: str, revision: str | None) -> Path | None:
    """The folder of a model in the cache, complete or not; None if nothing of it is there."""
    from huggingface_hub import try_to_load_from_cache

    path = try_to_load_from_cache(name, "config.json", cache_dir=cache_folder(), revision=revision)
    return Path(path).parent if isinstance(path, str) else None


@contextmanager
def _in_our_terms(subject: str, done: int | None = None) -> Iterator[None]:
    """Turn what the client raises into a `ModelError`, one line beginning with `subject`.

    Args:
        subject: `model: 'name'`.
        done: bytes of the files before, of a download that may stop early.
    """
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        HFValidationError,
        HTTPError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
        XetDownloadError,
    )

    try:
        yield
    except GatedRepoError:
        problem = "is gated: accept its terms on its page of the hub, then log in with `hf auth login` or set HF_TOKEN"
    except RevisionNotFoundError:
        problem = "has no such revision on the hub; check the branch, tag or commit"
    except RepositoryNotFoundError:
        problem = "is not on the hub (or it is private, and you are not logged in); check the spelling"
    except HFValidationError:
        problem = "is neither a directory nor a hub id"
    except LocalEntryNotFoundError as error:
        cause = reason(error.__cause__ or error)
        problem = f"could not be downloaded: the hub did not answer ({cause}); try again later"
    except EntryNotFoundError:
        problem = "has no config.json on the hub, so transformers cannot load it"
    except (HTTPError, OSError, XetDownloadError) as error:
        after = "" if done is None else f": the download stopped after {done / 1e6:,.1f} MB"
        problem = f"could not be downloaded from the hub{after} ({reason(error)}); try again"
    else:
        return
    raise ModelError(f"{subject} {problem}", field="model")


def in_words(done: int, total: int, text: str) -> str:
    """The arguments of a `Report` as one text."""
    return f"{text}, {done / 1e6:,.1f} of {total / 1e6:,.1f} MB"

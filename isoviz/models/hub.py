"""The Hugging Face hub, through its own client: can it be asked, what has it, fetch what a model needs. No torch.

`HF_ENDPOINT`, `HF_HUB_OFFLINE`, `HF_HOME` and the token are the client's own and are read where it reads them.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from isoviz.errors import ModelError
from isoviz.models import folders

Tell = Callable[[int, int, str], None]
"""Called with bytes done, bytes in all, and what is being done."""

_PATIENCE: Final = 3.0
"""Seconds in which a hub that can be reached answers."""
_ASK_AGAIN: Final = 300.0
"""Seconds for which the answer counts: detected once, yet a server that runs for weeks notices a cable that was plugged in."""
_REMEMBERED: Final = 60.0
_TELL_EVERY: Final = 0.25
_TOLD_AT_MOST: Final = 200
"""Times that a download is told: each becomes an event of its run."""
_NAME: Final = re.compile(r"(?:[A-Za-z0-9][\w.-]{0,95}/)?[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_REVISION: Final = re.compile(r"[\w][\w./-]{0,199}", re.ASCII)
_asked: dict[str, tuple[float, str | None]] = {}
_seen: dict[tuple[str, str, str | None], tuple[float, Remote]] = {}


@dataclass(frozen=True)
class Remote:
    """A model on the hub at one commit.

    Attributes:
        name: the repository.
        revision: the commit, 40 hex digits, whatever branch or tag it was asked for by.
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


@dataclass(frozen=True)
class Match:
    """One answer of a search.

    Attributes:
        gated: its terms must be accepted on the hub before it can be fetched.
        problem: why it cannot be used, as far as the hub tells; None if nothing is known against it.
    """

    name: str
    family: str | None
    parameters: int | None
    downloads: int | None
    gated: bool
    problem: str | None


def parse(text: str) -> tuple[str, str | None] | None:
    """`org/name` or `org/name@revision` → (name, revision or None); None for what cannot be a hub id."""
    name, separator, revision = text.partition("@")
    if not _NAME.fullmatch(name) or ".." in name or "--" in name:
        return None
    if separator and (not _REVISION.fullmatch(revision) or ".." in revision):
        return None
    return name, revision or None


def cache_folder() -> Path:
    """Where the client keeps what it fetched."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def offline() -> str | None:
    """Why the hub cannot be asked, in words; None if it can. Asked once, and again after some minutes or after `ask_again`."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE or os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "TRUE", "YES", "ON"):
        return "the hub cannot be reached (HF_HUB_OFFLINE is set; start again without it to ask the hub)"
    moment, answer = _asked.get(constants.ENDPOINT, (None, None))
    if moment is None or time.monotonic() - moment > _ASK_AGAIN:
        answer = _unreachable(constants.ENDPOINT)
        _asked[constants.ENDPOINT] = (time.monotonic(), answer)
    return answer


def ask_again() -> None:
    """Forget what `offline` and `look` found."""
    _asked.clear()
    _seen.clear()


def look(name: str, revision: str | None = None) -> Remote:
    """What the hub has under that name: fetches `config.json` alone, and remembers its answer for a minute.

    Raises:
        ModelError: there is none, it is gated, or the hub cannot be asked.
    """
    from huggingface_hub import HfApi, constants, hf_hub_download

    key = (constants.ENDPOINT, name, revision)
    moment, remote = _seen.get(key, (0.0, None))
    if remote and time.monotonic() - moment < _REMEMBERED:
        return remote
    shown = f"{name}@{revision}" if revision else name
    with _in_our_terms(f"model: '{shown}'"):
        path = Path(hf_hub_download(name, "config.json", revision=revision, etag_timeout=10))
        commit = path.parent.name
        found = HfApi().model_info(name, revision=commit, files_metadata=True, timeout=10)
    files = tuple((one.rfilename, one.size or 0) for one in found.siblings or () if folders.is_wanted(one.rfilename))
    config = folders.config_of(path.parent)
    if config is None:
        raise ModelError(f"model: '{shown}' has a config.json that is not valid JSON", field="model")
    problem = folders.problem_in({one.rfilename for one in found.siblings or ()}, config)
    if problem:
        raise ModelError(f"model: '{shown}' {problem}", field="model")
    remote = Remote(name, commit, files, config)
    _seen[key] = (time.monotonic(), remote)
    return remote


def fetch(remote: Remote, tell: Tell | None = None) -> Path:
    """Bring its files into the cache, and give their folder. Files that are complete there are not fetched again.

    Args:
        tell: told a few times per second.

    Raises:
        ModelError: the download broke off, and how far it was.
    """
    from huggingface_hub import hf_hub_download

    meter = _Meter(remote.size, tell)
    folder = Path()
    for name, size in remote.files:
        meter.begin(size)
        with _in_our_terms(f"model: '{remote.name}'", meter.told):
            found = hf_hub_download(remote.name, name, revision=remote.revision, tqdm_class=meter.bar())
        folder = Path(found).parent
        meter.end()
    return folder


def search(text: str, limit: int = 20) -> list[Match]:
    """Models whose name holds the text, the most fetched first.

    Raises:
        ModelError: the hub cannot be asked.
    """
    from huggingface_hub import HfApi

    if reason := offline():
        raise ModelError(f"model: {reason}", field="model")
    with _in_our_terms(f"model: the search for '{text}'"):
        found = list(
            HfApi().list_models(
                search=text, limit=limit, sort="downloads", expand=["config", "downloads", "gated", "safetensors"]
            )
        )
    return [_match(one) for one in found]


@contextmanager
def _in_our_terms(what: str, far: Callable[[], str] | None = None) -> Iterator[None]:
    """Turn what the client raises into a `ModelError`, one line beginning with `what`.

    Args:
        what: `model: 'name'`.
        far: how far a download was, for one that breaks off.
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
        said = "is gated: accept its terms on its page of the hub, then log in with `hf auth login` or set HF_TOKEN"
    except RevisionNotFoundError:
        said = "has no such revision on the hub; name a branch, a tag or a commit that it has"
    except RepositoryNotFoundError:
        said = "is not on the hub (or it is private, and you are not logged in); look at the spelling"
    except HFValidationError:
        said = "is neither a directory nor a hub id"
    except LocalEntryNotFoundError as error:
        said = (
            f"could not be fetched, for the hub did not answer ({_reason(error.__cause__ or error)}); try again later"
        )
    except EntryNotFoundError:
        said = "on the hub has no config.json, so it is no model that transformers can load"
    except (HTTPError, OSError, XetDownloadError) as error:
        after = f": the download broke off after {far()}" if far else ""
        said = f"could not be had from the hub{after} ({_reason(error)}); try again"
    else:
        return
    raise ModelError(f"{what} {said}", field="model")


def in_words(done: int, total: int, text: str) -> str:
    """What a `Tell` is told, as one text."""
    return f"{text}, {_megabytes(done)} of {_megabytes(total)} MB"


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f}" if count < 1e8 else f"{count / 1e6:,.0f}"


class _Meter:
    """Counts the bytes of all files together and tells somebody, now and then."""

    def __init__(self, total: int, tell: Tell | None) -> None:
        self.total, self.tell = total, tell
        self.before = self.now = self.size = 0
        self.step, self.last = 0, 0.0

    def begin(self, size: int) -> None:
        self.size, self.now = size, 0
        self._say(force=self.before == 0)

    def end(self) -> None:
        self.before += self.size
        self.now = 0
        self._say(force=self.before >= self.total)

    def told(self) -> str:
        return f"{_megabytes(self.before + self.now)} of {_megabytes(self.total)} MB"

    def bar(self) -> Any:
        """A class of progress bars that draw nothing and report here."""
        from tqdm import tqdm

        meter = self

        class Silent(tqdm):
            def __init__(self, *arguments: Any, **options: Any) -> None:
                super().__init__(*arguments, **{**options, "disable": True})

            def update(self, n: float | None = 1) -> bool | None:
                meter.now += int(n or 0)
                meter._say()
                return None

        return Silent

    def _say(self, force: bool = False) -> None:
        done = min(self.before + self.now, self.total)
        step = _TOLD_AT_MOST * done // max(1, self.total)
        if self.tell and (force or (step > self.step and time.monotonic() - self.last > _TELL_EVERY)):
            self.step, self.last = step, time.monotonic()
            self.tell(done, self.total, "downloading the model")


def _unreachable(endpoint: str) -> str | None:
    from huggingface_hub.errors import HTTPError
    from huggingface_hub.utils import get_session

    try:
        get_session().head(endpoint, timeout=_PATIENCE)  # any answer is one; the client knows of proxies
    except (HTTPError, OSError) as error:
        host = urlsplit(endpoint).netloc or endpoint
        return f"the hub cannot be reached ({host}: {_reason(error)})"
    return None


def _reason(error: BaseException) -> str:
    text = " ".join(line.strip() for line in str(error).splitlines() if line.strip())
    text = re.sub(r"^\[[^]]*\] *", "", text) or type(error).__name__
    return text if len(text) <= 160 else text[:159] + "…"


def _match(one: Any) -> Match:
    config = one.config or {}
    family = config.get("model_type")
    problem = None
    if family is None:
        problem = "names no transformers family"
    elif one.safetensors is None:
        problem = "has no safetensors"
    parameters = None if one.safetensors is None else one.safetensors.total
    return Match(one.id, family, parameters, one.downloads, bool(one.gated), problem)

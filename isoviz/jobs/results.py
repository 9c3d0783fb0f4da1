"""Results of jobs on disk: one folder per key, written atomically by a rename; above a limit the least recently seen are removed."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz.demo import EXAMPLE, EXAMPLES
from isoviz.errors import InputError
from isoviz.home import home
from isoviz.jobs.progress import read_json, write_json

FACTS: Final = "profile.json"
ARRAYS: Final = "arrays.safetensors"
ERROR: Final = "error.json"
"""In the folder of a job: why it has no result."""
LIMIT: Final = 2 * 2**30
"""Bytes that a store may take on disk; `ISOVIZ_VIEWS_LIMIT` in GiB overrides it."""


def byte_limit() -> int:
    """Bytes that a store may take; `InputError` for an `ISOVIZ_VIEWS_LIMIT` that is no number of GiB."""
    setting = os.environ.get("ISOVIZ_VIEWS_LIMIT", "").strip()
    if not setting:
        return LIMIT
    try:
        gibibytes = float(setting)
    except ValueError:
        gibibytes = -1.0
    if not 0 < gibibytes < 1e6:
        raise InputError(f"ISOVIZ_VIEWS_LIMIT: must be a number of GiB above 0 (got '{setting}')")
    return int(gibibytes * 2**30)


@dataclass(frozen=True)
class Result:
    """The result of a job.

    Attributes:
        folder: where it lies; its name is the key.
        facts: JSON. What it lists under `pending` follows while the job runs, and nothing else changes.
    """

    folder: Path
    facts: Mapping[str, Any] = field(repr=False)

    @property
    def pending(self) -> tuple[str, ...]:
        """Facts still to come."""
        return tuple(self.facts.get("pending", ()))

    @cached_property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """All arrays by name."""
        from safetensors.numpy import load_file

        return load_file(self.folder / ARRAYS)


@dataclass(frozen=True)
class ResultStore:
    """A folder of results, and of the jobs that are on their way to one.

    Everything counts towards the limits: results, failed jobs, and what a job was given. What is waiting or running stays.

    Attributes:
        name: of the folder in `isoviz.home.home()`.
        limit: bytes at most.
        most: results and failures at most; None for any number.
        failure_seconds: for which a failure is kept.
        formerly: folders in it of older versions, which `shrink` removes.
    """

    name: str
    limit: Callable[[], int] = byte_limit
    most: int | None = None
    failure_seconds: float = 7 * 86400.0
    formerly: tuple[str, ...] = ()

    @property
    def root(self) -> Path:
        """Where it lies."""
        return home() / self.name

    def job_folder(self, key: str) -> Path:
        """Of the job that makes the result of a key."""
        return self.root / "jobs" / key

    def find(self, key: str) -> Result | None:
        """The result of a key, None if there is none; looking keeps it from being the next to go. That of an example ships."""
        shipped = key.startswith(EXAMPLE)
        folder = EXAMPLES / self.name / key if shipped else self.root / "results" / key
        facts = read_json(folder / FACTS)
        if facts is None:
            return None
        if shipped:
            return Result(folder, facts)
        with contextlib.suppress(OSError):  # removed this moment, or another user's
            os.utime(folder)
        return Result(folder, facts)

    def publish(self, key: str, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Give a result its place by one rename; of one that is there already, only what was pending is replaced."""
        from safetensors.numpy import save_file

        if self._complete(key, facts):
            return
        final = self.root / "results" / key
        partial = final.with_name(f".new-{key}-{secrets.token_hex(4)}")
        partial.mkdir(parents=True)
        try:
            save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, partial / ARRAYS)
            write_json(partial / FACTS, facts)
            os.rename(partial, final)
        except OSError:
            if not self._complete(key, facts):  # else the same content came from elsewhere
                raise
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def _complete(self, key: str, facts: Mapping[str, Any]) -> bool:
        """Whether a result is there; it gets the facts if they have more than its own."""
        result = self.find(key)
        if result is None:
            return False
        if len(facts.get("pending", ())) < len(result.pending):
            try:
                write_json(result.folder / FACTS, facts)
            except FileNotFoundError:  # removed this moment
                return False
        return True

    def forget(self, key: str) -> None:
        """Remove the result of a key, if there is one."""
        _remove(self.root / "results" / key)

    def keys(self, where: Callable[[Mapping[str, Any]], bool]) -> list[str]:
        """Of the results whose facts are such."""
        found = ((folder.name, read_json(folder / FACTS)) for folder in self._folders("results"))
        return [key for key, facts in found if facts is not None and where(facts)]

    def forget_job(self, key: str) -> None:
        """Remove the folder of a job, if there is one; a result stays."""
        _remove(self.job_folder(key))

    def size(self) -> int:
        """Bytes of all results, failures and inputs."""
        return sum(_bytes(folder) for folder in (*self._folders("results"), *self._folders("jobs")))

    def shrink(self, keep: str | None = None) -> list[str]:
        """Remove failures that are old, then what no one looked at for longest, until the limits are kept.

        Call it while no job of this store can be started (`isoviz.jobs.scheduling.exclusive`).

        Args:
            keep: a key whose result stays, however large it is.

        Returns:
            The keys that are gone.
        """
        failures = [folder for folder in self._folders("jobs") if (folder / ERROR).exists()]
        sizes = {folder: _bytes(folder) for folder in (*self._folders("results"), *self._folders("jobs"))}
        underway = [folder for folder in sizes if folder.parent.name == "jobs" and folder not in failures]
        total, count = sum(sizes.values()), len(sizes) - len(underway)
        removed = []
        for folder in sorted(set(sizes) - set(underway), key=_last_seen):
            old = folder in failures and time.time() - _last_seen(folder) > self.failure_seconds
            if not old and total <= self.limit() and (self.most is None or count <= self.most):
                continue
            if folder.name == keep and folder not in failures:
                continue
            if _remove(folder):
                removed.append(folder.name)
            total -= sizes[folder]
            count -= 1
        for former in self.formerly:
            shutil.rmtree(self.root / former, ignore_errors=True)
        for part in ("results", "jobs"):  # those of a process that was killed on its way too
            for aside in (self.root / part).glob(".*"):
                if aside.name.startswith(".gone-") or time.time() - _last_seen(aside) > 86400:
                    shutil.rmtree(aside, ignore_errors=True)
        return removed

    def _folders(self, part: str) -> list[Path]:
        try:
            return [path for path in (self.root / part).iterdir() if not path.name.startswith(".")]
        except FileNotFoundError:
            return []


def _remove(folder: Path) -> bool:
    """Whether it was there. Renamed first: a reader finds all of it or nothing."""
    aside = folder.with_name(f".gone-{folder.name}-{secrets.token_hex(4)}")
    try:
        os.rename(folder, aside)
    except FileNotFoundError:
        return False
    shutil.rmtree(aside, ignore_errors=True)
    return True


def _last_seen(folder: Path) -> float:
    """Of a failure, when it failed."""
    for path in (folder / ERROR, folder):
        with contextlib.suppress(FileNotFoundError):
            return path.stat().st_mtime
    return 0.0


def _bytes(folder: Path) -> int:
    total = 0
    with contextlib.suppress(FileNotFoundError):
        for path in folder.iterdir():
            with contextlib.suppress(FileNotFoundError):
                total += path.stat().st_size
    return total

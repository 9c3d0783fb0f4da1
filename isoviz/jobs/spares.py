"""A spare: a process that has imported what the next job needs, so that it begins within a second.

A run gets a fork of it on Linux; otherwise a job takes the spare itself, and another one is started. A spare holds half a gigabyte, so
there is one only while it is likely to be needed soon, and one for all apps that work in the same folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import psutil
from filelock import FileLock, Timeout

from isoviz.jobs.processes import Spare, Worker, is_alive

MEMORY: Final = 2 * 2**30
"""Bytes that must be free for a spare to be kept: it holds as much as torch and transformers take."""
IDLE_SECONDS: Final = 600.0
"""After which an unused spare ends."""
PREPARE_SECONDS: Final = 60.0
"""The longest that a run waits for the imports of a spare."""
RETRY_SECONDS: Final = 30.0
"""Before another one is started where the last one ended by itself."""


class Expectation:
    """Until when someone may ask for work any moment: the time of a file, which every app on this folder may put off.

    Args:
        path: of the file; its folder is made.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def renew(self, seconds: float = IDLE_SECONDS) -> None:
        """Someone is about to ask for work: have a spare within seconds, and keep it for so long after the last such call."""
        until = time.time() + seconds
        with contextlib.suppress(OSError):  # a full disk: what begins then begins without a spare
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.touch()
            os.utime(self.path, (until, until))

    @property
    def holds(self) -> bool:
        """Whether work is expected now."""
        try:
            return time.time() < self.path.stat().st_mtime
        except OSError:
            return False


@dataclass(frozen=True)
class Waiting:
    """A spare that waits, as its file tells other apps.

    Attributes:
        pid, started: the process.
        prepare: what it has imported.
        surroundings: those it was started in.
    """

    pid: int
    started: float
    prepare: str
    surroundings: str


def waiting_elsewhere(path: Path, prepare: str) -> bool:
    """Whether the app that keeps the spare of this file has one that a job of ours could have.

    Args:
        path: the keeper's `file`.
        prepare: what the job needs to be imported.
    """
    try:
        spare = Waiting(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return False
    return (spare.prepare, spare.surroundings) == (prepare, surroundings()) and is_alive(spare.pid, spare.started)


class SpareKeeper:
    """Keeps at most one spare, and none where another app's keeper has the place. Call `tend` several times a second.

    Args:
        prepare: what it imports, see `isoviz.jobs.processes.Spare`.
        slot: the device slot it is for; `any` for all.
        log: the file for the output of the nth spare until it has work; the one before may still be writing to its own.
        place: what apps share: `PLACE.expected`, `PLACE.lock` and `PLACE.json` (the spare that waits).
        fork: see `isoviz.jobs.processes.Spare`.
    """

    def __init__(self, prepare: str, slot: str, log: Callable[[int], Path], place: Path, *, fork: bool = False) -> None:
        self.prepare = prepare
        self.expectation = Expectation(place.with_name(f"{place.name}.expected"))
        self.file = place.with_name(f"{place.name}.json")
        self._slot = slot
        self._log = log
        self._fork = fork
        # taken in the thread that tends, let go of in the one that closes
        self._place = FileLock(place.with_name(f"{place.name}.lock"), thread_local=False)
        self._lock = threading.Lock()
        self._spare: Spare | None = None
        self._surroundings = ""
        self._due = 0.0
        self._count = 0
        self._closed = False

    @property
    def pid(self) -> int | None:
        """Its process id, if there is one."""
        return None if self._spare is None else self._spare.pid

    @property
    def preparing(self) -> bool:
        """Whether a spare that will soon be able to fork is still importing: sooner than a new process, which would import the same."""
        spare = self._spare
        return spare is not None and spare.forks is None and time.time() - spare.started < PREPARE_SECONDS

    def postpone(self, seconds: float) -> None:
        """Start none for so long: importing takes a processor for some seconds, from what has just begun."""
        self._due = time.monotonic() + seconds

    def tend(self) -> int | None:
        """Start one where one is due, let go of one that no one expects any more.

        Returns:
            The exit code of one that ended by itself, once.
        """
        with self._lock:
            ended = None
            if self._spare is not None and self._spare.gone:
                ended = self._spare.exit_code
                self._let_go()
                self.postpone(RETRY_SECONDS)
            expected = self.expectation.holds
            if self._closed or not (expected or (self._spare is not None and self._spare.in_use)):
                self._end()
            elif self._spare is None and time.monotonic() >= self._due and self._may_start():
                self._spare = self.new()
                self._announce(self._spare)
            return ended

    def take(self) -> Worker | None:
        """A fork of the spare or the spare itself, if it lives and has the surroundings that a new process would have; the caller's."""
        with self._lock:
            spare = self._spare
            if spare is not None and spare.forks and self._surroundings == surroundings():
                with contextlib.suppress(OSError):
                    return spare.fork()
            spare = self._let_go()
            if spare is None or spare.gone:
                return None
            if spare.forks or self._surroundings != surroundings():
                spare.dismiss()
                return None
            return spare

    def new(self) -> Spare:
        """Another one, whether or not there is one; the caller's."""
        self._count += 1
        self._surroundings = surroundings()
        return Spare(self.prepare, self._slot, self._log(self._count), fork=self._fork)

    def close(self) -> None:
        """End it, and start no other."""
        with self._lock:
            self._closed = True
            self._end()

    def _may_start(self) -> bool:
        """Whether memory is not short, and the place is ours: it stays so until no one expects work."""
        if os.environ.get("ISOVIZ_SPARES", "").strip().lower() == "off":
            return False
        if psutil.virtual_memory().available < MEMORY:
            return False
        if not self._place.is_locked:
            with contextlib.suppress(Timeout, OSError):
                self._place.acquire(timeout=0)
        return self._place.is_locked

    def _announce(self, spare: Spare) -> None:
        announcement = asdict(Waiting(spare.pid, spare.started, self.prepare, self._surroundings))
        partial = self.file.with_suffix(".partial")
        with contextlib.suppress(OSError):  # then other apps start processes of their own
            partial.write_text(json.dumps(announcement), encoding="utf-8")
            partial.replace(self.file)

    def _let_go(self) -> Spare | None:
        spare, self._spare = self._spare, None
        if spare is not None:
            self.file.unlink(missing_ok=True)
        return spare

    def _end(self) -> None:
        spare = self._let_go()
        if spare is not None:
            spare.dismiss()
        if self._place.is_locked:
            self._place.release()


def surroundings() -> str:
    """Sixteen hex digits of what decides, in the environment, where models, data and devices are; it may hold passwords."""
    chosen = sorted(entry for entry in os.environ.items() if entry[0].startswith(("ISOVIZ_", "HF_", "CUDA_")))
    return hashlib.sha256(repr(chosen).encode()).hexdigest()[:16]

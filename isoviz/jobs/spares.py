"""Spare processes that have already imported what the next job needs, so that it starts within a second.

On Linux, a run gets a fork of the spare; otherwise a job takes the spare itself, and another one is started. A spare needs half a
gigabyte, so there is at most one, and only while it is likely to be needed soon.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil

from isoviz.jobs.processes import Spare, Worker

MEMORY: Final = 2 * 2**30
"""Free bytes required to keep a spare, which has torch and transformers in memory."""
IDLE_SECONDS: Final = 600.0
"""Seconds after which an unused spare ends."""
PREPARE_SECONDS: Final = 60.0
"""Most seconds that a run waits for a spare's imports."""
RETRY_SECONDS: Final = 30.0
"""Seconds before starting another spare if the last one ended unexpectedly."""


class SpareKeeper:
    """Keeps at most one spare. Call `check` several times a second.

    Args:
        prepare: the spare's preparation, see `isoviz.jobs.processes.Spare`.
        slot: its device slot; `any` for all.
        log: log file of the nth spare until it has work, because the previous one may still be writing to its log.
        fork: see `isoviz.jobs.processes.Spare`.
    """

    def __init__(self, prepare: str, slot: str, log: Callable[[int], Path], *, fork: bool = False) -> None:
        self.prepare = prepare
        self._expected_until = 0.0
        self._slot = slot
        self._log = log
        self._fork = fork
        self._lock = threading.Lock()
        self._spare: Spare | None = None
        self._due = 0.0
        self._count = 0
        self._closed = False

    @property
    def pid(self) -> int | None:
        """Its process id, if there is one."""
        return None if self._spare is None else self._spare.pid

    @property
    def preparing(self) -> bool:
        """Whether a spare is still importing but will be able to fork sooner than a new process could start."""
        spare = self._spare
        return spare is not None and spare.forks is None and time.time() - spare.started < PREPARE_SECONDS

    def expect(self) -> None:
        """Expect work soon: provide a spare within seconds, and keep it for `IDLE_SECONDS` after the last call."""
        self._expected_until = time.monotonic() + IDLE_SECONDS

    def postpone(self, seconds: float) -> None:
        """Start no spare for this many seconds, because its imports would slow down the work that has just started."""
        self._due = time.monotonic() + seconds

    def check(self) -> int | None:
        """Start a spare if work is expected; end it otherwise.

        Returns:
            The exit code of a spare that ended unexpectedly, once.
        """
        with self._lock:
            ended = None
            if self._spare is not None and self._spare.gone:
                ended = self._spare.exit_code
                self._release()
                self.postpone(RETRY_SECONDS)
            expected = time.monotonic() < self._expected_until
            if self._closed or not (expected or (self._spare is not None and self._spare.in_use)):
                self._end()
            elif self._spare is None and time.monotonic() >= self._due and _may_start():
                self._spare = self.new()
            return ended

    def take(self) -> Worker | None:
        """A fork of the spare or the spare itself, owned by the caller, if it is alive."""
        with self._lock:
            spare = self._spare
            if spare is not None and spare.forks:
                with contextlib.suppress(OSError):
                    return spare.fork()
            spare = self._release()
            if spare is None or spare.gone:
                return None
            if spare.forks:
                spare.dismiss()
                return None
            return spare

    def new(self) -> Spare:
        """A new spare owned by the caller, in addition to the kept one."""
        self._count += 1
        return Spare(self.prepare, self._slot, self._log(self._count), fork=self._fork)

    def close(self) -> None:
        """End the spare, and start no other."""
        with self._lock:
            self._closed = True
            self._end()

    def _release(self) -> Spare | None:
        spare, self._spare = self._spare, None
        return spare

    def _end(self) -> None:
        spare = self._release()
        if spare is not None:
            spare.dismiss()


def _may_start() -> bool:
    """Whether the operator allows spares, and there is enough memory."""
    if os.environ.get("ISOVIZ_SPARES", "").strip().lower() == "off":
        return False
    return bool(psutil.virtual_memory().available >= MEMORY)

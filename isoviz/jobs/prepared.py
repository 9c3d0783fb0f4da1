"""A prepared worker, which has already imported what the next job needs, so that it starts within a second.

On Linux, a run gets a fork of it; otherwise a job takes the worker itself, and another one is started. It needs half a gigabyte, so
there is at most one, and only while it is likely to be needed soon.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import psutil

from isoviz.jobs.processes import Process, Worker

MEMORY: Final = 2 * 2**30
"""Free bytes required to keep a prepared worker, which has torch and transformers in memory."""
IDLE_SECONDS: Final = 600.0
"""Seconds after which an unused one ends."""
PREPARE_SECONDS: Final = 60.0
"""Most seconds that a run waits for its imports."""
RETRY_SECONDS: Final = 30.0
"""Seconds before starting another one if the last one ended unexpectedly."""

_log = logging.getLogger(__name__)


class PreparedWorker:
    """At most one prepared worker. Call `check` several times a second.

    Args:
        prepare, slot, fork: see `isoviz.jobs.processes.Worker`.
        log: log file of the nth worker until it has work, because the previous one may still be writing to its log.
    """

    def __init__(self, prepare: str, slot: str, log: Callable[[int], Path], *, fork: bool = False) -> None:
        self.prepare = prepare
        self._expected_until = 0.0
        self._slot = slot
        self._log = log
        self._fork = fork
        self._lock = threading.Lock()
        self._worker: Worker | None = None
        self._due = 0.0
        self._count = 0
        self._closed = False

    @property
    def pid(self) -> int | None:
        """Its process id, if there is one."""
        return None if self._worker is None else self._worker.pid

    @property
    def preparing(self) -> bool:
        """Whether it is still importing but will be able to fork sooner than a new process could start."""
        worker = self._worker
        return worker is not None and worker.forks is None and time.time() - worker.started < PREPARE_SECONDS

    def expect(self) -> None:
        """Expect work soon: provide a worker within seconds, and keep it for `IDLE_SECONDS` after the last call."""
        self._expected_until = time.monotonic() + IDLE_SECONDS

    def postpone(self, seconds: float) -> None:
        """Start none for this many seconds, because its imports would slow down the work that has just started."""
        self._due = time.monotonic() + seconds

    def check(self) -> None:
        """Start a worker if work is expected; end it otherwise."""
        with self._lock:
            if self._worker is not None and self._worker.gone:
                _log.warning("slot %s: the prepared worker ended with %s", self._slot, self._worker.exit_code)
                self._worker = None
                self.postpone(RETRY_SECONDS)
            expected = time.monotonic() < self._expected_until
            if self._closed or not (expected or (self._worker is not None and self._worker.in_use)):
                self._end()
            elif self._worker is None and time.monotonic() >= self._due and _may_start():
                self._count += 1
                log = self._log(self._count)
                log.unlink(missing_ok=True)
                self._worker = Worker(self.prepare, self._slot, log, fork=self._fork)

    def order(self, call: str, arguments: Mapping[str, Any], log: Path) -> Process:
        """Give an order to the prepared worker, or to a new one; arguments and result as of `Worker.order`."""
        with self._lock:
            if self._worker is not None and (forks := self._worker.forks) is not False:
                with contextlib.suppress(OSError):
                    if forks:
                        return self._worker.order(call, arguments, log)
                self._end()  # it is dead, or takes too long to prepare
        worker = self.take() or Worker(self.prepare, self._slot, log)
        return worker.order(call, arguments, log)

    def take(self) -> Worker | None:
        """The prepared worker, from now on the caller's, if it is alive."""
        with self._lock:
            worker, self._worker = self._worker, None
            return None if worker is None or worker.gone else worker

    def close(self) -> None:
        """End the worker, and start no other."""
        with self._lock:
            self._closed = True
            self._end()

    def _end(self) -> None:
        if self._worker is not None:
            self._worker.dismiss()
            self._worker = None


def _may_start() -> bool:
    if os.environ.get("ISOVIZ_SPARES", "").strip().lower() == "off":
        return False
    return bool(psutil.virtual_memory().available >= MEMORY)

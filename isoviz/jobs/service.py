"""The app's thread for jobs: starts waiting jobs, maintains the spare, and removes old results."""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import Final

from isoviz.home import home
from isoviz.jobs import queue, scheduling
from isoviz.jobs.processes import reap
from isoviz.jobs.spares import SpareKeeper

TICK_SECONDS: Final = 0.2
SWEEP_SECONDS: Final = 600.0
AFTER_SECONDS: Final = 3.0
"""Seconds between the end of a job and the next spare, while the page draws the result."""
ALONE_SECONDS: Final = 20.0
"""Seconds after the start of a job without starting a spare, whose imports would slow the job down."""

_log = logging.getLogger(__name__)


class JobService:
    """Runs the jobs of this home while the app is alive. Jobs left by the last app wait for the next one.

    Args:
        prepare: the spare's preparation, see `isoviz.jobs.processes.Spare`.
    """

    def __init__(self, prepare: str) -> None:
        # apps of one home share one spare but have separate logs, because its keeper may change while an old spare still writes
        log = f"spare-{os.getpid()}"
        folder = home() / "jobs"
        self._spare = SpareKeeper(
            prepare, "any", lambda count: folder / "logs" / f"{log}-{count % 2}.log", folder / "spare"
        )
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="jobs", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        scheduling.spare = self._spare
        scheduling.register_app()
        self._thread.start()

    def expect(self) -> None:
        """Keep a spare ready, because a page expects background jobs."""
        self._spare.expect()

    def close(self) -> None:
        """Stop the thread, the spare and, unless another app is alive, the job processes."""
        self._closing.set()
        self._thread.join()
        scheduling.spare = None
        self._spare.close()
        scheduling.close_app()

    def _serve(self) -> None:
        sweep_due = 0.0
        while not self._closing.wait(TICK_SECONDS):
            try:
                reap()
                if any(
                    process.working and time.time() - process.since < ALONE_SECONDS
                    for process in scheduling.processes()
                ):
                    self._spare.postpone(AFTER_SECONDS)
                scheduling.dispatch()
                self._spare.check()
                if time.monotonic() >= sweep_due:
                    scheduling.adopt()
                    queue.sweep()
                    sweep_due = time.monotonic() + SWEEP_SECONDS
            except Exception:  # the service must survive any error and retries
                _log.exception("the job service")
                self._closing.wait(5 * TICK_SECONDS)

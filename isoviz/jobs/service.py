"""The app's thread for jobs: starts jobs that waited for memory, maintains the prepared worker, and removes what is old."""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import Final

from isoviz.home import home
from isoviz.jobs import queue
from isoviz.jobs.prepared import PreparedWorker
from isoviz.jobs.processes import reap

TICK_SECONDS: Final = 0.2
SWEEP_SECONDS: Final = 600.0
AFTER_SECONDS: Final = 3.0
"""Seconds between the end of a job and the next prepared worker, while the page draws the result."""
ALONE_SECONDS: Final = 20.0
"""Seconds after the start of a job without starting a prepared worker, whose imports would slow the job down."""

_log = logging.getLogger(__name__)


class JobService:
    """Serves the jobs of this home while the app is alive.

    Args:
        prepare: the worker's preparation, see `isoviz.jobs.processes.Worker`.
    """

    def __init__(self, prepare: str) -> None:
        logs = home() / "jobs" / "logs"  # one per app: apps may share this home
        self._prepared = PreparedWorker(prepare, "any", lambda count: logs / f"prepared-{os.getpid()}-{count % 2}.log")
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="jobs", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        queue.prepared = self._prepared
        self._thread.start()

    def expect(self) -> None:
        """Keep a worker ready, because a page expects background jobs."""
        self._prepared.expect()

    def close(self) -> None:
        """Stop the thread, the prepared worker and all jobs."""
        self._closing.set()
        self._thread.join()
        queue.prepared = None
        self._prepared.close()
        queue.close()

    def _serve(self) -> None:
        sweep_due = 0.0
        while not self._closing.wait(TICK_SECONDS):
            try:
                reap()
                working = [process for process in queue.processes() if process.entry is not None]
                if any(time.time() - process.since < ALONE_SECONDS for process in working):
                    self._prepared.postpone(AFTER_SECONDS)
                queue.dispatch()
                self._prepared.check()
                if time.monotonic() >= sweep_due:
                    queue.sweep()
                    sweep_due = time.monotonic() + SWEEP_SECONDS
            except Exception:  # the service must survive any error and retries
                _log.exception("the job service")
                self._closing.wait(5 * TICK_SECONDS)

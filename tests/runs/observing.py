"""Watching runs and the processes that train them: every wait is for a condition, with a limit that only a hang reaches."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import psutil
import pytest

from isoviz.jobs.processes import Process, is_alive
from isoviz.runs.store import RunRow, Store

PATIENCE: Final = 120.0
"""Seconds that anything may take on a machine that is busy with something else. Less than pytest's limit for a test."""
LONG: Final[dict[str, Any]] = {"does": "finish", "seconds": 600.0}
"""Parameters of a run that ends only on request."""
TOLD: Final[dict[str, Any]] = {"does": "finish when told"}
"""Parameters of a run that finishes on `finish`."""

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and groups as POSIX has them")


def until(true: Callable[[], object], seconds: float = PATIENCE) -> float:
    """Wait for something; returns how long it took."""
    begin = time.monotonic()
    while not true():
        assert time.monotonic() - begin < seconds, "it did not happen in time"
        time.sleep(0.01)
    return time.monotonic() - begin


def within(limit: float, measure: Callable[[], float], tries: int = 6) -> None:
    """Check that an operation is fast enough on an idle machine.

    A busy machine can delay single attempts; a slow operation is late in all of them.

    Args:
        limit: seconds.
        measure: runs the operation once, with its checks; returns the seconds.
    """
    took: list[float] = []
    while not took or took[-1] >= limit:
        assert len(took) < tries, f"never within {limit} s: {took}"
        took.append(measure())


def ended(store: Store, run_id: str) -> RunRow:
    """The run when it has ended."""
    until(lambda: store.get(run_id).ended is not None)
    return store.get(run_id)


def finish(store: Store, run_id: str) -> None:
    """Make a run of `TOLD` finish."""
    (store.folder_of(run_id) / "finish").touch()


def kinds(store: Store, run_id: str) -> list[str]:
    """The kinds of a run's events, in order."""
    return [event["kind"] for _, event in store.events(run_id)]


def gone(pid: int) -> bool:
    """Whether a process has ended."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def kill_family(parent: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Kill a process and all its descendants; returns them when the process itself has ended."""
    family = [psutil.Process(parent.pid), *psutil.Process(parent.pid).children(recursive=True)]
    for process in family:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    parent.wait()
    return family


def workers() -> list[psutil.Process]:
    """The living worker processes that this process started, including spares and their forks."""
    pids = []
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it ended while we looked
            if child.status() != psutil.STATUS_ZOMBIE and "isoviz.jobs.worker" in " ".join(child.cmdline()):
                pids.append(child)
    return pids


def end_workers(store: Store) -> None:
    """End what a failed test left running: it must not outlive the test."""
    for row in store.list(status="running"):
        if row.pid not in (None, os.getpid()) and row.pid_started is not None and is_alive(row.pid, row.pid_started):
            Process(row.pid, row.pid_started).kill()

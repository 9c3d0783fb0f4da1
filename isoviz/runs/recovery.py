"""Detecting runs whose process has vanished, and their error messages.

The app checks every few seconds, and every command checks first, so that a store is consistent even without an app.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Collection
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from isoviz.errors import StoreError
from isoviz.events import Event, Lost
from isoviz.home import make_private
from isoviz.jobs.processes import is_alive
from isoviz.runs.identity import pid_scope
from isoviz.runs.store import RunRow, Store, StoreUnavailableError

SILENT_SECONDS: Final = 30.0
QUIET_SECONDS: Final = 3.0  # heartbeats come every second; check runs that are silent for this long
_RESUME: Final = "Resume continues from the last checkpoint."
_MEMORY: Final = "The system does this when memory runs out: try a smaller batch size or a shorter longest input. "
_CRASH: Final = (
    "A library crashed, perhaps because memory ran out: see the run's log, try a smaller batch size or model. "
)


def lost(exit_code: int | None, detail: str = "") -> Lost:
    """The event for a worker that ended without reporting its run's ending.

    Args:
        exit_code: as in `subprocess` (negative: the signal that killed it); None if unknown.
        detail: further details.
    """
    if exit_code is None:
        message, advice = "the worker vanished", ""
    elif exit_code < 0:
        name = next((known.name for known in signal.Signals if known == -exit_code), f"signal {-exit_code}")
        message = f"the worker was killed by {name}"
        advice = {"SIGKILL": _MEMORY, "SIGABRT": _CRASH, "SIGSEGV": _CRASH, "SIGBUS": _CRASH}.get(name, "")
    else:
        message, advice = f"the worker ended with exit code {exit_code} before its run finished", "See the run's log. "
    return Lost(message=message + (f": {detail}" if detail else ""), advice=advice + _RESUME)


def mark_lost(store: Store, watched: Collection[str] = ()) -> list[str]:
    """End runs whose process is dead (on this machine) or has been silent for `SILENT_SECONDS` (elsewhere).

    Runs of a live app are left to it, because it knows how its worker ended. A run claimed by a dead app without a worker returns to
    the queue.

    Args:
        watched: owners whose runs are skipped, because their processes are watched.

    Returns:
        The ids of the newly lost runs.
    """
    claimed = [row for row in store.held_runs() if row.owner not in watched]
    if not claimed:
        return []
    silent = {row.id for row in store.held_runs(SILENT_SECONDS)}
    quiet = {row.id for row in store.held_runs(QUIET_SECONDS)}
    here = pid_scope()
    ended = []
    for row in claimed:
        event: Lost | None = None
        if row.pid_scope != here:  # its process would not be visible on this machine
            event = lost(None, f"no heartbeat for {SILENT_SECONDS:.0f} s") if row.id in silent else None
        elif row.pid is None or row.pid_started is None:
            if row.id in silent or (row.id in quiet and not _is_served(store, row)):
                store.release(row.id, row.attempt)
        elif not is_alive(row.pid, row.pid_started) and not _is_served(store, row):
            event = lost(None)
            if row.status == "queued":
                advice = _RESUME if row.resume else "Resume starts it."
                event = Lost(message="the command that was running it has ended", advice=advice)
        if event is not None and end(store, row.id, row.attempt, event):
            ended.append(row.id)
    return ended


def slot_lock(store: Store, owner: str) -> FileLock:
    """The lock held by the process that serves a device slot of this machine.

    Args:
        owner: the name under which it claims runs, see `isoviz.runs.identity.owner_of`.
    """
    folder = store.folder / "locks"
    make_private(folder)
    return FileLock(folder / f"{file_name(owner)}.lock")


def file_name(owner: str) -> str:
    """An owner as part of a file's name."""
    return re.sub(r"[^\w.-]+", "-", owner)


def _is_served(store: Store, row: RunRow) -> bool:
    if row.status == "queued" or row.owner is None:  # reserved for a command
        return False
    lock = slot_lock(store, row.owner)
    if not Path(lock.lock_file).exists():  # claimed by a command
        return False
    try:
        with lock.acquire(timeout=0):
            return False
    except Timeout:
        return True


def end(store: Store, run_id: str, attempt: int, event: Event) -> bool:
    """Write the ending that a worker did not write. Returns False if the run has already ended or continued."""
    try:
        store.append(run_id, [event], attempt=attempt)
    except StoreUnavailableError:
        raise
    except StoreError:
        return False
    return True

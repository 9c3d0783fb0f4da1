"""Runs whose worker vanished: how they are noticed, and what the user reads."""

from __future__ import annotations

import signal
from collections.abc import Collection
from typing import Final

from isoviz.errors import StoreError
from isoviz.events import Event, Lost
from isoviz.jobs.processes import is_alive
from isoviz.runs.identity import host_name
from isoviz.runs.store import Store, StoreUnavailableError

SILENT_SECONDS: Final = 30.0
_QUIET_SECONDS: Final = 3.0  # heartbeats come every second: what is quiet for so long is worth a look
_RESUME: Final = "Resume continues from the last checkpoint."
_MEMORY: Final = "The system does that when memory runs out: try a smaller batch size or a shorter longest input. "


def lost(exit_code: int | None, detail: str = "") -> Lost:
    """The event for a worker that is gone without having said how its run ended.

    Args:
        exit_code: as `subprocess` tells it (negative: the signal that killed it); None if it cannot be known.
        detail: what else is known.
    """
    if exit_code is None:
        message, advice = "the worker vanished", ""
    elif exit_code < 0:
        name = _signal_name(-exit_code)
        message = f"the worker was killed by {name}"
        advice = _MEMORY if name == "SIGKILL" else ""
    else:
        message, advice = f"the worker ended with exit code {exit_code} before its run did", "See the run's log. "
    return Lost(message=message + (f": {detail}" if detail else ""), advice=advice + _RESUME)


def mark_lost(store: Store, watched: Collection[str] = ()) -> list[str]:
    """End the runs whose process is dead (on this host) or has been silent for `SILENT_SECONDS` (elsewhere).

    Args:
        watched: owners whose runs are left alone, because someone watches their processes.

    Returns:
        The ids of the runs that are lost now.
    """
    silent = {row.id for row in store.lost_runs(SILENT_SECONDS)}
    ended = []
    for row in store.lost_runs(_QUIET_SECONDS):
        if row.owner in watched:
            continue
        if row.host != host_name():
            event = lost(None, f"no sign of life for {SILENT_SECONDS:.0f} s") if row.id in silent else None
        elif row.pid is None or row.pid_started is None:
            if row.id in silent:  # claimed by a runner that died before it had started a worker: nothing is lost
                store.unclaim(row.id, row.attempt)
            continue
        else:
            event = None if is_alive(row.pid, row.pid_started) else lost(None)
        if event is not None and end(store, row.id, row.attempt, event):
            ended.append(row.id)
    return ended


def end(store: Store, run_id: str, attempt: int, event: Event) -> bool:
    """Write an ending for a worker that did not. Returns False if the run has ended, or gone on, by itself."""
    try:
        store.append(run_id, [event], attempt=attempt)
    except StoreUnavailableError:
        raise
    except StoreError:
        return False
    return True


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"

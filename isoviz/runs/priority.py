"""Giving way to others on the same machine.

Only Linux has priorities per thread, and an ordinary user can never raise one again. Elsewhere nothing is done: there a priority
is of the whole process.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from typing import Final

import psutil

_NICE: Final = 10


def lower_this_thread() -> None:
    """The calling thread, and those that it will start, give way."""
    if sys.platform == "linux":
        _lower(threading.get_native_id())


def lower_all_threads() -> None:
    """All threads of this process give way from now on."""
    if sys.platform == "linux":
        for thread in psutil.Process().threads():
            with contextlib.suppress(ProcessLookupError):  # it ended this moment
                _lower(thread.id)


def _lower(thread: int) -> None:
    os.setpriority(os.PRIO_PROCESS, thread, _NICE)

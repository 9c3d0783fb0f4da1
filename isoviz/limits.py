"""Limits on reading a visitor's file, set by the operator and named in the error if exceeded, and on the server's files and memory.

The former apply to the processes that read for the dashboard (`isoviz.jobs.guarded`). The command line runs with its user's own
rights and is not limited.
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Final

import psutil

from isoviz.input_validation import positive_setting

GIB: Final = 2**30
FILES_OF_PAGE: Final = 4
"""Open files that the server needs for each open page."""
_MOST_FILES: Final = 65_536
"""Enough for all pages of a server; some systems refuse to set no limit."""


@dataclass(frozen=True)
class Limits:
    """Limits of one call.

    Attributes:
        memory: GiB by which the process may grow.
        seconds: wall time.
    """

    memory: float = 4.0
    seconds: float = 120.0

    def words(self, name: str) -> str:
        """`this server reads at most 120 seconds (ISOVIZ_READ_SECONDS)`."""
        unit = {"memory": "GiB of memory", "seconds": "seconds"}[name]
        return f"this server reads at most {getattr(self, name):,.3g} {unit} ({variable(name)})"


UNLIMITED: Final = Limits(1e6, 1e6)


def variable(name: str) -> str:
    """The environment variable that sets a limit."""
    return f"ISOVIZ_READ_{name.upper()}"


def from_environment() -> Limits:
    """The operator's limits. Memory is at most half of the machine's unless it is set.

    Raises:
        InputError: a variable that is not a number above 0.
    """
    values = {"memory": min(Limits.memory, psutil.virtual_memory().total / 2 / GIB)}
    for field in fields(Limits):
        if (setting := positive_setting(variable(field.name))) is not None:
            values[field.name] = setting
    return Limits(**values)


def open_files() -> int | None:
    """How many open files the system lets the server have (`raise_open_files`); None on Windows, which sets no such limit."""
    if sys.platform == "win32":
        return None
    import resource

    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = (sys.maxsize if limit == resource.RLIM_INFINITY else limit for limit in limits)
    return max(soft, min(hard, _MOST_FILES))


def raise_open_files() -> None:
    """Let this process, and those that it starts, have that many open files instead of the usual 1,024, fewer than classes need."""
    if sys.platform != "win32":
        import resource

        with suppress(ValueError, OSError):  # a system may allow fewer than it says
            resource.setrlimit(
                resource.RLIMIT_NOFILE, (open_files() or 0, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
            )


def share_arenas(count: int = 2) -> None:
    """Let the threads of this process take memory from so many pools of glibc, which makes eight for each core: what a class leaves
    lies scattered over all of them, and only a pool that is free at its end gives memory back."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(-8, count)  # M_ARENA_MAX

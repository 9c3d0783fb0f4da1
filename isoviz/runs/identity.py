"""Run ids, run names, and the identity of this process among all hosts."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import secrets
import threading
import time
import uuid
from pathlib import Path
from typing import Any, Final

import psutil

from isoviz.config import RunConfig
from isoviz.errors import InputError
from isoviz.runs.naming import method_title

NAME_LIMIT: Final = 200
_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"  # sorts in counting order; no letter looks like a digit

_lock = threading.Lock()
_latest = 0


def new_id() -> str:
    """An id that sorts after all previous ones of this process: microseconds since 1970, then three random characters."""
    global _latest
    with _lock:
        _latest = max(time.time_ns() // 1000, _latest + 1)
        moment = _latest
    digits = [_ALPHABET[moment >> shift & 31] for shift in range(50, -5, -5)]
    return "".join([*digits, "-", *(secrets.choice(_ALPHABET) for _ in range(3))])


def host_name() -> str:
    """This machine's name, recorded with runs."""
    return platform.node() or "localhost"


def owner_of(place: str) -> str:
    """The owner under which this machine claims runs for a device slot or a cluster."""
    return f"{host_name()}/{place}"


@functools.cache
def pid_scope() -> str:
    """Sixteen hex digits of the scope of process ids: this machine since its start and, on Linux, the PID namespace.

    Host names are not enough: two containers may have the same name without seeing each other's processes.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        scope = f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        scope = f"{platform.node()} {uuid.getnode()}"
    return hashlib.sha256(scope.encode()).hexdigest()[:16]


def this_place() -> dict[str, Any]:
    """The columns that identify a run's machine."""
    return {"host": host_name(), "pid_scope": pid_scope()}


def this_process() -> dict[str, Any]:
    """The columns that identify a run's process."""
    me = psutil.Process()
    return {**this_place(), "pid": me.pid, "pid_started": me.create_time()}


def run_name(config: RunConfig, requested: str | None) -> str:
    """A run's name: the requested one, else a description."""
    if requested is None:
        return f"{method_title(config.method)} on {config.task}, seed {config.seed}"
    return one_line(requested, "name")


def one_line(text: str, field: str) -> str:
    """Text for a name or tag: one line of 1 to 200 characters."""
    line = " ".join(text.split())
    if not 1 <= len(line) <= NAME_LIMIT:
        raise InputError.at(field, f"must have 1 to {NAME_LIMIT} characters (got {len(line)})")
    return line

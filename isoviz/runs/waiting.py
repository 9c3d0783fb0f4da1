"""What a process does that waits for its order: import what it will need, read one line, send its output to a log."""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

# What an encoder of the most common kind imports on its way, much of it lazily: seconds, while someone waits. None touches
# a GPU.
ENCODERS: Final = (
    "torch",
    "transformers",
    "transformers.models.auto.tokenization_auto",
    "transformers.models.bert.modeling_bert",
    "transformers.models.bert.tokenization_bert",
    "pandas",
    "safetensors.numpy",
    "scipy.cluster.hierarchy",
    "isoviz.metrics.summary",
)
# Their threads are made at import and keep its priority, and they compute for what is ordered.
_THREADED: Final = ("numpy", "scipy.linalg")
_NICE: Final = 10


def prepare(modules: Iterable[str], *, gently: bool) -> None:
    """Import modules, and before them what has threads of its own.

    Args:
        gently: at low priority, where something is probably computing beside us and nobody waits yet.
    """
    _import_all(_THREADED)
    if not gently or sys.platform != "linux":
        _import_all(modules)
        return

    # Only Linux has priorities per thread, and an ordinary user can never raise one again: so a thread that ends afterwards
    # does it there.
    def lowered() -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        _import_all(modules)

    thread = threading.Thread(target=lowered, name="imports")
    thread.start()
    thread.join()


def order() -> dict[str, Any] | None:
    """The line of JSON that came on standard input; None if that ended without one, because whoever started us is gone."""
    line = sys.stdin.readline()
    if not line.strip():
        return None
    found: dict[str, Any] = json.loads(line)
    return found


def log_to(path: Path) -> None:
    """Send standard output and error of this process, and of what it starts, to a log; let go of standard input."""
    path.parent.mkdir(parents=True, exist_ok=True)
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(nothing, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(nothing)
    os.close(log)


def _import_all(modules: Iterable[str]) -> None:
    for module in modules:
        importlib.import_module(module)

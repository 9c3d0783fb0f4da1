"""The entry point of every background process: `python -m isoviz.jobs.worker [--prepare MODULE[:FUNCTION]]`.

It begins as a spare: it prepares itself and waits for one line of JSON on its standard input, `{"call": "MODULE:FUNCTION",
"arguments": {...}, "log": PATH}`. If that ends without a line, the process that started it is gone and so is the spare. From the line on
it stands alone: its output goes to the log, and a run outlives the application.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

# What an encoder of the most common kind imports on its way, much of it lazily: seconds, while someone waits. None touches
# a GPU.
ENCODER_MODULES: Final = (
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


def main(arguments: list[str] | None = None) -> int:
    """Prepare, wait for an order and carry it out; the exit code is the order's."""
    parser = argparse.ArgumentParser(prog="python -m isoviz.jobs.worker", description=__doc__)
    parser.add_argument("--prepare", default="", metavar="MODULE[:FUNCTION]", help="what to do before the order comes")
    prepare = parser.parse_args(arguments).prepare
    if prepare:
        load(prepare)()
    line = sys.stdin.readline()
    if not line.strip():
        return 0
    order: dict[str, Any] = json.loads(line)
    log_to(Path(order["log"]))
    code: int = load(order["call"])(**order["arguments"])
    return code


def load(name: str) -> Callable[..., Any]:
    """The function named `MODULE:FUNCTION`; of `MODULE` alone, one that does nothing once it is imported."""
    module, _, function = name.partition(":")
    imported = importlib.import_module(module)
    return getattr(imported, function) if function else lambda: None


def import_modules(modules: Iterable[str], *, gently: bool) -> None:
    """Import modules, after those that start threads.

    Args:
        gently: at low priority, where something is probably computing beside us and no one waits yet.
    """
    modules = tuple(modules)
    _import_all(_THREADED)
    if not gently or sys.platform != "linux":
        _import_all(modules)
        return

    # Only Linux has priorities per thread, and an ordinary user can never raise one again: so a thread that ends afterwards
    # does it there.
    def import_at_low_priority() -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        _import_all(modules)

    thread = threading.Thread(target=import_at_low_priority, name="imports")
    thread.start()
    thread.join()


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


if __name__ == "__main__":
    sys.exit(main())

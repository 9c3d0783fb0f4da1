"""The process that trains one run: `python -m isoviz.runs.worker`.

It begins as a spare: it imports what training needs and waits for one line of JSON on its standard input, `{"store": URL,
"run": ID}`. If that ends without a line, whoever started it is gone and so is the spare. From the line on it stands alone:
what it has to say goes to the store and to the run's log, and it outlives the application.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from isoviz.runs.execution import LOG, Train, execute
from isoviz.runs.store import Store

__all__ = ["execute", "main"]

DEFAULT_TRAIN: Final = "isoviz.training:train"
_NICE: Final = 10
# What a run of the most common kind imports on its way, much of it lazily: seconds, while someone waits. None touches a GPU.
_PRELOADED: Final = (
    "torch",
    "transformers",
    "transformers.models.auto.tokenization_auto",
    "transformers.models.bert.modeling_bert",
    "transformers.models.bert.tokenization_bert",
    "transformers.optimization",
    "accelerate",
    "pandas",
    "safetensors.numpy",
    "scipy.cluster.hierarchy",
    "sklearn.metrics",
    "isoviz.training.loop",
    "isoviz.metrics.summary",
)
# Their threads are made at import and keep its priority, and they compute for the run.
_THREADED: Final = ("numpy", "scipy.linalg")


def main(arguments: list[str] | None = None) -> int:
    """Wait for a run, train it. Returns the exit code: 0 when the run ended in the store, however it ended."""
    parser = argparse.ArgumentParser(prog="python -m isoviz.runs.worker", description=__doc__)
    parser.add_argument("--train", default=DEFAULT_TRAIN, metavar="MODULE:NAME", help="what trains")
    module, _, name = parser.parse_args(arguments).train.partition(":")
    if f"{module}:{name}" == DEFAULT_TRAIN:
        _import_all(_THREADED)
        _import_gently(_PRELOADED)
    train: Train = getattr(importlib.import_module(module), name)

    line = sys.stdin.readline()
    if not line.strip():
        return 0
    order = json.loads(line)
    store = Store(order["store"])
    _log_to(store.folder_of(order["run"]) / LOG)
    print(f"worker {os.getpid()} takes run {order['run']}", flush=True)
    row = execute(store, order["run"], train=train)
    return 0 if row.ended is not None else 1


def _import_gently(modules: Iterable[str]) -> None:
    """Import at low priority, because a run is probably training beside us.

    Only Linux has priorities per thread, and an ordinary user can never raise one again: so a thread that ends afterwards
    does it there.
    """
    if sys.platform != "linux":
        _import_all(modules)
        return

    def gently() -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        _import_all(modules)

    thread = threading.Thread(target=gently, name="imports")
    thread.start()
    thread.join()


def _import_all(modules: Iterable[str]) -> None:
    for module in modules:
        importlib.import_module(module)


def _log_to(path: Path) -> None:
    """Send standard output and error of this process, and of what it starts, to the run's log; let go of standard input."""
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


if __name__ == "__main__":
    sys.exit(main())

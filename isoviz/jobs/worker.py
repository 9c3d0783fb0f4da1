"""The entry point of every background process: `python -m isoviz.jobs.worker [--prepare MODULE[:FUNCTION]] [--fork]`.

It prepares itself and waits for an order, one line of JSON on its standard input: `{"call": "MODULE:FUNCTION", "arguments": {...},
"log": PATH}`. If the input ends without a line, the process that started it is gone, and it exits. After the line, it is independent:
its output goes to the log, and a run outlives the app. Without a log it stays connected and answers calls (`isoviz.jobs.answering`).

With `--fork`, it reports `{"forks": BOOL}` on its standard output once it is ready. If it can, it carries out each order in a fork, and
reports `{"pid": N, "code": null}` when that begins and its exit code when it ends.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import select
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from isoviz import devices
from isoviz.jobs.processes import collect_rarely

# Imports of the most common kind of encoder, many of them lazy, which would take seconds while a user waits. None uses a GPU.
ENCODER_MODULES: Final = (
    "torch",
    "transformers",
    "transformers.models.auto.tokenization_auto",
    "transformers.models.bert.modeling_bert",
    "transformers.models.bert.tokenization_bert",
    "pandas",
    "safetensors.numpy",
    "scipy.cluster.hierarchy",
    "isoviz.metrics.measuring",
)


def main(arguments: list[str] | None = None, answers: int | None = None) -> int:
    """Prepare, wait for orders and execute them; returns the last one's exit code.

    Args:
        answers: file descriptor for the answers of a process that stays connected.
    """
    parser = argparse.ArgumentParser(prog="python -m isoviz.jobs.worker", description=__doc__)
    parser.add_argument(
        "--prepare", default="", metavar="MODULE[:FUNCTION]", help="what to do before the order arrives"
    )
    parser.add_argument("--fork", action="store_true", help="execute each order in a fork, on Linux")
    options = parser.parse_args(arguments)
    collect_rarely()
    if options.prepare:
        load(options.prepare)()
    if options.fork and answers is not None:
        # A thread does not exist after a fork, but its locks stay held. Native threads (OpenBLAS) have handlers for that.
        forks = threading.active_count() == 1 and hasattr(os, "pidfd_open") and not devices.opened()
        _report(answers, forks=forks)
        if forks:
            return _fork_for_orders(answers)
    return _execute(sys.stdin.readline(), answers)


def _execute(line: str, answers: int | None) -> int:
    if not line.strip():
        return 0
    order: dict[str, Any] = json.loads(line)
    call: Callable[..., int] = load(order["call"])
    if order["log"] is None:
        return call(answers, **order["arguments"])
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    log_to(Path(order["log"]))
    return call(**order["arguments"])


def _fork_for_orders(answers: int) -> int:
    """Execute each order in a fork. Returns in each fork, and in this process when no more orders can come."""
    gc.collect()
    gc.freeze()  # a garbage collection would copy all shared memory pages
    children: dict[int, int] = {}  # handle → process id
    while True:
        ready, _, _ = select.select([0, *children], [], [])
        for handle in children.keys() & set(ready):
            _, status = os.waitpid(pid := children.pop(handle), 0)
            os.close(handle)
            _report(answers, pid=pid, code=os.waitstatus_to_exitcode(status))
        if 0 not in ready:
            continue
        if not (line := sys.stdin.readline()):
            return 0
        pid = os.fork()
        if pid == 0:
            os.setsid()
            for handle in (answers, *children):
                os.close(handle)
            return _execute(line, None)
        children[os.pidfd_open(pid)] = pid
        _report(answers, pid=pid, code=None)


def _report(answers: int, **report: Any) -> None:
    with suppress(OSError):  # the process that reads it is gone
        os.write(answers, json.dumps(report).encode() + b"\n")


def load(name: str) -> Callable[..., Any]:
    """The function `MODULE:FUNCTION`; for `MODULE`, a no-op after importing it."""
    module, _, function = name.partition(":")
    imported = importlib.import_module(module)
    return getattr(imported, function) if function else lambda: None


def import_modules(modules: Iterable[str]) -> None:
    """Import modules."""
    for module in modules:
        importlib.import_module(module)


def log_to(path: Path) -> None:
    """Redirect standard output and error of this process and its children to a log. From now on, its files are for this account
    only."""
    os.umask(0o077)
    path.parent.mkdir(parents=True, exist_ok=True)
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)


if __name__ == "__main__":
    saved = os.dup(1)
    os.dup2(2, 1)  # what libraries print must not mix with answers
    sys.exit(main(answers=saved))

"""The entry point of every background process: `python -m isoviz.jobs.worker [--prepare MODULE[:FUNCTION]] [--channel FD]`.

It starts as a spare: it prepares itself and waits for one line of JSON on its standard input, `{"call": "MODULE:FUNCTION",
"arguments": {...}, "log": PATH}`. If the input ends without a line, the process that started it is gone, and the spare exits. After the
line, it is independent: its output goes to the log, and a run outlives the app. Without a log it stays connected and answers calls
(`isoviz.jobs.answering`).

With a channel (a socket), the spare forks: each message contains the standard input of a new process, which waits for a line in the same
way. The spare reports `{"forks": BOOL}` once it is ready. A new process reports `{"pid": N, "code": null}`; when it ends, the spare
reports its exit code.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import select
import socket
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
# Their threads are created at import, keep its priority, and later compute for the order.
_THREADED: Final = ("numpy", "scipy.linalg")
_NICE: Final = 10


def main(arguments: list[str] | None = None, answers: int | None = None) -> int:
    """Prepare, wait for an order and execute it; returns the order's exit code.

    Args:
        answers: file descriptor for the answers of a process that stays connected.
    """
    parser = argparse.ArgumentParser(prog="python -m isoviz.jobs.worker", description=__doc__)
    parser.add_argument(
        "--prepare", default="", metavar="MODULE[:FUNCTION]", help="what to do before the order arrives"
    )
    parser.add_argument("--channel", type=int, metavar="FD", help="the socket that brings requests to fork")
    options = parser.parse_args(arguments)
    collect_rarely()
    if options.prepare:
        load(options.prepare)()
    if options.channel is not None:
        with socket.socket(fileno=options.channel) as channel:
            fork_on_request(channel)
    line = sys.stdin.readline()
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


def fork_on_request(channel: socket.socket) -> None:
    """Fork a process for each request. Returns in each fork, and in this process when its standard input has a line or ends."""
    if sys.platform != "linux":
        raise OSError("only Linux forks")
    channel.set_inheritable(False)
    # A thread does not exist after a fork, but its locks stay held. Native threads (OpenBLAS) have handlers for that.
    forks = threading.active_count() == 1 and hasattr(os, "pidfd_open") and not devices.opened()
    gc.collect()
    gc.freeze()  # a garbage collection would copy all shared memory pages
    children: dict[int, int] = {}  # handle → process id
    with suppress(OSError):  # the other end is closed: no more requests
        _report(channel, forks=forks)
        while True:
            ready, _, _ = select.select([0, channel.fileno(), *children], [], [])
            for handle in children.keys() & set(ready):
                _, status = os.waitpid(pid := children.pop(handle), 0)
                os.close(handle)
                _report(channel, pid=pid, code=os.waitstatus_to_exitcode(status))
            if 0 in ready:
                return
            if channel.fileno() in ready:
                _, requested, _, _ = socket.recv_fds(channel, 16, 1)
                if not requested:
                    return
                pid = os.fork()
                if pid == 0:
                    os.setsid()
                    os.dup2(requested[0], 0)
                    _report(channel, pid=os.getpid(), code=None)
                    for handle in (*requested, *children):
                        os.close(handle)
                    return
                os.close(requested[0])
                children[os.pidfd_open(pid)] = pid


def _report(channel: socket.socket, **report: Any) -> None:
    channel.send(json.dumps(report).encode())


def load(name: str) -> Callable[..., Any]:
    """The function `MODULE:FUNCTION`; for `MODULE`, a no-op after importing it."""
    module, _, function = name.partition(":")
    imported = importlib.import_module(module)
    return getattr(imported, function) if function else lambda: None


def import_modules(modules: Iterable[str], *, gently: bool) -> None:
    """Import modules, after those that start threads.

    Args:
        gently: at low priority, if other computations are probably running and no user waits yet.
    """
    modules = tuple(modules)
    _import_all(_THREADED)
    if not gently or sys.platform != "linux":
        _import_all(modules)
        return

    # Only Linux has priorities per thread, and ordinary users cannot raise them again, so a temporary thread does the imports.
    def import_at_low_priority() -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        _import_all(modules)

    thread = threading.Thread(target=import_at_low_priority, name="imports")
    thread.start()
    thread.join()


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


def _import_all(modules: Iterable[str]) -> None:
    for module in modules:
        importlib.import_module(module)


if __name__ == "__main__":
    saved = os.dup(1)
    os.dup2(2, 1)  # what libraries print must not mix with answers
    sys.exit(main(answers=saved))

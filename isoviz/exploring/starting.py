"""How the processes of views, own sentences and What-if begin: as a spare that has imported everything, or else from nothing.

A spare is kept only where somebody said that work is to be expected (`expect`), and let go after some minutes without it: it
holds as much memory as torch and transformers take. Without one everything works as with one, some seconds later.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from isoviz.runs.processes import Waiting, spawn

IDLE: Final = 600.0
"""Seconds after which a spare goes that nobody has expected to need since."""
MEMORY: Final = 2 * 2**30
"""Bytes that must be free for a spare to be kept."""
_PAUSE: Final = 3.0
"""Seconds after the end of work before the next spare is started: now its result is being drawn."""
_ALONE: Final = 20.0
"""Seconds from the beginning of work in which nobody's expectation starts the next spare: importing takes a processor for some
seconds, and would take it from what was just asked for. The end of the work starts it anyway."""
_SLOT: Final = "any"
_MODULE: Final = "isoviz.exploring.spare"


def launch(module: str, arguments: Sequence[str], log: Path, *, prepared: bool = True) -> tuple[int, float]:
    """Start `python -m MODULE ARGUMENTS`, whose `main` takes the arguments as a list, with its output in `log`.

    Args:
        prepared: a spare may become it; not for what does not need an encoder, and would only hold its memory.

    Returns:
        Its process id, and when it was started.
    """
    found = _SPARES.take() if prepared else None
    if found is not None:
        with contextlib.suppress(OSError):  # it died this moment
            log.touch()
            child = found.order({"module": module, "arguments": list(arguments), "log": str(log)})
            _reap(child.wait, again=True)
            return found.pid, found.started
    child = spawn(module, arguments, _SLOT, log)
    _reap(child.wait, again=prepared)
    try:
        return child.pid, psutil.Process(child.pid).create_time()
    except psutil.NoSuchProcess:  # ended at once
        return child.pid, time.time()


def expect(log: Path, idle: float = IDLE) -> None:
    """Have a spare ready within seconds, and while work is asked for; it goes after `idle` seconds without a call of this.

    Args:
        log: the file that takes a spare's output until it has work.
    """
    _SPARES.expect(log, idle)


def close() -> None:
    """End the spare, if there is one; what has begun goes on."""
    _SPARES.close()


@dataclass
class _Spares:
    """At most one spare of this process."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    spare: Waiting | None = None
    surroundings: dict[str, str] = field(default_factory=dict)
    log: Path | None = None
    until: float = 0.0
    begun: float = -_ALONE
    timer: threading.Timer | None = None

    def expect(self, log: Path, idle: float) -> None:
        with self.lock:
            self.log, self.until = log, time.monotonic() + idle
            if time.monotonic() - self.begun >= _ALONE:
                self._fill()
            if self.timer is None:
                self._look_in(idle)

    def take(self) -> Waiting | None:
        """The spare, if it lives and has the surroundings that a new process would have."""
        with self.lock:
            self.begun = time.monotonic()
            found, self.spare = self.spare, None
            if found is None or found.gone:
                return None
            if self.surroundings == _surroundings():
                return found
        found.kill()
        return None

    def again(self) -> None:
        """Work has ended; more of it may come."""
        with self.lock:
            self.begun = -_ALONE
            if time.monotonic() < self.until:
                self._fill()

    def close(self) -> None:
        with self.lock:
            found, self.spare, self.until = self.spare, None, 0.0
            if self.timer is not None:
                self.timer.cancel()
                self.timer = None
        if found is not None:
            found.kill()

    def _fill(self) -> None:
        if self.spare is not None and not self.spare.gone:
            return
        self.spare = None
        if self.log is not None and psutil.virtual_memory().available >= MEMORY:
            self.surroundings = _surroundings()
            self.spare = Waiting(_MODULE, [], _SLOT, self.log)

    def _look_in(self, seconds: float) -> None:
        self.timer = threading.Timer(seconds, self._let_go)
        self.timer.daemon = True
        self.timer.start()

    def _let_go(self) -> None:
        with self.lock:
            self.timer = None
            left = self.until - time.monotonic()
            if left > 0:
                self._look_in(left)
                return
            found, self.spare = self.spare, None
        if found is not None:
            found.kill()


def _reap(wait: Callable[[], int], *, again: bool) -> None:
    """Ask a child for its exit code when it ends, whoever looks then: else it stays a zombie."""
    spares = _SPARES

    def reap() -> None:
        wait()
        if again:
            time.sleep(_PAUSE)
            spares.again()

    threading.Thread(target=reap, name="work", daemon=True).start()


def _surroundings() -> dict[str, str]:
    """Of the environment what decides where models, data and devices are."""
    return {name: value for name, value in os.environ.items() if name.startswith(("ISOVIZ_", "HF_", "CUDA_"))}


_SPARES: Final = _Spares()

"""Calls in other processes, and calls with limits on time and memory, because a visitor's file may exhaust its reader.

Arguments and results are JSON, so this process gets only the function's result, never the file. A call that takes too long, or whose
caller has gone, ends with its process. (Process pools based on the standard library start from `__main__`, which is the page in a
Streamlit server.)
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, TypeVar

import psutil
from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from isoviz import allowed_paths, errors, limits
from isoviz.errors import InputError, IsoVizError
from isoviz.jobs.processes import Worker
from isoviz.limits import GIB, Limits

Answer = TypeVar("Answer")

TABLES: Final = ("pandas", "pyarrow.parquet")
"""Modules for reading tables; their memory does not count towards the limits."""
MOST_CALLS: Final = max(2, (os.cpu_count() or 1) // 2)
"""Most simultaneous calls."""
_IDLE_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.05
_VARIABLES: Final = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",  # other pools reserve more than they use
    "MALLOC_ARENA_MAX": "2",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


class Answering:
    """A process that answers calls, one at a time, and ends with this one (`isoviz.jobs.answering`).

    Args:
        worker: a process without an order, owned by this object.
        idle: seconds without a call after which it ends itself; None: no limit.
    """

    def __init__(self, worker: Worker, idle: float | None = None) -> None:
        self.worker = worker
        self.idle_since = time.monotonic()
        self._spent = False
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._send({"call": "isoviz.jobs.answering:serve", "arguments": {"idle": idle}, "log": None})
        threading.Thread(target=self._listen, name="answers", daemon=True).start()

    def _send(self, message: Mapping[str, Any]) -> None:
        with contextlib.suppress(OSError):  # it has died: there is no answer
            self.worker.send(message)

    def _listen(self) -> None:
        with self.worker.answers as lines:
            for line in lines:
                self._lines.put(line)
        self._lines.put(None)

    @property
    def reusable(self) -> bool:
        """Whether it can take another call."""
        return not self._spent and not self.worker.gone

    def call(
        self,
        order: Mapping[str, Any],
        *,
        allowed: Limits | None = None,
        pulse: Callable[[], None] | None = None,
        heard: Callable[[list[Any]], None] = lambda progress: None,
    ) -> dict[str, Any] | None:
        """The answer; None if the process ended without one. After an exception, end the process.

        Args:
            allowed: limits that the system may not enforce.
            pulse: called about twenty times a second; raises to end the wait.
            heard: called with the progress of a job.

        Raises:
            TimeoutError: no answer in time.
            MemoryError: the process grew too large.
        """
        deadline = time.monotonic() + (allowed.seconds if allowed else math.inf)
        self._send(order)
        while True:
            with contextlib.suppress(queue.Empty):
                line = self._lines.get(timeout=_POLL_SECONDS if pulse else None)
                self.idle_since = time.monotonic()
                answer: dict[str, Any] | None = None if line is None else json.loads(line)
                if answer is not None and "progress" in answer:
                    heard(answer["progress"])
                    continue
                self._spent = answer is None or not answer["reusable"]
                return answer
            assert pulse is not None
            pulse()
            if time.monotonic() > deadline:
                raise TimeoutError
            if allowed and sys.platform != "linux" and self._resident() > allowed.memory * GIB:
                raise MemoryError

    def _resident(self) -> int:
        with contextlib.suppress(psutil.Error):
            resident: int = psutil.Process(self.worker.pid).memory_info().rss
            return resident
        return 0

    def end(self) -> None:
        """End it with all its child processes."""
        if not self.worker.gone:
            self.worker.kill()
        self.worker.dismiss()


_turns = threading.BoundedSemaphore(MOST_CALLS)
_idle: deque[Answering] = deque()


def warm(function: str, imports: Sequence[str] = TABLES) -> None:
    """Prepare a process that has imported what the next call needs. Returns immediately.

    Args:
        function: called in the process without arguments, to run slow first calls once. Returns a bool.
    """

    def start() -> None:
        with contextlib.suppress(IsoVizError, RuntimeError, OSError):  # the call itself reports the error
            call(function, {}, bool, imports=imports)

    if any(map(_fresh, list(_idle))):
        return
    threading.Thread(target=start, name="guarded-warm", daemon=True).start()


def call(
    function: str,
    arguments: Mapping[str, Any],
    returns: type[Answer] | Any,
    *,
    field: str = "data",
    imports: Sequence[str] = TABLES,
    allowed: Limits | None = None,
    pulse: Callable[[], None] = lambda: None,
) -> Answer:
    """Call a function in a process with limits and the same folder access as this one, and wait for its result.

    Args:
        function: `MODULE:FUNCTION`, with arguments and a result that pydantic can convert from and to JSON.
        arguments: by name.
        returns: the type of the result.
        field: form field for errors about limits.
        imports: modules imported before the limits apply.
        allowed: the limits; None for the operator's limits.
        pulse: called about twenty times a second; raises to end the wait and the process.

    Raises:
        InputError: a limit was exceeded.
        IsoVizError: the function's error, of the same class.
        RuntimeError: another error, with its traceback in the message, or the process died.
    """
    allowed = allowed or limits.from_environment()
    order = {
        "call": function,
        "arguments": to_jsonable_python(dict(arguments)),
        "imports": list(imports),
        "limits": asdict(allowed),
        "field": field,
        "roots": to_jsonable_python(allowed_paths.roots()),
    }
    with _reader(pulse) as reader:
        try:
            answer = reader.call(order, allowed=allowed, pulse=pulse)
        except TimeoutError:
            reader.end()
            raise InputError.at(field, f"reading it takes too long; {allowed.words('seconds')}") from None
        except MemoryError:
            answer = None
        except BaseException:
            reader.end()
            raise
        if answer is None:  # killed by the system, probably because memory ran out
            reader.end()
            raise InputError.at(field, f"reading it takes too much memory; {allowed.words('memory')}")
    if "value" in answer:
        value: Answer = TypeAdapter(returns).validate_python(answer["value"])
        return value
    if "bug" in answer:
        raise RuntimeError(f"a reading process failed:\n{answer['bug']}")
    raise errors.from_json(answer["error"])


@contextlib.contextmanager
def _reader(pulse: Callable[[], None]) -> Iterator[Answering]:
    while not _turns.acquire(timeout=_POLL_SECONDS):
        pulse()
    try:
        reader = None
        with contextlib.suppress(IndexError):
            reader = _idle.pop()
        if reader is not None and not _fresh(reader):
            reader.end()
            reader = None
        reader = reader or Answering(Worker("", "cpu", None, variables=_VARIABLES), idle=1.5 * _IDLE_SECONDS)
        try:
            yield reader
        finally:
            if _fresh(reader):
                _idle.append(reader)
            else:
                reader.end()
    finally:
        _turns.release()


def _fresh(reader: Answering) -> bool:
    return reader.reusable and time.monotonic() - reader.idle_since < _IDLE_SECONDS

"""Call a function in a separate process, with limits on time and memory, because a visitor's file may exhaust its reader.

Arguments and results are JSON, so this process gets only the function's result, never the file. A call that takes too long, or whose
caller has gone, ends with its process. (Process pools based on the standard library start from `__main__`, which is the page in a
Streamlit server.)
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, TypeVar

import psutil
from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from isoviz import errors, fence, limits
from isoviz.errors import InputError, IsoVizError
from isoviz.jobs.processes import environment
from isoviz.jobs.spares import environment_key
from isoviz.limits import GIB, Limits

Answer = TypeVar("Answer")

TABLES: Final = ("pandas", "pyarrow.parquet")
"""Modules for reading tables; their memory does not count towards the limits."""
MOST_CALLS: Final = 2
"""Most simultaneous calls; `ISOVIZ_READERS` overrides it."""
_IDLE_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.05
_VARIABLES: Final = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",  # other pools reserve more than they use
    "MALLOC_ARENA_MAX": "2",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


class _Reader:
    """A process that answers calls, one at a time."""

    def __init__(self) -> None:
        self.environment_key = environment_key()
        self.idle_since = time.monotonic()
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-m", "isoviz.jobs.guarded_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**environment("cpu"), **_VARIABLES},
            start_new_session=True,  # Ctrl-C goes only to the app, which then ends this process
        )
        self.pid = self._child.pid
        self._spent = False
        self._answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self._listen, name="guarded", daemon=True).start()

    def _listen(self) -> None:
        assert self._child.stdout is not None
        with contextlib.suppress(OSError, ValueError):  # closed during reading
            for line in self._child.stdout:
                self._answers.put(line)
        self._answers.put(None)

    @property
    def reusable(self) -> bool:
        """Whether it can take another call."""
        fresh = time.monotonic() - self.idle_since < _IDLE_SECONDS
        return fresh and not self._spent and self._child.poll() is None and self.environment_key == environment_key()

    def ask(self, order: bytes, allowed: Limits, pulse: Callable[[], None]) -> dict[str, Any] | None:
        """The answer; None if the process ended without one. After an exception, end the process.

        Raises:
            TimeoutError: no answer in time.
            MemoryError: the process grew too large (if the system does not enforce the limit).
        """
        assert self._child.stdin is not None
        deadline = time.monotonic() + allowed.seconds
        with contextlib.suppress(BrokenPipeError):
            self._child.stdin.write(order + b"\n")
            self._child.stdin.flush()
        while True:
            with contextlib.suppress(queue.Empty):
                line = self._answers.get(timeout=_POLL_SECONDS)
                self.idle_since = time.monotonic()
                answer: dict[str, Any] | None = None if line is None else json.loads(line)
                self._spent = answer is None or not answer["reusable"]
                return answer
            pulse()
            if time.monotonic() > deadline:
                raise TimeoutError
            if sys.platform != "linux" and self._resident() > allowed.memory * GIB:
                raise MemoryError

    def _resident(self) -> int:
        with contextlib.suppress(psutil.Error):
            resident: int = psutil.Process(self.pid).memory_info().rss
            return resident
        return 0

    def end(self) -> None:
        """Kill it with all its child processes."""
        if self._child.poll() is None:
            if sys.platform == "win32":
                self._child.kill()
            else:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.pid, signal.SIGKILL)
        self._child.wait()
        if self._child.stdin is not None:  # the listener closes the other pipe
            with contextlib.suppress(OSError):
                self._child.stdin.close()


_lock = threading.Lock()
_idle: list[_Reader] = []
_working = 0


def warm(function: str, imports: Sequence[str] = TABLES) -> None:
    """Prepare a process that has imported what the next call needs. Returns immediately.

    Args:
        function: called in the process without arguments, to run slow first calls once. Returns a bool.
    """

    def start() -> None:
        with contextlib.suppress(IsoVizError, RuntimeError, OSError):  # the call itself reports the error
            call(function, {}, bool, imports=imports)

    with _lock:
        if _working or any(reader.reusable for reader in _idle):
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
        "roots": to_jsonable_python(fence.roots()),
    }
    with _reader(pulse) as reader:
        try:
            answer = reader.ask(json.dumps(order).encode(), allowed, pulse)
        except TimeoutError:
            reader.end()
            raise InputError(f"{field}: reading it takes too long; {allowed.words('seconds')}", field=field) from None
        except MemoryError:
            answer = None
        except BaseException:
            reader.end()
            raise
        if answer is None:  # killed by the system, probably because memory ran out
            reader.end()
            raise InputError(f"{field}: reading it takes too much memory; {allowed.words('memory')}", field=field)
    if "value" in answer:
        value: Answer = TypeAdapter(returns).validate_python(answer["value"])
        return value
    if "bug" in answer:
        raise RuntimeError(f"a reading process failed:\n{answer['bug']}")
    raise errors.from_json(answer["error"])


@contextlib.contextmanager
def _reader(pulse: Callable[[], None]) -> Iterator[_Reader]:
    """Context with an exclusive process; waits for its turn."""
    global _working
    most = most_calls()
    while True:
        with _lock:
            if _working < most:
                _working += 1
                break
        pulse()
        time.sleep(_POLL_SECONDS)
    try:
        with _lock:
            reader = _idle.pop() if _idle else None
        if reader is not None and not reader.reusable:
            reader.end()
            reader = None
        reader = reader or _Reader()
        try:
            yield reader
        finally:
            if reader.reusable:
                with _lock:
                    _idle.append(reader)
            else:
                reader.end()
    finally:
        with _lock:
            _working -= 1


def most_calls() -> int:
    """Most simultaneous calls. Raises `InputError` for an invalid `ISOVIZ_READERS`."""
    setting = os.environ.get("ISOVIZ_READERS", "").strip()
    if not setting:
        return MOST_CALLS
    if not setting.isdecimal() or not 1 <= int(setting) <= 64:
        raise InputError(f"ISOVIZ_READERS: must be a whole number from 1 to 64 (got '{setting[:40]}')")
    return int(setting)


def processes() -> list[int]:
    """Process ids of the idle readers."""
    with _lock:
        return [reader.pid for reader in _idle]


def close() -> None:
    """End the idle readers."""
    with _lock:
        readers, _idle[:] = list(_idle), []
    for reader in readers:
        reader.end()

"""Call a function in a separate process, with limits on time and memory, because a visitor's file may exhaust its reader.

Arguments and answers cross as JSON, so that nothing of the file itself comes here but what the function answers. A call that takes
too long, or that no one waits for any more, ends with its process. (The pools of the standard library and those built on it start
their processes from `__main__`, which in a Streamlit server is the page.)
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
from isoviz.jobs.spares import surroundings
from isoviz.limits import GIB, Limits

Answer = TypeVar("Answer")

TABLES: Final = ("pandas", "pyarrow.parquet")
"""Modules imported to read tables; they do not count towards the limits."""
AT_ONCE: Final = 2
"""Calls that are worked on at a time; `ISOVIZ_READERS` overrides it."""
_IDLE_SECONDS: Final = 60.0
_LOOK: Final = 0.05
_SURROUNDINGS: Final = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",  # the others reserve more than they use
    "MALLOC_ARENA_MAX": "2",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


class _Reader:
    """A process that answers calls, one at a time."""

    def __init__(self) -> None:
        self.surroundings = surroundings()
        self.idle_since = time.monotonic()
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-m", "isoviz.jobs.guarded_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**environment("cpu"), **_SURROUNDINGS},
            start_new_session=True,  # Ctrl-C is for the application, which then ends this one
        )
        self.pid = self._child.pid
        self._unfit = False
        self._answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self._listen, name="guarded", daemon=True).start()

    def _listen(self) -> None:
        assert self._child.stdout is not None
        with contextlib.suppress(OSError, ValueError):  # closed while we read
            for line in self._child.stdout:
                self._answers.put(line)
        self._answers.put(None)

    @property
    def fit(self) -> bool:
        """Whether it may be asked (again)."""
        fresh = time.monotonic() - self.idle_since < _IDLE_SECONDS
        return fresh and not self._unfit and self._child.poll() is None and self.surroundings == surroundings()

    def ask(self, order: bytes, allowed: Limits, pulse: Callable[[], None]) -> dict[str, Any] | None:
        """The answer; None if the process ended without one. Whatever is raised here, end the process then.

        Raises:
            TimeoutError: none came in time.
            MemoryError: the process grew too large (where the system itself sets no limit).
        """
        assert self._child.stdin is not None
        deadline = time.monotonic() + allowed.seconds
        with contextlib.suppress(BrokenPipeError):
            self._child.stdin.write(order + b"\n")
            self._child.stdin.flush()
        while True:
            with contextlib.suppress(queue.Empty):
                line = self._answers.get(timeout=_LOOK)
                self.idle_since = time.monotonic()
                answer: dict[str, Any] | None = None if line is None else json.loads(line)
                self._unfit = answer is None or not answer["fit"]
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
        """End it at once, with everything that it started."""
        if self._child.poll() is None:
            if sys.platform == "win32":
                self._child.kill()
            else:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.pid, signal.SIGKILL)
        self._child.wait()
        if self._child.stdin is not None:  # the listener lets go of the other pipe
            with contextlib.suppress(OSError):
                self._child.stdin.close()


_lock = threading.Lock()
_idle: list[_Reader] = []
_working = 0


def warm(function: str, imports: Sequence[str] = TABLES) -> None:
    """Someone is about to have a file read: have a process that has imported what that needs. Returns at once.

    Args:
        function: called there without arguments: does once what is slow the first time. Its answer is a bool.
    """

    def start() -> None:
        with contextlib.suppress(IsoVizError, RuntimeError, OSError):  # the call itself will say so
            call(function, {}, bool, imports=imports)

    with _lock:
        if _working or any(reader.fit for reader in _idle):
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
    """Call a function in a process with limits and with access to the same folders as this one, and wait for its answer.

    Args:
        function: `MODULE:FUNCTION`. Its arguments and its answer have types that pydantic can read and write as JSON.
        arguments: by name.
        returns: the type of the answer.
        field: the field of the form that an exceeded limit belongs to.
        imports: modules that are imported before the limits hold.
        allowed: the limits; None for the operator's.
        pulse: called some twenty times a second; raises what ends the wait, and the process with it.

    Raises:
        InputError: a limit was exceeded; it is named.
        IsoVizError: what the function raised, of the same class.
        RuntimeError: it raised something else, whose traceback is in the message, or the process died.
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
        if answer is None:  # the system ended it: for want of memory, as far as one can tell
            reader.end()
            raise InputError(f"{field}: reading it takes too much memory; {allowed.words('memory')}", field=field)
    if "value" in answer:
        value: Answer = TypeAdapter(returns).validate_python(answer["value"])
        return value
    raise _error(answer)


def _error(answer: Mapping[str, Any]) -> Exception:
    if "bug" in answer:
        return RuntimeError(f"a reading process failed:\n{answer['bug']}")
    fields = answer["error"]
    kind = getattr(errors, fields["kind"], InputError)
    if not (isinstance(kind, type) and issubclass(kind, IsoVizError)):
        kind = InputError
    try:
        error: Exception = kind(fields["message"], field=fields["field"], advice=fields["advice"])
    except TypeError:  # it wants more than a message
        error = InputError(fields["message"], field=fields["field"], advice=fields["advice"])
    return error


@contextlib.contextmanager
def _reader(pulse: Callable[[], None]) -> Iterator[_Reader]:
    """A process of one's own for as long as the block lasts; waits for its turn."""
    global _working
    most = at_once()
    while True:
        with _lock:
            if _working < most:
                _working += 1
                break
        pulse()
        time.sleep(_LOOK)
    try:
        with _lock:
            reader = _idle.pop() if _idle else None
        if reader is not None and not reader.fit:
            reader.end()
            reader = None
        reader = reader or _Reader()
        try:
            yield reader
        finally:
            if reader.fit:
                with _lock:
                    _idle.append(reader)
            else:
                reader.end()
    finally:
        with _lock:
            _working -= 1


def at_once() -> int:
    """How many calls are worked on at a time; `InputError` for an `ISOVIZ_READERS` that is no number from 1."""
    setting = os.environ.get("ISOVIZ_READERS", "").strip()
    if not setting:
        return AT_ONCE
    if not setting.isdecimal() or not 1 <= int(setting) <= 64:
        raise InputError(f"ISOVIZ_READERS: must be a whole number from 1 to 64 (got '{setting[:40]}')")
    return int(setting)


def processes() -> list[int]:
    """Process ids of the readers that wait for a call."""
    with _lock:
        return [reader.pid for reader in _idle]


def close() -> None:
    """End the readers that wait for a call."""
    with _lock:
        readers, _idle[:] = list(_idle), []
    for reader in readers:
        reader.end()

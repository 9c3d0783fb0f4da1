"""The process behind `isoviz.jobs.guarded`: one call per line of standard input, one answer per line of standard output.

It exits as soon as its input ends, even during a call, so nothing remains when the app is gone.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import queue
import sys
import threading
import traceback
import typing
from collections.abc import Mapping
from typing import Any, Final

import psutil
from pydantic import TypeAdapter

from isoviz import errors, fence
from isoviz.errors import InputError, IsoVizError, is_out_of_memory
from isoviz.fence import Roots
from isoviz.jobs.worker import load
from isoviz.limits import GIB, Limits

IDLE_SECONDS: Final = 90.0
"""Idle seconds after which it exits; slightly longer than `isoviz.jobs.guarded` reuses it."""
_MOST_GROWTH: Final = 256 * 2**20
"""Most bytes of growth for another call."""
_LONGEST_ANSWER: Final = 8 * 2**20


def main() -> int:
    """Answer calls until the input ends, the process is idle too long, or it is not reusable for another call."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # output of libraries must not mix with answers
    calls: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(calls,), daemon=True).start()
    reusable = True
    while reusable:
        try:
            line = calls.get(timeout=IDLE_SECONDS)
        except queue.Empty:
            break
        answer, reusable = _answer(json.loads(line))
        answers.write(b'{"reusable": %s, %s\n' % (b"true" if reusable else b"false", answer.removeprefix(b"{")))
    answers.close()
    os._exit(0)  # the listener still waits for the input


def _listen(calls: queue.SimpleQueue[bytes]) -> None:
    for line in sys.stdin.buffer:
        calls.put(line)
    os._exit(0)


def _answer(order: Mapping[str, Any]) -> tuple[bytes, bool]:
    """The answer as JSON, and whether this process is reusable for another call."""
    for module in order["imports"]:
        importlib.import_module(module)
    function = load(order["call"])
    allowed = Limits(**order["limits"])
    before = psutil.Process().memory_info().rss
    roots = TypeAdapter(Roots | None).validate_python(order["roots"])
    fence.restrict_to(None if roots is None else lambda: roots)
    ceiling = _limit_memory(allowed)
    try:
        answer = _called(function, order["arguments"])
        if len(answer) > _LONGEST_ANSWER:
            return _refusal(
                InputError(f"{order['field']}: the content is too large to show", field=order["field"])
            ), False
    except IsoVizError as error:
        if is_out_of_memory(error):
            return _short_of_memory(allowed, order["field"]), False
        answer = _refusal(error)
    except BaseException as error:
        if is_out_of_memory(error):
            return _short_of_memory(allowed, order["field"]), False
        return json.dumps({"bug": traceback.format_exc()}).encode(), False
    finally:
        _unlimited(ceiling)
    return answer, psutil.Process().memory_info().rss - before < _MOST_GROWTH


def _called(function: Any, arguments: Mapping[str, Any]) -> bytes:
    hints = typing.get_type_hints(function)
    names = inspect.signature(function).parameters
    parsed = {name: TypeAdapter(hints[name]).validate_python(arguments[name]) for name in names if name in arguments}
    value = TypeAdapter(hints["return"]).dump_json(function(**parsed))
    return b'{"value": ' + value + b"}"


def _refusal(error: IsoVizError) -> bytes:
    return json.dumps({"error": errors.to_json(error)}).encode()


def _short_of_memory(allowed: Limits, field: str) -> bytes:
    return _refusal(InputError(f"{field}: reading it takes too much memory; {allowed.words('memory')}", field=field))


def _limit_memory(allowed: Limits) -> Any:
    """Limit this process's growth; returns the previous limit. Only on Linux: elsewhere the caller checks."""
    if sys.platform != "linux":
        return None
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    now = psutil.Process().memory_info().data
    soft = now + int(allowed.memory * GIB)
    resource.setrlimit(resource.RLIMIT_DATA, (soft if before[1] < 0 else min(soft, before[1]), before[1]))
    return before


def _unlimited(before: Any) -> None:
    if before is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, before)


if __name__ == "__main__":
    sys.exit(main())

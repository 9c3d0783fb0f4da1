"""What a process does that answers calls, one per line of standard input: jobs, and calls with limits (`isoviz.jobs.guarded`).

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
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import psutil
from pydantic import TypeAdapter

from isoviz import allowed_paths, errors
from isoviz.allowed_paths import Roots
from isoviz.errors import InputError, IsoVizError, is_out_of_memory
from isoviz.jobs.kinds import KINDS, Job, Recent, Report
from isoviz.jobs.worker import load, log_to
from isoviz.limits import GIB, Limits

_MOST_GROWTH: Final = 256 * 2**20
"""Most bytes of growth for another call with limits."""
_LONGEST_ANSWER: Final = 8 * 2**20

_answers: int | None = None
_memories: dict[str, Recent] = {}


def serve(answers: int, idle: float | None = None) -> int:
    """Answer calls until the input ends, or this process is not reusable for another call.

    Args:
        answers: file descriptor for the answers, one line of JSON each, and for the progress of jobs before them.
        idle: seconds without a call after which it ends; None: no limit.
    """
    global _answers
    _answers = answers
    calls: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(calls,), daemon=True).start()
    reusable = True
    while reusable:
        try:
            line = calls.get(timeout=idle)
        except queue.Empty:
            break
        answer, reusable = _answer(json.loads(line))
        _send(b'{"reusable": %s, %s' % (b"true" if reusable else b"false", answer.removeprefix(b"{")))
    os._exit(0)  # the listener still waits for the input


def _send(line: bytes) -> None:
    rest = memoryview(line + b"\n")
    while rest and _answers is not None:
        rest = rest[os.write(_answers, rest) :]


def _listen(calls: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        calls.put(line)
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            child.kill()
    os._exit(0)


def _answer(order: Mapping[str, Any]) -> tuple[bytes, bool]:
    """The answer as JSON, and whether this process is reusable for another call."""
    if "limits" not in order:
        answer = called(load(order["call"]), order["arguments"])
        return answer, True
    for module in order["imports"]:
        importlib.import_module(module)
    function = load(order["call"])
    allowed = Limits(**order["limits"])
    before = psutil.Process().memory_info().rss
    roots = TypeAdapter(Roots | None).validate_python(order["roots"])
    allowed_paths.restrict_to(None if roots is None else lambda: roots)
    ceiling = _limit_memory(allowed)
    try:
        answer = called(function, order["arguments"])
        if len(answer) > _LONGEST_ANSWER:
            return refusal(
                InputError(f"{order['field']}: the content is too large to show", field=order["field"])
            ), False
    except IsoVizError as error:
        if is_out_of_memory(error):
            return _short_of_memory(allowed, order["field"]), False
        answer = refusal(error)
    except BaseException as error:
        if is_out_of_memory(error):
            return _short_of_memory(allowed, order["field"]), False
        return json.dumps({"bug": traceback.format_exc()}).encode(), False
    finally:
        _unlimited(ceiling)
    return answer, psutil.Process().memory_info().rss - before < _MOST_GROWTH


def called(function: Any, arguments: Mapping[str, Any]) -> bytes:
    """The function's result as an answer; arguments and result are converted from and to JSON by their types."""
    hints = typing.get_type_hints(function)
    names = inspect.signature(function).parameters
    parsed = {name: TypeAdapter(hints[name]).validate_python(arguments[name]) for name in names if name in arguments}
    value = TypeAdapter(hints["return"]).dump_json(function(**parsed))
    return b'{"value": ' + value + b"}"


def refusal(error: IsoVizError) -> bytes:
    """An error as an answer."""
    return json.dumps({"error": errors.to_json(error)}).encode()


def _short_of_memory(allowed: Limits, field: str) -> bytes:
    return refusal(InputError.at(field, f"reading it takes too much memory; {allowed.words('memory')}"))


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
    if before is not None and sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, before)


# ----------------------------------------------------------------------------------------------------------------- jobs


def do_job(room: str, kind: str, key: str, request: dict[str, Any], log: Path) -> dict[str, Any] | None:
    """Do a job, with the output in its log; see `work`.

    Args:
        room: the module that declares the kind.
    """
    importlib.import_module(room)
    declared = KINDS[kind]
    log_to(log)
    memory = _memories.setdefault(kind, Recent(declared.remembers))
    report = Report(lambda *progress: _send(json.dumps({"progress": progress}).encode()))
    return work(Job(declared, key, request, report, memory))


def work(job: Job) -> dict[str, Any] | None:
    """Do a job, which publishes its result.

    Returns:
        None, or the failure: `message`, `field` and `advice` in the user's terms, and whether this process is `fit` for another job.
    """
    kind = job.kind
    try:
        kind.results.limit()  # an invalid limit is reported before the work
        kind.work(job)
        kind.results.shrink(keep=job.published)
        return None
    except IsoVizError as error:
        advice = error.advice or (kind.memory_advice if is_out_of_memory(error) else "")
        return _failure(str(error), error.field, advice, fit=True)
    except Exception as error:  # a bug or a system error: the log has the traceback, the page its name
        traceback.print_exc()
        if is_out_of_memory(error):
            memory_owner = "device" if type(error).__name__ == "OutOfMemoryError" else "machine"
            return _failure(f"the {memory_owner} ran out of memory", kind.memory_field, kind.memory_advice)
        reason = next(iter(str(error).strip().splitlines()), "")
        failure = f"{type(error).__name__}: {reason}" if reason else type(error).__name__
        return _failure(f"the computation failed with {failure}", None, "See the log below.")


def _failure(message: str, field: str | None, advice: str, *, fit: bool = False) -> dict[str, Any]:
    print(message, file=sys.stderr, flush=True)
    return {"message": message, "field": field, "advice": advice, "fit": fit}

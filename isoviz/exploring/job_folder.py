"""The folder of one job as its process sees it: what is asked for, who works on it, and why there is no result."""

from __future__ import annotations

import shutil
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import psutil

from isoviz.errors import IsoVizError
from isoviz.exploring.progress import read_json, write_json

REQUEST: Final = "request.json"
PROCESS: Final = "worker.json"
ERROR: Final = "error.json"
LOG: Final = "log.txt"
PARTIAL: Final = "result"
"""A result that has not its place yet."""


def fulfil(folder: Path, work: Callable[[dict[str, Any]], None], *, memory: tuple[str | None, str]) -> int:
    """Do what the folder asks for; it is removed then, unless it has to say what went wrong.

    Args:
        work: takes the request as it was written, and gives the result its place.
        memory: the field and the advice to somebody whose job ran out of it.

    Returns:
        0 when the result has its place, 1 when `ERROR` says why not.
    """
    me = psutil.Process()
    write_json(folder / PROCESS, {"pid": me.pid, "started": me.create_time()})
    found = read_json(folder / REQUEST)
    assert found is not None, "whoever starts a process writes the request first"
    try:
        work(found)
    except IsoVizError as error:
        return _failed(folder, str(error), error.field, error.advice)
    except Exception as error:  # a bug, or a machine's trouble: the log has the traceback, the page its name
        traceback.print_exc()
        if isinstance(error, MemoryError):
            return _failed(folder, "the machine's memory is not enough for this", *memory)
        if type(error).__name__ == "OutOfMemoryError":
            return _failed(folder, "the device's memory is not enough for this", *memory)
        reason = next(iter(str(error).strip().splitlines()), "")
        words = f"{type(error).__name__}: {reason}" if reason else type(error).__name__
        return _failed(folder, f"the computation failed with {words}", None, "The log below tells more.")
    shutil.rmtree(folder, ignore_errors=True)
    return 0


def _failed(folder: Path, message: str, field: str | None, advice: str | None) -> int:
    shutil.rmtree(folder / PARTIAL, ignore_errors=True)
    print(message, file=sys.stderr, flush=True)
    write_json(folder / ERROR, {"message": message, "field": field, "advice": advice})
    return 1

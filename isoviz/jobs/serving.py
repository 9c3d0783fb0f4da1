"""A process that works on jobs of one kind, one after another, until none is left."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Final

import psutil

from isoviz.errors import IsoVizError, is_out_of_memory
from isoviz.jobs import scheduling
from isoviz.jobs.kinds import KINDS, Job, JobKind, Recent
from isoviz.jobs.progress import ProgressFile, read_json, write_json
from isoviz.jobs.results import ERROR
from isoviz.jobs.scheduling import JobProcess
from isoviz.jobs.worker import log_to

_LOOK: Final = 0.05
_MEMORY_LOOK: Final = 1.0
_APPS_LOOK: Final = 1.0


def serve(room: str, kind: str) -> int:
    """Work on the jobs of a kind; called by `isoviz.jobs.worker`.

    Args:
        room: the module that declares the kind.
    """
    importlib.import_module(room)
    return serve_kind(KINDS[kind])


def serve_kind(kind: JobKind) -> int:
    """Work on jobs until idle for `kind.warm_seconds`, memory is short, or a job left this process unfit for another."""
    with scheduling.exclusive():  # wait until the starting process has written our file
        entries = [entry for entry in scheduling.processes() if entry.pid == os.getpid() and entry.lives]
    if not entries:  # stopped before the start
        return 0
    (me,) = entries
    threading.Thread(target=_leave_with_the_last_app, args=(me,), name="apps", daemon=True).start()
    memory = Recent(kind.remembers)
    idle_since = time.monotonic()
    fit = True
    while True:
        with scheduling.exclusive():
            me, job = scheduling.take(me, kind) if fit else (me, None)
            if job is None and (
                not fit or time.monotonic() - idle_since >= kind.warm_seconds or _memory_is_short(kind)
            ):
                scheduling.leave(me)
                return 0
        if job is None:
            _wait(kind, idle_since + kind.warm_seconds)
            continue
        log_to(job.folder / scheduling.LOG)
        fit = work(kind, job.folder, memory)
        log_to(Path(me.log))
        with scheduling.exclusive():
            me = scheduling.finish(me, job)
        idle_since = time.monotonic()


def work(kind: JobKind, folder: Path, memory: Recent) -> bool:
    """Do the job in a folder. Stores its result, or writes the error to `error.json`.

    Returns:
        Whether this process is fit for another one.
    """
    content = read_json(folder / scheduling.REQUEST)
    if content is None:  # stopped just now
        return True
    try:
        kind.results.limit()  # an invalid limit is reported before the work
        job = Job(kind, folder.name, folder, content["request"], ProgressFile(folder), memory)
        kind.work(job)
        with scheduling.exclusive():
            kind.results.shrink(keep=job.published)
        return True
    except IsoVizError as error:
        _fail(folder, str(error), error.field, error.advice or (kind.memory_advice if is_out_of_memory(error) else ""))
        return True
    except Exception as error:  # a bug or a system error: the log has the traceback, the page its name
        if not folder.exists():  # stopped while it ran
            return False
        traceback.print_exc()
        if is_out_of_memory(error):
            memory_owner = "device" if type(error).__name__ == "OutOfMemoryError" else "machine"
            _fail(folder, f"the {memory_owner} ran out of memory", kind.memory_field, kind.memory_advice)
        else:
            reason = next(iter(str(error).strip().splitlines()), "")
            failure = f"{type(error).__name__}: {reason}" if reason else type(error).__name__
            _fail(folder, f"the computation failed with {failure}", None, "See the log below.")
        return False


def _fail(folder: Path, message: str, field: str | None, advice: str) -> None:
    print(message, file=sys.stderr, flush=True)
    with contextlib.suppress(FileNotFoundError):
        write_json(folder / ERROR, {"status": "failed", "message": message, "field": field, "advice": advice})


def _leave_with_the_last_app(me: JobProcess) -> None:
    """Exit this process when no app is left, because a killed app cannot stop it."""
    while scheduling.has_app():
        time.sleep(_APPS_LOOK)
    with scheduling.exclusive():
        for entry in scheduling.processes():
            if entry.pid == me.pid:
                scheduling.requeue(entry)
        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
        os._exit(0)


def _wait(kind: JobKind, until: float) -> None:
    """Wait until a job waits in this lane, the time is over, or a second has passed."""
    until = min(until, time.monotonic() + _MEMORY_LOOK)
    while time.monotonic() < until:
        time.sleep(_LOOK)
        if scheduling.waiting_in(kind.lane):
            return


def _memory_is_short(kind: JobKind) -> bool:
    return psutil.virtual_memory().available < kind.memory

"""Jobs by the key of their content: equal requests get the same result, from disk if available.

The queue is in the app's memory, results are on disk. Jobs outlive the page that requested them, and end with the app; a job whose
process vanished is `lost`. Kinds share pools; in a pool, jobs start in the order of their requests. A process does the jobs of one
kind until none is left. All functions are thread-safe.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import psutil
from numpy.typing import NDArray

from isoviz.home import home, make_private
from isoviz.jobs.guarded import Answering
from isoviz.jobs.kinds import KINDS, JobKind, Progress
from isoviz.jobs.prepared import PreparedWorker
from isoviz.jobs.processes import Worker
from isoviz.jobs.results import Result

Status = Literal["none", "waiting", "running", "done", "failed", "lost"]

RETRY_SECONDS: Final = 60.0
"""Seconds after which requesting a failed job again retries it automatically."""
KEPT_SECONDS: Final = 7 * 86400.0
"""Seconds for which failures and their logs are kept."""
_LOOK_SECONDS: Final = 1.0

prepared: PreparedWorker | None = None
"""This app's prepared worker, if any (`isoviz.jobs.service`)."""


@dataclass(frozen=True)
class JobState:
    """State of a job.

    Attributes:
        status: `none` (never requested, or stopped), `waiting`, `running`, `done`, `failed` (with a message) or `lost` (its process
            vanished).
        key: requested key.
        result: the result if done; partial results while running.
        progress: progress while running.
        seconds: seconds since the request, while waiting or running.
        ahead: while waiting, number of jobs that must end before it can start.
        message, field, advice: error of a failed or lost job, in the user's terms.
        log: log file, if any.
    """

    status: Status
    key: str = ""
    result: Result | None = None
    progress: Progress = field(default_factory=Progress)
    seconds: float = 0.0
    ahead: int = 0
    message: str = ""
    field: str | None = None
    advice: str = ""
    log: Path | None = None

    @property
    def under_way(self) -> bool:
        """Whether it is waiting or running."""
        return self.status in ("waiting", "running")

    @property
    def in_trouble(self) -> bool:
        """Whether it failed or was lost."""
        return self.status in ("failed", "lost")


@dataclass(eq=False)
class _Entry:
    """A job in the queue, at work or in trouble.

    Attributes:
        visitor: see `start`.
        since: when it was requested, or failed; seconds since 1970.
    """

    kind: JobKind
    request: Mapping[str, Any]
    inputs: Mapping[str, NDArray[Any]] | None
    visitor: str | None
    state: JobState
    since: float = field(default_factory=time.time)
    process: JobProcess | None = None

    @property
    def key(self) -> str:
        return self.state.key

    @property
    def log(self) -> Path:
        return home() / "jobs" / "logs" / f"{self.kind.name}-{self.key}.txt"

    def keep_inputs(self) -> None:
        """Write its inputs for its process."""
        if self.inputs:
            from safetensors.numpy import save_file

            file = self.kind.results.inputs_of(self.key)
            make_private(file.parent)
            save_file({name: np.ascontiguousarray(array) for name, array in self.inputs.items()}, file)

    def order(self) -> dict[str, Any]:
        """The call that does it."""
        arguments: dict[str, Any] = {"room": self.kind.room, "kind": self.kind.name, "key": self.key}
        arguments |= {"request": dict(self.request), "log": str(self.log)}
        return {"call": "isoviz.jobs.answering:do_job", "arguments": arguments}

    def heard(self, progress: list[Any]) -> None:
        self.state = replace(self.state, progress=Progress(*progress))

    def fail(self, status: Status, failure: Mapping[str, Any]) -> None:
        """It has failed; see `isoviz.jobs.answering.work`."""
        self.clear(log=False)
        self.since = time.time()
        message, field, advice = (failure[name] for name in ("message", "field", "advice"))
        self.state = replace(self.state, status=status, message=message, field=field, advice=advice)

    def clear(self, *, log: bool = True) -> None:
        """Remove its files."""
        self.kind.results.inputs_of(self.key).unlink(missing_ok=True)
        if log:
            self.log.unlink(missing_ok=True)


_changed = threading.Condition()
_entries: dict[tuple[str, Path], _Entry] = {}
_processes: list[JobProcess] = []


def _place(kind: JobKind, key: str) -> tuple[str, Path]:
    return kind.name, kind.results.inputs_of(key)


# ------------------------------------------------------------------------------------------------------- starting, stopping


def look(kind: JobKind, key: str) -> JobState:
    """Current state of the job with this key."""
    entry = _entries.get(_place(kind, key))  # before the result, which is published first
    result = kind.results.find(key)
    if result is not None and not result.pending:
        return JobState("done", key, result)
    if entry is None:
        return JobState("none", key, result)
    state = replace(entry.state, result=result)
    if not state.under_way:
        return state
    return replace(state, seconds=max(0.0, time.time() - entry.since), ahead=_ahead(entry))


def start(
    kind: JobKind,
    key: str,
    request: Mapping[str, Any],
    inputs: Mapping[str, NDArray[Any]] | None = None,
    *,
    retry: bool = True,
    visitor: str | None = None,
) -> JobState:
    """Start the job with this key, unless it is waiting, running or done. Does not wait for it.

    Args:
        request: JSON request for the kind's work.
        inputs: arrays of the request.
        retry: retry a failed or lost job now; otherwise only `RETRY_SECONDS` after it failed.
        visitor: the visitor who requests it in the browser.
    """
    with _changed:
        state = look(kind, key)
        entry = _entries.get(_place(kind, key))
        recent = entry is not None and time.time() - entry.since < RETRY_SECONDS
        if state.status == "done" or state.under_way or (state.in_trouble and recent and not retry):
            return state
        entry = _Entry(kind, request, inputs, visitor, JobState("waiting", key))
        entry.clear()
        entry.keep_inputs()
        _entries[_place(kind, key)] = entry
        _start_next()
    return look(kind, key)


def retry(kind: JobKind, key: str) -> JobState:
    """Retry a failed or lost job with the same request; no effect on one that is waiting, running, done or forgotten."""
    entry = _entries.get(_place(kind, key))
    if entry is None:
        return look(kind, key)
    return start(kind, key, entry.request, entry.inputs, visitor=entry.visitor)


def content_key(kind: JobKind, request: Mapping[str, Any], inputs: Mapping[str, NDArray[Any]] | None = None) -> str:
    """Thirty-two hex digits of a request and its inputs."""
    digest = hashlib.sha256(json.dumps([kind.name, dict(request)], sort_keys=True).encode())
    for name, array in sorted((inputs or {}).items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:32]


def stop(kind: JobKind, key: str) -> None:
    """Stop the job with this key and all its processes, and remove it, even if it failed. Keeps a result."""
    with _changed:
        entry = _entries.pop(_place(kind, key), None)
        if entry is None:
            return
        entry.clear()  # before others can request it again
        process = entry.process
        if process is not None:
            _processes.remove(process)  # it takes no other job
    if process is not None:
        process.end()


def release(kind: JobKind, key: str) -> None:
    """Stop a job that this page no longer needs, unless it has ended; another page that waits for it restarts it."""
    if look(kind, key).under_way:
        stop(kind, key)


def requester(kind: JobKind, key: str) -> str | None:
    """The visitor who requested the job with this key; None if not requested in a browser, or without such a job."""
    entry = _entries.get(_place(kind, key))
    return None if entry is None else entry.visitor


def under_way(visitor: str | None) -> int:
    """Number of waiting and running jobs of a visitor; None for the operator."""
    with _changed:
        return sum(entry.visitor == visitor and entry.state.under_way for entry in _entries.values())


def sweep() -> None:
    """Forget old failures, and remove logs that nobody needs any more and results beyond the limits."""
    with _changed:
        for place, entry in list(_entries.items()):
            if entry.state.in_trouble and time.time() - entry.since > KEPT_SECONDS:
                del _entries[place]
    for store in {kind.results for kind in KINDS.values()}:
        store.shrink()
    for log in (home() / "jobs" / "logs").glob("*"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - log.stat().st_mtime > KEPT_SECONDS:
                log.unlink()


def close() -> None:
    """End all processes, and forget all jobs."""
    with _changed:
        ending = list(_processes)
        for entry in _entries.values():
            entry.clear(log=False)
        _entries.clear()
    for process in ending:
        process.end()


# ------------------------------------------------------------------------------------------------------------ scheduling


class JobProcess:
    """A process that does the jobs of one kind.

    Attributes:
        entry: the current job; None while it is idle.
        since: when that began; seconds since 1970.
    """

    def __init__(self, kind: JobKind) -> None:
        self.kind = kind
        self.entry: _Entry | None = None
        self.since = time.time()
        self._log = home() / "jobs" / "logs" / f"process-{time.time_ns()}.txt"
        taken = prepared.take() if prepared is not None and prepared.prepare == kind.prepare else None
        worker = taken or Worker("", "any", self._log)
        self.pid = worker.pid
        self._answering = Answering(worker)
        self._fit = True
        self._used = False
        threading.Thread(target=self._serve, name=f"job-{worker.pid}", daemon=True).start()

    @property
    def takes_more(self) -> bool:
        """Whether it is idle, and fit for another job."""
        return self.entry is None and self._fit and self._answering.reusable

    def _serve(self) -> None:
        while (entry := self._next()) is not None:
            self._finish(entry, self._answering.call(entry.order(), heard=entry.heard))
        self.end()

    def _next(self) -> _Entry | None:
        """The next job; None after `warm_seconds`, if memory is short, or if this process is ended."""
        deadline = time.monotonic() + self.kind.warm_seconds
        with _changed:
            while self.entry is None and self in _processes:
                left = deadline - time.monotonic()
                if not self._fit or left <= 0 or _is_short(self.kind):
                    _processes.remove(self)
                    _start_next()
                    return None
                _changed.wait(min(left, _LOOK_SECONDS))
            return self.entry

    def _finish(self, entry: _Entry, answer: Mapping[str, Any] | None) -> None:
        with _changed:
            failure: Mapping[str, Any] | None = _LOST if answer is None else answer["value"]
            self.entry, self.since = None, time.time()
            self._fit = answer is not None and (failure is None or failure["fit"])
            place = _place(entry.kind, entry.key)
            if _entries.get(place) is entry:  # otherwise it was stopped, and may have been requested again
                entry.process = None
                if answer is None and self._used and not entry.log.exists():  # the process died while it was idle
                    entry.state = replace(entry.state, status="waiting")
                elif failure is None:
                    entry.clear()
                    del _entries[place]
                else:
                    if not entry.log.exists():
                        with contextlib.suppress(OSError):  # why it could not begin
                            shutil.copyfile(self._log, entry.log)
                    entry.fail("lost" if answer is None else "failed", failure)
            self._used = True
            _start_next()

    def end(self) -> None:
        """End the process with all its children; another one may start."""
        self.kill()
        with _changed:
            if self in _processes:
                _processes.remove(self)
            _start_next()

    def kill(self) -> None:
        """End the process with all its children."""
        self._answering.end()
        self._log.unlink(missing_ok=True)


_LOST: Final[dict[str, Any]] = {
    "message": "the process that computed this died",
    "field": None,
    "advice": "It was killed, perhaps because memory ran out. Retry, or take fewer rows or points.",
    "fit": False,
}
_NOT_STARTED: Final = "Check the machine's memory and disk, then retry."


def dispatch() -> None:
    """Start all jobs that can start now."""
    with _changed:
        _start_next()


def processes() -> list[JobProcess]:
    """The processes at work and those that wait for another job."""
    with _changed:
        return list(_processes)


def _waiting() -> list[_Entry]:
    with _changed:
        waiting = [entry for entry in _entries.values() if entry.state.status == "waiting"]
    return sorted(waiting, key=lambda entry: entry.since)


def _ahead(entry: _Entry) -> int:
    pool = entry.kind.pool
    queued = [waiting for waiting in _waiting() if waiting.kind.pool == pool]
    running = sum(process.entry is not None for process in processes() if process.kind.pool == pool)
    return (running if running >= pool.capacity() else 0) + queued.index(entry) if entry in queued else 0


def _start_next() -> None:
    """Under the lock: give waiting jobs to processes in order, as far as pools and memory allow."""
    full = set()
    for entry in _waiting():
        pool = entry.kind.pool
        if pool in full:
            continue  # jobs of one pool start in order
        process = next((one for one in _processes if one.takes_more and one.kind.name == entry.kind.name), None)
        if process is None:
            _make_room(entry.kind)
            working = any(one.entry is not None for one in _processes)
            if _occupied(entry.kind) >= pool.capacity() or (working and _is_short(entry.kind)):
                full.add(pool)
                continue
            try:
                process = JobProcess(entry.kind)
            except OSError as error:  # it would wait for ever
                reason = f"no process can be started for this ({error.strerror or error})"
                entry.fail("failed", {"message": reason, "field": None, "advice": _NOT_STARTED})
                continue
            _processes.append(process)
        process.entry, process.since, entry.process = entry, time.time(), process
        entry.state = replace(entry.state, status="running", log=entry.log)
    _changed.notify_all()


def _make_room(kind: JobKind) -> None:
    """End idle processes that occupy the pool, or memory if it is short."""
    for process in [one for one in _processes if one.entry is None]:
        short = _is_short(kind)
        if short or (process.kind.pool == kind.pool and _occupied(kind) >= kind.pool.capacity()):
            _processes.remove(process)
            process.kill()


def _occupied(kind: JobKind) -> int:
    return sum(process.kind.pool == kind.pool for process in _processes)


def _is_short(kind: JobKind) -> bool:
    return psutil.virtual_memory().available < kind.memory

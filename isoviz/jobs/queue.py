"""Jobs by the key of their content: equal requests get the same result, from disk if available.

A job is a folder in the store of its kind: `request.json`, inputs, then `process.json` with its process, progress and log, and
`error.json` if it has failed. The folder is removed when the result is published. Jobs outlive the page that requested them, and jobs
left by the last app wait for the next one; a job whose process vanished is `lost`. `isoviz.jobs.scheduling` determines the order.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from isoviz.home import make_private
from isoviz.jobs import progress, scheduling
from isoviz.jobs.kinds import INPUTS, KINDS, JobKind
from isoviz.jobs.processes import is_alive
from isoviz.jobs.progress import Progress, read_json, write_json
from isoviz.jobs.results import ERROR, Result
from isoviz.jobs.scheduling import LOG, PROCESS, REQUEST
from isoviz.jobs.spares import environment_key

Status = Literal["none", "waiting", "running", "done", "failed", "lost"]

RETRY_SECONDS: Final = 60.0
"""Seconds after which requesting a failed job again retries it automatically."""


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


# ------------------------------------------------------------------------------------------------------- starting, stopping


def look(kind: JobKind, key: str) -> JobState:
    """Current state of the job with this key. Reads a few small files."""
    folder = kind.results.job_folder(key)
    result = kind.results.find(key)
    if result is not None and not result.pending:
        return JobState("done", key, result)
    try:
        seconds = max(0.0, time.time() - (folder / REQUEST).stat().st_mtime)
    except (FileNotFoundError, NotADirectoryError):
        result = kind.results.find(key)  # it may have ended between two reads
        done = result is not None and not result.pending
        return JobState("done" if done else "none", key, result)
    error, process = (read_json(folder / name) for name in (ERROR, PROCESS))
    reported = progress.read(folder)
    if not folder.exists():  # it ended between two reads: its folder is removed atomically
        return look(kind, key)
    if error is not None:
        return _trouble(error, key, result, folder)
    if process is None:
        return JobState("waiting", key, result, seconds=seconds, ahead=scheduling.ahead(kind, folder))
    if is_alive(process["pid"], process["started"]):
        return JobState("running", key, result, reported, seconds, log=folder / LOG)
    return _trouble(scheduling.lost_error(), key, result, folder)


def _trouble(error: Mapping[str, Any], key: str, result: Result | None, folder: Path) -> JobState:
    status: Status = "lost" if error.get("status") == "lost" else "failed"
    message, field, advice = error["message"], error["field"], error["advice"] or ""
    return JobState(status, key, result, message=message, field=field, advice=advice, log=folder / LOG)


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
    state = look(kind, key)
    if state.status in ("done", "running"):
        return state
    with scheduling.exclusive():
        state = look(kind, key)
        folder = kind.results.job_folder(key)
        if state.status == "lost" and not (folder / ERROR).exists():
            write_json(folder / ERROR, scheduling.lost_error())  # starts the time until the next retry
        recent = state.in_trouble and time.time() - (folder / ERROR).stat().st_mtime < RETRY_SECONDS
        if state.status in ("done", "running") or (recent and not retry):
            return state
        if state.status != "waiting":
            kind.results.forget_job(key)
            make_private(folder)
            if inputs:
                from safetensors.numpy import save_file

                save_file({name: np.ascontiguousarray(array) for name, array in inputs.items()}, folder / INPUTS)
            content = {
                "kind": kind.name,
                "environment_key": environment_key(),
                "request": dict(request),
                "visitor": visitor,
            }
            write_json(folder / REQUEST, content)
        else:
            scheduling.adopt_job(folder)
        scheduling.start_next()
    return look(kind, key)


def ask(kind: JobKind, request: Mapping[str, Any], inputs: Mapping[str, NDArray[Any]] | None = None) -> JobState:
    """Start a job or return its state, for jobs defined only by request and inputs. Can be called repeatedly."""
    return start(kind, content_key(kind, request, inputs), request, inputs, retry=False)


def retry(kind: JobKind, key: str) -> JobState:
    """Retry a failed or lost job with the same request; no effect on one that is waiting, running, done or forgotten."""
    with scheduling.exclusive():
        folder = kind.results.job_folder(key)
        if look(kind, key).in_trouble:
            for name in (ERROR, PROCESS, LOG, progress.FILE):
                (folder / name).unlink(missing_ok=True)
            os.utime(folder / REQUEST)
            scheduling.adopt_job(folder)
            scheduling.start_next()
    return look(kind, key)


def content_key(kind: JobKind, request: Mapping[str, Any], inputs: Mapping[str, NDArray[Any]] | None = None) -> str:
    """Thirty-two hex digits of a request and its inputs."""
    digest = hashlib.sha256(json.dumps([kind.name, dict(request)], sort_keys=True).encode())
    for name, array in sorted((inputs or {}).items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:32]


def stop(kind: JobKind, key: str) -> None:
    """Stop the job with this key and all its processes, and remove it, even if it failed. Keeps a result."""
    with scheduling.exclusive():
        for process in scheduling.living():
            if (process.kind, process.job) == (kind.name, key):
                process.end()
        kind.results.forget_job(key)
        scheduling.start_next()


def release(kind: JobKind, key: str) -> None:
    """Stop a job that this page no longer needs, unless it has ended; another page that waits for it restarts it."""
    if look(kind, key).under_way:
        stop(kind, key)


def requester(kind: JobKind, key: str) -> str | None:
    """The visitor who requested the job with this key; None if not requested in a browser, or without such a job."""
    content = read_json(kind.results.job_folder(key) / REQUEST)
    return content.get("visitor") if content else None


def under_way(visitor: str) -> int:
    """Number of waiting and running jobs of a visitor."""
    count = 0
    for kind in KINDS.values():
        for path in (kind.results.root / "jobs").glob(f"*/{REQUEST}"):
            content = read_json(path) or {}
            if content.get("kind") == kind.name and content.get("visitor") == visitor:
                count += look(kind, path.parent.name).under_way  # failed jobs are kept for a while
    return count


def sweep() -> None:
    """Record ended processes, and remove results beyond the limits."""
    with scheduling.exclusive():
        scheduling.living()
        for store in {kind.results for kind in KINDS.values()}:
            store.shrink()

"""Jobs by the key of their content: the same request gets the same result, from disk if it is there.

A job is a folder in the store of its kind: `request.json`, inputs, then `process.json` of who works on it, its progress and log,
and `error.json` if it has failed. It goes when the result has its place. Jobs outlive the page that requested them, and what the
last app leaves waits for the next one; a job whose process vanished is `lost`. `isoviz.jobs.scheduling` decides which starts next.
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

from isoviz import fence
from isoviz.jobs import progress, scheduling
from isoviz.jobs.kinds import INPUTS, KINDS, JobKind
from isoviz.jobs.processes import is_alive
from isoviz.jobs.progress import Progress, read_json, write_json
from isoviz.jobs.results import ERROR, Result
from isoviz.jobs.scheduling import LOG, PROCESS, REQUEST
from isoviz.jobs.spares import surroundings

Status = Literal["none", "waiting", "running", "done", "failed", "lost"]

RETRY_SECONDS: Final = 60.0
"""After this time, requesting a failed job again retries it, without a press on a button."""


@dataclass(frozen=True)
class JobState:
    """How a job stands.

    Attributes:
        status: `none` (never requested, or stopped), `waiting` for its turn, `running`, `done`, `failed` (it says why) or `lost`
            (its process vanished).
        key: under which it was requested.
        result: when done; while it is running, what is there already.
        progress: while running.
        seconds: since it was requested, while waiting or running.
        ahead: while waiting, how many must end before it can start.
        message, field, advice: of a job that failed or was lost, in the user's terms.
        log: the file with its output, where there is one.
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
        """Whether it is worth looking again soon."""
        return self.status in ("waiting", "running")

    @property
    def in_trouble(self) -> bool:
        """Whether it ended without a result."""
        return self.status in ("failed", "lost")


# ------------------------------------------------------------------------------------------------------- asking, stopping


def look(kind: JobKind, key: str) -> JobState:
    """How the job of this key stands now. Reads a few small files."""
    folder = kind.results.job_folder(key)
    result = kind.results.find(key)
    if result is not None and not result.pending:
        return JobState("done", key, result)
    try:
        seconds = max(0.0, time.time() - (folder / REQUEST).stat().st_mtime)
    except (FileNotFoundError, NotADirectoryError):
        result = kind.results.find(key)  # it may have ended between our looks
        done = result is not None and not result.pending
        return JobState("done" if done else "none", key, result)
    error, process, request = (read_json(folder / name) for name in (ERROR, PROCESS, REQUEST))
    reported = progress.read(folder)
    if not folder.exists():  # it ended between our looks: its folder goes as a whole
        return look(kind, key)
    if error is not None:
        return _trouble(error, key, result, folder)
    if process is None:
        if "kind" not in (request or {}):  # of an older version
            return JobState("none", key, result)
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
    """Ask for the job of this key; nothing if it is waiting, running or done. Never waits for it.

    Args:
        request: JSON that the kind's work understands.
        inputs: arrays that belong to it.
        retry: a failed or lost job is tried again at once; otherwise only `RETRY_SECONDS` after it failed.
        visitor: who asks for it in the browser.
    """
    state = look(kind, key)
    if state.status in ("done", "running"):
        return state
    with scheduling.exclusive():
        state = look(kind, key)
        folder = kind.results.job_folder(key)
        if state.status == "lost" and not (folder / ERROR).exists():
            write_json(folder / ERROR, scheduling.lost_error())  # the time from which it may be tried again
        recent = state.in_trouble and time.time() - (folder / ERROR).stat().st_mtime < RETRY_SECONDS
        if state.status in ("done", "running") or (recent and not retry):
            return state
        if state.status != "waiting":
            kind.results.forget_job(key)
            folder.mkdir(parents=True)
            if inputs:
                from safetensors.numpy import save_file

                save_file({name: np.ascontiguousarray(array) for name, array in inputs.items()}, folder / INPUTS)
            content = {"kind": kind.name, "surroundings": surroundings(), "request": dict(request), "visitor": visitor}
            if visitor is not None and (roots := fence.roots()) is not None:
                content["roots"] = roots.as_json()
            write_json(folder / REQUEST, content)
        else:
            scheduling.adopt_job(folder)
        scheduling.start_next()
    return look(kind, key)


def ask(kind: JobKind, request: Mapping[str, Any], inputs: Mapping[str, NDArray[Any]] | None = None) -> JobState:
    """Ask, or look how it stands: the same call as often as one likes, for jobs whose content is all in request and inputs."""
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
    """End the job of this key with everything it started, and forget it, a failed one too; a result stays."""
    with scheduling.exclusive():
        for at_work in scheduling.living():
            if (at_work.kind, at_work.job) == (kind.name, key):
                at_work.end()
        kind.results.forget_job(key)
        scheduling.start_next()


def let_go(kind: JobKind, key: str) -> None:
    """Stop a job that is no longer wanted here, unless it has ended; another page that waits for it starts it again."""
    if look(kind, key).under_way:
        stop(kind, key)


def asker(kind: JobKind, key: str) -> str | None:
    """The visitor who requested the job of this key; None if that was not from a browser, or there is no such job."""
    content = read_json(kind.results.job_folder(key) / REQUEST)
    return content.get("visitor") if content else None


def under_way(visitor: str) -> int:
    """How many jobs of this visitor wait or run."""
    count = 0
    for kind in KINDS.values():
        for path in (kind.results.root / "jobs").glob(f"*/{REQUEST}"):
            content = read_json(path) or {}
            if content.get("kind") == kind.name and content.get("visitor") == visitor:
                count += look(kind, path.parent.name).under_way  # a failed one stays a while
    return count


def sweep() -> None:
    """Note which processes are gone; clear what is older or larger than may be kept."""
    with scheduling.exclusive():
        scheduling.living()
        for store in {kind.results for kind in KINDS.values()}:
            store.shrink()

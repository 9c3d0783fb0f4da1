"""Views on their way: one job per key, whoever asks for it, in a process that outlives the page and the server.

A view's pictures are there before its last numbers are: `isoviz.exploring.results.find` gives them while the job runs.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from filelock import FileLock

from isoviz.errors import InputError
from isoviz.exploring import encoders, progress, results, starting
from isoviz.exploring.job_folder import ERROR, LOG, PROCESS, REQUEST
from isoviz.exploring.progress import UNTOLD, Progress, read_json, write_json
from isoviz.exploring.request import ViewRequest, key_of, rows_of
from isoviz.runs.processes import Worker, is_alive

_YOUNG: Final = 20.0
"""Seconds after which a job without a process is no job that is being started."""


@dataclass(frozen=True)
class State:
    """How the view of a key stands.

    Attributes:
        kind: `none` (never asked for, or stopped), `running`, `done`, `failed` (it says why) or `lost` (its process vanished).
        progress: while running.
        seconds: since it was started, while running.
        message, field, advice: of a job that failed or was lost, in the user's terms.
        log: the file with the worker's output, where there is one.
    """

    kind: Literal["none", "running", "done", "failed", "lost"]
    progress: Progress = UNTOLD
    seconds: float = 0.0
    message: str = ""
    field: str | None = None
    advice: str = ""
    log: Path | None = None


def look(key: str, *, at: Path | None = None) -> State:
    """How the view of this key stands now. Reads a few small files."""
    root = at or results.root()
    folder = root / "jobs" / key
    if _is_whole(key, root):
        return State("done")
    try:
        age = time.time() - (folder / REQUEST).stat().st_mtime
    except (FileNotFoundError, NotADirectoryError):
        return State("done") if _is_whole(key, root) else State("none")
    process = read_json(folder / PROCESS)
    alive = age < _YOUNG if process is None else is_alive(process["pid"], process["started"])
    error = read_json(folder / ERROR)
    if error is not None:
        return State(
            "failed", message=error["message"], field=error["field"], advice=error["advice"] or "", log=folder / LOG
        )
    if alive:
        return State("running", progress.read(folder), max(0.0, age), log=folder / LOG)
    if _is_whole(key, root):  # it ended between our looks
        return State("done")
    if not folder.exists():
        return State("none")
    return State(
        "lost",
        message="the process that computed this view is gone",
        advice="It was killed, perhaps because memory ran out: look again, or take fewer rows.",
        log=folder / LOG,
    )


def start(request: ViewRequest, key: str, *, at: Path | None = None) -> State:
    """Start the job of this key unless it runs or is done; a failed or lost one is started anew.

    Args:
        request: what to compute.
        key: of its content (`isoviz.exploring.request.key_of`).

    Raises:
        InputError: a setting that is not allowed.
    """
    request.check()
    return begin("isoviz.exploring.worker", key, request.as_json(), at=at or results.root())


def begin(module: str, key: str, request: Mapping[str, Any], *, at: Path) -> State:
    """Start a job of any kind unless it runs or is done; a failed or lost one is started anew.

    Args:
        module: of its process, called as `python -m MODULE JOB_FOLDER`; it keeps to the files of `isoviz.exploring.job_folder`.
        request: what its `request.json` holds.
    """
    with _alone(at, key):
        state = look(key, at=at)
        if state.kind in ("running", "done"):
            return state
        folder = at / "jobs" / key
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        write_json(folder / REQUEST, dict(request))
        pid, started = starting.launch(module, [str(folder)], folder / LOG)
        # The worker writes the same of itself. If it is done with everything already, its folder is gone.
        with contextlib.suppress(FileNotFoundError):
            write_json(folder / PROCESS, {"pid": pid, "started": started})
    return look(key, at=at)


def obtain(request: ViewRequest, *, at: Path | None = None, patience: float = 3600.0) -> results.ViewResult:
    """The view of a request, computed if it is not there yet; waits for it. For notebooks: a page looks instead of waiting.

    Raises:
        IsoVizError: what the job failed with, or that it took longer than `patience` seconds.
    """
    request.check()
    key = key_of(request, encoders.resolve(request.model), rows_of(request.task, request.data))
    start(request, key, at=at)
    deadline = time.monotonic() + patience
    while True:
        # a hub model has another key once it is here
        key = key_of(request, encoders.resolve(request.model), rows_of(request.task, request.data))
        state = look(key, at=at)
        view = results.find(key, at=at) if state.kind == "done" else None
        if view is not None:
            return view
        if state.kind in ("failed", "lost"):
            raise InputError(state.message, field=state.field, advice=state.advice)
        if time.monotonic() > deadline:
            raise InputError(f"patience: the view took longer than {patience:g} seconds", field="patience")
        time.sleep(0.2)


def stop(key: str, *, at: Path | None = None) -> None:
    """End the job of this key with everything it started, and forget it; nothing if there is none."""
    root = at or results.root()
    folder = root / "jobs" / key
    with _alone(root, key):
        process = read_json(folder / PROCESS)
        if process is not None and is_alive(process["pid"], process["started"]):
            Worker(process["pid"], process["started"]).kill()
        shutil.rmtree(folder, ignore_errors=True)


def _is_whole(key: str, root: Path) -> bool:
    view = results.find(key, at=root)
    return view is not None and not view.pending


@contextlib.contextmanager
def _alone(root: Path, key: str) -> Iterator[None]:
    """Of all sessions and servers that ask for a key, one at a time."""
    locks = root / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    with FileLock(locks / f"{key}.lock"):
        yield

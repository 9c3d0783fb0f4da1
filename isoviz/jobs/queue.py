"""Jobs by the key of their content: whoever asks for the same gets the same result, from disk if it is there.

A job is a folder in the store of its kind: `request.json`, inputs, then `process.json` of who works on it, its progress and log,
and `error.json` if it has failed. It goes when the result has its place. Jobs outlive the page and the server that asked for them;
one whose process vanished is `lost`. Which job starts next is decided by `dispatch`, under one lock per home, by whoever calls it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import psutil
from filelock import FileLock
from numpy.typing import NDArray

from isoviz.home import home
from isoviz.jobs import progress
from isoviz.jobs.kinds import INPUTS, KINDS, JobKind, Lane
from isoviz.jobs.processes import Process, Spare, is_alive
from isoviz.jobs.progress import Progress, read_json, write_json
from isoviz.jobs.results import ERROR, Result
from isoviz.jobs.spares import SpareKeeper, surroundings

Status = Literal["none", "waiting", "running", "done", "failed", "lost"]

REQUEST: Final = "request.json"
PROCESS: Final = "process.json"
LOG: Final = "log.txt"
RETRY_SECONDS: Final = 60.0
"""After so long a failed job is tried again when it is asked for, without anybody pressing a button."""

spare: SpareKeeper | None = None
"""That of this app, if it keeps one (`isoviz.jobs.service`)."""


@dataclass(frozen=True)
class JobState:
    """How a job stands.

    Attributes:
        status: `none` (never asked for, or stopped), `waiting` for its turn, `running`, `done`, `failed` (it says why) or `lost`
            (its process vanished).
        key: under which it was asked for.
        result: when done; while it is running, what is there already.
        progress: while running.
        seconds: since it was asked for, while waiting or running.
        ahead: how many go before it, while waiting.
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
    error = read_json(folder / ERROR)
    if error is not None:
        return _trouble(error, key, result, folder)
    process = read_json(folder / PROCESS)
    if process is None:
        if "kind" not in (read_json(folder / REQUEST) or {}):  # of an older version, or gone this moment
            return JobState("none", key, result)
        return JobState("waiting", key, result, seconds=seconds, ahead=_ahead(kind, folder))
    if is_alive(process["pid"], process["started"]):
        return JobState("running", key, result, progress.read(folder), seconds, log=folder / LOG)
    if not folder.exists():
        return look(kind, key)
    return _trouble(_lost(), key, result, folder)


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
) -> JobState:
    """Ask for the job of this key; nothing if it is waiting, running or done. Never waits for it.

    Args:
        request: JSON that the kind's work understands.
        inputs: arrays that belong to it.
        retry: a failed or lost job is tried again at once; otherwise only `RETRY_SECONDS` after it failed.
    """
    state = look(kind, key)
    if state.status in ("done", "running"):
        return state
    with exclusive():
        state = look(kind, key)
        folder = kind.results.job_folder(key)
        if state.status == "lost" and not (folder / ERROR).exists():
            write_json(folder / ERROR, _lost())  # the time from which it may be tried again
        recent = state.in_trouble and time.time() - (folder / ERROR).stat().st_mtime < RETRY_SECONDS
        if state.status in ("done", "running") or (recent and not retry):
            return state
        if state.status != "waiting":
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            if inputs:
                from safetensors.numpy import save_file

                save_file({name: np.ascontiguousarray(array) for name, array in inputs.items()}, folder / INPUTS)
            write_json(folder / REQUEST, {"kind": kind.name, "surroundings": surroundings(), "request": dict(request)})
        _dispatch()
    return look(kind, key)


def ask(kind: JobKind, request: Mapping[str, Any], inputs: Mapping[str, NDArray[Any]] | None = None) -> JobState:
    """Ask, or look how it stands: the same call as often as one likes, for jobs whose content is all in request and inputs."""
    return start(kind, content_key(kind, request, inputs), request, inputs, retry=False)


def retry(kind: JobKind, key: str) -> JobState:
    """Try a failed or lost job again, as it was asked for; nothing if it is waiting, running, done or forgotten."""
    with exclusive():
        folder = kind.results.job_folder(key)
        if look(kind, key).in_trouble:
            for name in (ERROR, PROCESS, LOG, progress.FILE):
                (folder / name).unlink(missing_ok=True)
            os.utime(folder / REQUEST)
            _dispatch()
    return look(kind, key)


def content_key(kind: JobKind, request: Mapping[str, Any], inputs: Mapping[str, NDArray[Any]] | None = None) -> str:
    """Thirty-two hex digits of a request and its inputs."""
    digest = hashlib.sha256(json.dumps([kind.name, dict(request)], sort_keys=True).encode())
    for name, array in sorted((inputs or {}).items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:32]


def stop(kind: JobKind, key: str) -> None:
    """End the job of this key with everything it started, and forget it, a failed one too; a result stays."""
    folder = kind.results.job_folder(key)
    with exclusive():
        for at_work in _processes():
            if (at_work.kind, at_work.job) == (kind.name, key):
                at_work.end()
        shutil.rmtree(folder, ignore_errors=True)
        _dispatch()


def let_go(kind: JobKind, key: str) -> None:
    """Stop a job that nobody here wants any more, unless it has ended; somebody else who waits for it has it started again."""
    if look(kind, key).under_way:
        stop(kind, key)


def close() -> None:
    """End every process of this home, whatever it does, and forget what is waiting. For tests and benchmarks."""
    with exclusive():
        for job in _waiting():
            shutil.rmtree(job.folder, ignore_errors=True)
        for at_work in _processes():
            at_work.end()


# ------------------------------------------------------------------------------------------------------- what starts next


def dispatch() -> None:
    """Start what may start now."""
    if any(True for _ in _waiting_folders()):
        with exclusive():
            _dispatch()


def waiting_above(priority: int) -> bool:
    """Whether a job of a higher priority waits for its turn."""
    return any(kind.priority > priority for kind, _ in _waiting_folders())


def waiting_in(lane: Lane) -> bool:
    """Whether a job waits in this lane."""
    return any(kind.lane == lane for kind, _ in _waiting_folders())


def sweep() -> None:
    """Note which processes are gone; clear what is older or larger than may be kept."""
    with exclusive():
        _processes()
        for store in {kind.results for kind in KINDS.values()}:
            store.shrink()


@contextlib.contextmanager
def exclusive() -> Iterator[None]:
    """Asking, starting, taking, stopping and leaving exclude each other: no job falls between two processes."""
    folder = home() / "jobs"
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "lock"):
        yield


@dataclass(frozen=True)
class Waiting:
    """A job that no process works on yet."""

    kind: JobKind
    folder: Path
    surroundings: Mapping[str, str]


@dataclass(frozen=True)
class AtWork:
    """A process that serves a kind, as its file says.

    Attributes:
        kind, lane: their names.
        surroundings: of the environment what decides where models, data and devices are.
        job: the key of the one it works on; None if it waits for one.
        since: when it began that, or was started.
        taken: how many jobs it has begun.
        log: its output while it has no job.
    """

    pid: int
    started: float
    kind: str
    lane: str
    surroundings: Mapping[str, str]
    log: str
    job: str | None = None
    since: float = 0.0
    taken: int = 0

    @property
    def file(self) -> Path:
        """Where it stands."""
        return home() / "jobs" / "processes" / f"{self.pid}.json"

    @property
    def working(self) -> bool:
        """Whether it works on a job, or has just been started for one."""
        return (self.job is not None or self.taken == 0) and self.lives

    @property
    def lives(self) -> bool:
        """Whether it is there."""
        return is_alive(self.pid, self.started)

    def write(self, job: str | None) -> AtWork:
        """Note what it works on now, in its file."""
        changed = replace(self, job=job, since=time.time(), taken=self.taken + (job is not None))
        write_json(changed.file, asdict(changed))
        return changed

    def end(self) -> None:
        """End it with everything that it started."""
        Process(self.pid, self.started).kill()
        self.file.unlink(missing_ok=True)


def take(me: AtWork, kind: JobKind) -> tuple[AtWork, Waiting | None]:
    """Called by a process under the lock: the next job if it is of its kind, now its own."""
    turn = [job for job in _waiting() if job.kind.lane == kind.lane]
    if not turn or turn[0].kind is not kind or dict(turn[0].surroundings) != dict(me.surroundings):
        return me, None
    write_json(turn[0].folder / PROCESS, {"pid": me.pid, "started": me.started})
    return me.write(turn[0].folder.name), turn[0]


def leave(me: AtWork) -> None:
    """Called by a process under the lock: it takes no more jobs; another starts where one is needed."""
    me.file.unlink(missing_ok=True)
    _dispatch()


def at_work() -> list[AtWork]:
    """The processes that serve a kind, of this home."""
    listed = []
    for path in (home() / "jobs" / "processes").glob("*.json"):
        content = read_json(path)
        if content is not None:
            listed.append(AtWork(**content))
    return listed


def _processes() -> list[AtWork]:
    """Those that live. What the others left is put in order."""
    living = []
    for one in at_work():
        if one.lives:
            living.append(one)
            continue
        one.file.unlink(missing_ok=True)
        if one.taken == 0:  # it ended before it could begin anything: another would too
            _give_up(one)
        elif one.job is not None and one.kind in KINDS:
            folder = KINDS[one.kind].results.job_folder(one.job)
            if (folder / PROCESS).exists() and not (folder / ERROR).exists():
                write_json(folder / ERROR, _lost())
    return living


def _give_up(dead: AtWork) -> None:
    for job in _waiting():
        if job.kind.name == dead.kind:
            with contextlib.suppress(OSError):
                shutil.copyfile(dead.log, job.folder / LOG)
            write_json(job.folder / ERROR, _lost("The log has the reason."))
            return


def _dispatch() -> None:
    """Under the lock: for each waiting job, the most urgent first, a process that will take it, where one may be had."""
    free = _processes()
    lanes: dict[str, int] = {}
    for one in free:
        lanes[one.lane] = lanes.get(one.lane, 0) + 1
    busy = [one for one in free if one.job is not None]
    free = [one for one in free if one.job is None]
    reserved = 0
    full: set[str] = set()
    for job in _waiting():
        lane = job.kind.lane
        if lane.name in full:
            continue  # nobody overtakes in a lane
        fitting = [one for one in free if one.kind == job.kind.name and one.surroundings == job.surroundings]
        if fitting:
            free.remove(fitting[0])
            reserved += 1
            continue
        short = psutil.virtual_memory().available < job.kind.memory
        for one in [one for one in free if one.taken and (one.lane == lane.name or short)]:
            if short or lanes[lane.name] >= lane.at_once():  # it waits for nobody, and holds a place or memory
                one.end()
                free.remove(one)
                lanes[one.lane] -= 1
        short = psutil.virtual_memory().available < job.kind.memory
        if lanes.get(lane.name, 0) >= lane.at_once() or (short and (busy or reserved)):
            full.add(lane.name)
            continue
        _spawn(job.kind)
        lanes[lane.name] = lanes.get(lane.name, 0) + 1
        reserved += 1


def _spawn(kind: JobKind) -> None:
    """Start a process that serves a kind: the app's spare where there is one, else a new one."""
    log = home() / "jobs" / "logs" / f"{kind.name}-{os.getpid()}-{time.time_ns() % 1_000_000}.log"
    process = spare.take() if spare is not None and kind.prepared else None
    arguments = {"room": kind.room, "kind": kind.name}
    if process is not None:
        with contextlib.suppress(OSError):  # it died this moment
            process.order("isoviz.jobs.serving:serve", arguments, log)
            _enter(process, kind, log)
            return
    process = Spare("", "any", log)
    _enter(process, kind, log)
    with contextlib.suppress(OSError):
        process.order("isoviz.jobs.serving:serve", arguments, log)


def _enter(process: Process, kind: JobKind, log: Path) -> None:
    entry = AtWork(process.pid, process.started, kind.name, kind.lane.name, surroundings(), str(log), since=time.time())
    entry.file.parent.mkdir(parents=True, exist_ok=True)
    write_json(entry.file, asdict(entry))


def _waiting_folders() -> Iterator[tuple[JobKind, Path]]:
    for store in {kind.results for kind in KINDS.values()}:
        for path in (store.root / "jobs").glob(f"*/{REQUEST}"):
            if (path.parent / PROCESS).exists() or (path.parent / ERROR).exists():
                continue
            content = read_json(path)
            if content is not None and content.get("kind") in KINDS:
                yield KINDS[content["kind"]], path.parent


def _waiting() -> list[Waiting]:
    """Those that wait, in the order in which they will have their turn."""
    order = []
    for kind, folder in _waiting_folders():
        content = read_json(folder / REQUEST)
        with contextlib.suppress(FileNotFoundError):
            if content is not None:
                asked = (folder / REQUEST).stat().st_mtime_ns
                order.append((-kind.priority, asked, folder.name, Waiting(kind, folder, content["surroundings"])))
    return [job for *_, job in sorted(order, key=lambda entry: entry[:3])]


def _ahead(kind: JobKind, folder: Path) -> int:
    turn = [job.folder for job in _waiting() if job.kind.lane == kind.lane]
    return turn.index(folder) if folder in turn else 0


def _lost(
    advice: str = "It was killed, perhaps because memory ran out. Retry, or take fewer rows or points.",
) -> dict[str, Any]:
    return {"status": "lost", "message": "the process that computed this is gone", "field": None, "advice": advice}

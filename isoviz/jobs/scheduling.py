"""Scheduling of jobs and processes, under one lock per home, by any process that calls `dispatch`.

Kinds share lanes; in a lane, jobs start by priority, then by request time. A process serves jobs of one kind until none is left.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import psutil
from filelock import FileLock

from isoviz.home import home, make_private
from isoviz.jobs import progress
from isoviz.jobs.kinds import KINDS, JobKind, Lane
from isoviz.jobs.processes import Process, Spare, is_alive
from isoviz.jobs.progress import read_json, write_json
from isoviz.jobs.results import ERROR
from isoviz.jobs.spares import SpareKeeper, environment_key

REQUEST: Final = "request.json"
PROCESS: Final = "process.json"
LOG: Final = "log.txt"

spare: SpareKeeper | None = None
"""This app's keeper of spares, if any (`isoviz.jobs.service`)."""


def dispatch() -> None:
    """Start all jobs that can start now."""
    if waiting():
        with exclusive():
            start_next()


def waiting_above(priority: int) -> bool:
    """Whether a job of a higher priority is waiting."""
    return any(job.kind.priority > priority for job in waiting())


def waiting_in(lane: Lane) -> bool:
    """Whether a job waits in this lane."""
    return any(job.kind.lane == lane for job in waiting())


@contextlib.contextmanager
def exclusive() -> Iterator[None]:
    """Lock for requesting, starting, taking and stopping jobs, so that no job is lost between two processes."""
    folder = home() / "jobs"
    make_private(folder)
    with FileLock(folder / "lock"):
        yield


@dataclass(frozen=True)
class Waiting:
    """A job without a process."""

    kind: JobKind
    folder: Path
    environment_key: str


@dataclass(frozen=True)
class JobProcess:
    """A process that serves a kind, as recorded in its file.

    Attributes:
        kind, lane: their names.
        environment_key: see `isoviz.jobs.spares.environment_key`; it takes only jobs requested in the same environment.
        job: key of the current job; None while idle.
        since: start of the current state.
        taken: number of jobs it has started.
        log: log file while idle.
    """

    pid: int
    started: float
    kind: str
    lane: str
    environment_key: str
    log: str
    job: str | None = None
    since: float = 0.0
    taken: int = 0

    @property
    def file(self) -> Path:
        """The process's file."""
        return home() / "jobs" / "processes" / f"{self.pid}.json"

    @property
    def working(self) -> bool:
        """Whether it works on a job, or was just started for one."""
        return (self.job is not None or self.taken == 0) and self.lives

    @property
    def lives(self) -> bool:
        """Whether the process is alive."""
        return is_alive(self.pid, self.started)

    def write(self, job: str | None) -> JobProcess:
        """Record its current job in its file."""
        changed = replace(self, job=job, since=time.time(), taken=self.taken + (job is not None))
        write_json(changed.file, asdict(changed))
        return changed

    def end(self) -> None:
        """End the process with all its children."""
        Process(self.pid, self.started).kill()
        self.forget()

    def forget(self) -> None:
        """Remove its file and log."""
        self.file.unlink(missing_ok=True)
        Path(self.log).unlink(missing_ok=True)


def take(me: JobProcess, kind: JobKind) -> tuple[JobProcess, Waiting | None]:
    """Called by a process under the lock: take the next job of its kind, if any."""
    queued = [job for job in waiting() if job.kind.lane == kind.lane and job.environment_key == me.environment_key]
    if not queued or queued[0].kind is not kind:
        return me, None
    me = me.write(queued[0].folder.name)
    write_json(queued[0].folder / PROCESS, {"pid": me.pid, "started": me.started})
    return me, queued[0]


def finish(me: JobProcess, job: Waiting) -> JobProcess:
    """Called by a process under the lock after a job: remove the job's folder unless it contains an error."""
    process = read_json(job.folder / PROCESS)
    ours = process is not None and process["pid"] == me.pid  # a failed job may already have been restarted
    if ours and not (job.folder / ERROR).exists():
        job.kind.results.forget_job(job.folder.name)
    return me.write(None)


def leave(me: JobProcess) -> None:
    """Called by a process under the lock before it exits: it takes no more jobs."""
    me.forget()
    start_next()


def _app_file() -> Path:
    return home() / "jobs" / "apps" / f"{os.getpid()}.json"


def register_app() -> None:
    """Register this process as an app: job processes run while an app of their home is alive."""
    make_private(_app_file().parent)  # always written: what is there may be of an earlier process with this id
    write_json(_app_file(), {"pid": os.getpid(), "started": psutil.Process().create_time()})


def has_app() -> bool:
    """Whether an app of this home is alive."""
    for path in (home() / "jobs" / "apps").glob("*.json"):
        app = read_json(path)
        if app is not None and is_alive(app["pid"], app["started"]):
            return True
        path.unlink(missing_ok=True)
    return False


def requeue(process: JobProcess) -> None:
    """Under the lock: return the job of a process about to be ended to the queue, for the next app."""
    if process.job is not None and process.kind in KINDS:
        folder = KINDS[process.kind].results.job_folder(process.job)
        for name in (progress.FILE, PROCESS):
            (folder / name).unlink(missing_ok=True)
    process.forget()


def close_app() -> None:
    """Called by an app at its end. Processes end with the last app, and their jobs wait for the next one."""
    with exclusive():
        _app_file().unlink(missing_ok=True)
        if not has_app():
            for process in living():
                process.end()
                requeue(process)


def processes() -> list[JobProcess]:
    """The registered processes of this home."""
    listed = []
    for path in (home() / "jobs" / "processes").glob("*.json"):
        content = read_json(path)
        with contextlib.suppress(TypeError):  # other fields: left by another version, which this one does not use
            if content is not None:
                listed.append(JobProcess(**content))
    return listed


def living() -> list[JobProcess]:
    """The live processes. Cleans up after ended ones."""
    living = []
    for process in processes():
        if process.lives:
            living.append(process)
            continue
        if process.taken == 0:  # it ended before its first job, and so would another
            _give_up(process)
        elif process.job is not None and process.kind in KINDS:
            folder = KINDS[process.kind].results.job_folder(process.job)
            if (folder / PROCESS).exists() and not (folder / ERROR).exists():
                write_json(folder / ERROR, lost_error())
        process.forget()
    return living


def _give_up(dead: JobProcess) -> None:
    for job in waiting():
        if job.kind.name == dead.kind:
            with contextlib.suppress(OSError):
                shutil.copyfile(dead.log, job.folder / LOG)
            write_json(job.folder / ERROR, lost_error("See the log for the reason."))
            return


def adopt() -> None:
    """Called regularly by an app: adopt jobs requested in another environment."""
    with exclusive():
        for job in waiting():
            adopt_job(job.folder)


def adopt_job(folder: Path) -> None:
    """Move a waiting job to this app's environment."""
    content = read_json(folder / REQUEST)
    if content is not None and content.get("environment_key") != environment_key():
        request_stat = (folder / REQUEST).stat()
        write_json(folder / REQUEST, {**content, "environment_key": environment_key()})
        os.utime(
            folder / REQUEST, ns=(request_stat.st_atime_ns, request_stat.st_mtime_ns)
        )  # keeps its position in the queue


def start_next() -> None:
    """Under the lock: start processes for waiting jobs by priority, as far as lanes and memory allow.

    A process inherits this app's environment, so an app starts only jobs requested in the same one.
    """
    here = environment_key()
    free = living()
    lanes: dict[str, int] = {}
    for process in free:
        lanes[process.lane] = lanes.get(process.lane, 0) + 1
    busy = [process for process in free if process.job is not None]
    free = [process for process in free if process.job is None]
    reserved = 0
    full: set[str] = set()
    for job in waiting():
        lane = job.kind.lane
        if lane.name in full or job.environment_key != here:
            continue  # jobs of one lane start in order
        fitting = [process for process in free if process.kind == job.kind.name and process.environment_key == here]
        if fitting:
            free.remove(fitting[0])
            reserved += 1
            continue
        short = psutil.virtual_memory().available < job.kind.memory
        for process in [process for process in free if process.taken and (process.lane == lane.name or short)]:
            if short or lanes[lane.name] >= lane.capacity():  # idle, and it occupies a lane or memory
                process.end()
                free.remove(process)
                lanes[process.lane] -= 1
        short = psutil.virtual_memory().available < job.kind.memory
        if lanes.get(lane.name, 0) >= lane.capacity() or (short and (busy or reserved)):
            full.add(lane.name)
            continue
        _spawn(job.kind)
        lanes[lane.name] = lanes.get(lane.name, 0) + 1
        reserved += 1


def _spawn(kind: JobKind) -> None:
    """Start a process for a kind: the app's spare if available, else a new one."""
    log = home() / "jobs" / "logs" / f"{kind.name}-{os.getpid()}-{time.time_ns() % 1_000_000}.log"
    process = spare.take() if spare is not None and spare.prepare == kind.prepare else None
    if process is None:
        process = Spare("", "any", log)
    register_app()
    started = time.time()
    entry = JobProcess(
        process.pid, process.started, kind.name, kind.lane.name, environment_key(), str(log), since=started
    )
    make_private(entry.file.parent)
    write_json(entry.file, asdict(entry))
    with contextlib.suppress(OSError):  # it has just died: the next check detects that
        process.order("isoviz.jobs.serving:serve", {"room": kind.room, "kind": kind.name}, log)


def waiting() -> list[Waiting]:
    """The waiting jobs, next one first."""
    order = []
    for store in {kind.results for kind in KINDS.values()}:
        for path in (store.root / "jobs").glob(f"*/{REQUEST}"):
            if (path.parent / PROCESS).exists() or (path.parent / ERROR).exists():
                continue
            content = read_json(path) or {}
            kind = KINDS.get(content.get("kind", ""))
            with contextlib.suppress(FileNotFoundError):
                if kind is not None:
                    requested_at = path.stat().st_mtime_ns
                    order.append(
                        (-kind.priority, requested_at, Waiting(kind, path.parent, content.get("environment_key", "")))
                    )
    return [job for *_, job in sorted(order, key=lambda entry: entry[:2])]


def ahead(kind: JobKind, folder: Path) -> int:
    """Number of jobs that must end before a waiting one can start."""
    queued = [job.folder for job in waiting() if job.kind.lane == kind.lane]
    running = sum(process.job is not None for process in processes() if process.lane == kind.lane.name)
    waited_for = running if running >= kind.lane.capacity() else 0
    return waited_for + (queued.index(folder) if folder in queued else 0)


def lost_error(
    advice: str = "It was killed, perhaps because memory ran out. Retry, or take fewer rows or points.",
) -> dict[str, Any]:
    """The content of `error.json` for a job whose process vanished."""
    return {"status": "lost", "message": "the process that computed this died", "field": None, "advice": advice}

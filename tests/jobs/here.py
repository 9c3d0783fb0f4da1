"""A job done in this process, as its own process would do it."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
from numpy.typing import NDArray

from isoviz.jobs import queue, scheduling, serving
from isoviz.jobs.kinds import INPUTS, JobKind, Lane, Recent
from isoviz.jobs.progress import write_json
from isoviz.jobs.queue import JobState
from isoviz.jobs.results import ERROR
from isoviz.jobs.spares import environment_key


def write_job(
    kind: JobKind,
    key: str,
    request: Mapping[str, Any],
    inputs: Mapping[str, NDArray[Any]] | None = None,
    *,
    process: psutil.Process | None = None,
) -> Path:
    """The folder of a job that waits, or that `process` works on."""
    folder = kind.results.job_folder(key)
    folder.mkdir(parents=True)
    if inputs:
        from safetensors.numpy import save_file

        save_file(dict(inputs), folder / INPUTS)
    write_json(
        folder / scheduling.REQUEST, {"kind": kind.name, "environment_key": environment_key(), "request": dict(request)}
    )
    if process is not None:
        write_json(folder / scheduling.PROCESS, {"pid": process.pid, "started": process.create_time()})
        entry = scheduling.JobProcess(
            process.pid,
            process.create_time(),
            kind.name,
            kind.lane.name,
            environment_key(),
            str(folder / "own.log"),
            taken=1,
        )
        entry.file.parent.mkdir(parents=True, exist_ok=True)
        entry.write(key)
    return folder


def fail_job(kind: JobKind, key: str, message: str, field: str | None = None, advice: str = "") -> Path:
    """The folder of a job that has failed."""
    folder = write_job(kind, key, {})
    write_json(folder / ERROR, {"status": "failed", "message": message, "field": field, "advice": advice})
    return folder


def work_here(
    kind: JobKind,
    key: str,
    request: Mapping[str, Any],
    inputs: Mapping[str, NDArray[Any]] | None = None,
    memory: Recent | None = None,
) -> JobState:
    """Run a job in this process; returns its state."""
    shutil.rmtree(kind.results.job_folder(key), ignore_errors=True)
    folder = write_job(kind, key, request, inputs)
    me = psutil.Process()
    write_json(folder / scheduling.PROCESS, {"pid": me.pid, "started": me.create_time()})
    serving.work(kind, folder, memory or Recent(kind.remembers))
    if not (folder / ERROR).exists():
        shutil.rmtree(folder)
    return queue.look(kind, key)


@contextlib.contextmanager
def lane_taken(lane: Lane) -> Iterator[None]:
    """Within the block, other jobs fill every slot of a lane, so that a new job waits."""
    with contextlib.ExitStack() as slots:
        for number in range(lane.capacity()):
            process = slots.enter_context(subprocess.Popen(["sleep", "600"], start_new_session=True))
            slots.callback(process.kill)
            started = psutil.Process(process.pid).create_time()
            entry = scheduling.JobProcess(process.pid, started, "held", lane.name, "", f"{process.pid}.log", taken=1)
            entry.file.parent.mkdir(parents=True, exist_ok=True)
            entry.write(f"held-{number}")
            slots.callback(entry.file.unlink, missing_ok=True)
        yield
    scheduling.dispatch()


def end_all() -> None:
    """End every process of this home and clear the queue."""
    with scheduling.exclusive():
        for job in scheduling.waiting():
            shutil.rmtree(job.folder, ignore_errors=True)
        for process in scheduling.living():
            process.end()

"""`isoviz worker`: train queued runs of a store, one after another, on any machine that can reach it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated

from isoviz import devices
from isoviz.commands.options import StoreOption
from isoviz.commands.train import say
from isoviz.errors import InputError
from isoviz.jobs.worker import log_to
from isoviz.operations.operation import argument
from isoviz.runs.execution import DEFAULT_TRAIN, train_run
from isoviz.runs.gentle_stop import gentle_stop
from isoviz.runs.recovery import mark_lost
from isoviz.runs.runner import POLL_SECONDS, Runner
from isoviz.runs.store import RunRow, Store, StoreUnavailableError
from isoviz.training.distributed import LOG


def run(
    idle: Annotated[float, argument("stop when the queue has been empty for this long", "SECONDS", ge=0)] = 60.0,
    ray: Annotated[
        str | None,
        argument(
            "train on a Ray cluster instead of this machine; URL is that of its dashboard, such as http://127.0.0.1:8265",
            "URL",
        ),
    ] = None,
    cpus: Annotated[int | None, argument("with --ray: CPUs of each run (default: 1)", ge=1)] = None,
    gpus: Annotated[int | None, argument("with --ray: GPUs of each process of a run (default: 0)", ge=0)] = None,
    run: Annotated[str | None, argument("what a job of the cluster does", hidden=True)] = None,
    attempt: Annotated[int | None, argument("of the job's run", hidden=True)] = None,
    store: StoreOption = None,
) -> int:
    """Work until the queue has been empty for `--idle` seconds, or until stopped; the exit code is 0.

    SIGTERM and Ctrl-C stop the run at hand with a checkpoint and put it back into the queue; with `--ray` the jobs go on.
    """
    for name, number in {"cpus": cpus, "gpus": gpus}.items():
        if number is not None and ray is None:
            raise InputError(f"--{name}: only with --ray", field=name)
    opened = Store(store)
    if run is not None:
        row = opened.get(run)  # before the log: an unknown id is an error of this command
        log_to(opened.folder_of(row.id) / LOG)
        return train_run(opened.url, row.id, DEFAULT_TRAIN, attempt=attempt)
    if ray is not None:
        return _serve_cluster(opened, ray, idle, cpus or 1, gpus or 0)
    mark_lost(opened)
    found = devices.describe()
    with gentle_stop(say) as stop:
        work(opened, idle, stop, gpus=len(found.slots) if found.on_gpu else None)
    return 0


def _serve_cluster(store: Store, url: str, idle: float, cpus: int, gpus: int) -> int:
    from isoviz.runs.ray_jobs import Cluster, Dispatcher, token_of

    dispatcher = Dispatcher(store, Cluster(url, token_of(os.environ)), cpus=cpus, gpus=gpus, say=say)
    with gentle_stop(lambda _: say("stopping; jobs on the cluster continue")) as stop:
        dispatcher.serve(idle, stop)
    return 0


def work(
    store: Store, idle: float, stop: Callable[[], bool], *, train: str = DEFAULT_TRAIN, gpus: int | None = None
) -> None:
    """Train queued runs until none has come for `idle` seconds, or `stop` says so.

    Args:
        store: whose runs.
        train: see `isoviz.runs.execution`.
        gpus: of this machine. Runs of more processes are left to other workers.
    """
    # All devices that this process sees are one slot, with a name that no other worker has.
    runner = Runner(store, [f"worker-{os.getpid()}"], train=train, gpus=gpus)
    runner.start()
    try:
        shown: RunRow | None = None
        while not stop() and runner.idle_seconds() < idle:
            if (row := runner.run) is not None and row is not shown:
                say(f"run {row.id}: {row.name}")
                shown = row
            time.sleep(POLL_SECONDS)
        while not runner.drain():  # idle: it may have taken a run this moment
            if stop() and (row := runner.run) is not None:
                with suppress(StoreUnavailableError):
                    store.request_release(row.id, row.attempt)
            time.sleep(POLL_SECONDS)
    finally:
        runner.close()
    if not stop():
        return
    # A scheduler's signal also reaches the training process, which may stop before it is asked to; the next run may then have begun.
    for row in runner.recent:
        if store.release(row.id, row.attempt):
            say(f"run {row.id} is back in the queue")

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
from isoviz.operations.operation import argument
from isoviz.runs.execution import DEFAULT_TRAIN
from isoviz.runs.gentle_stop import gentle_stop
from isoviz.runs.recovery import mark_lost
from isoviz.runs.runner import POLL_SECONDS, Runner
from isoviz.runs.store import RunRow, Store, StoreUnavailableError


def run(
    idle: Annotated[float, argument("stop when the queue has been empty for this long", "SECONDS", ge=0)] = 60.0,
    ray: Annotated[
        str | None,
        argument(
            "train on a Ray cluster instead of this machine: its address, or auto for the one that this machine belongs to",
            "ADDRESS",
        ),
    ] = None,
    cpus: Annotated[int | None, argument("with --ray: CPUs of each run (default: 1)", ge=1)] = None,
    gpus: Annotated[int | None, argument("with --ray: GPUs of each process of a run (default: 0)", ge=0)] = None,
    store: StoreOption = None,
) -> int:
    """Work until the queue has been empty for `--idle` seconds, or until stopped; the exit code is 0.

    SIGTERM and Ctrl-C stop the runs at hand with a checkpoint and put them back into the queue.
    """
    for name, number in {"cpus": cpus, "gpus": gpus}.items():
        if number is not None and ray is None:
            raise InputError(f"--{name}: only with --ray", field=name)
    opened = Store(store)
    if ray is not None:
        from isoviz.runs.ray_tasks import RayTasks

        tasks = RayTasks(opened, ray, cpus=cpus or 1, gpus=gpus or 0, say=say)
        with gentle_stop(say) as stop:
            tasks.serve(idle, stop)
        return 0
    mark_lost(opened)
    found = devices.describe()
    with gentle_stop(say) as stop:
        work(opened, idle, stop, gpus=len(found.slots) if found.on_gpu else None)
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

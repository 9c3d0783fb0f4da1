"""`isoviz worker`: train queued runs of a store, one after another, on any machine that can reach it."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from isoviz import devices
from isoviz.commands.options import add_store, number, whole
from isoviz.errors import InputError
from isoviz.jobs.worker import log_to
from isoviz.runs.execution import DEFAULT_TRAIN, train_run
from isoviz.runs.gentle_stop import gentle_stop
from isoviz.runs.recovery import mark_lost
from isoviz.runs.runner import POLL_SECONDS, Runner
from isoviz.runs.store import RunRow, Store, StoreUnavailableError
from isoviz.training.distributed import LOG


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    parser.add_argument(
        "--idle",
        type=number,
        default=60.0,
        metavar="SECONDS",
        help="stop when the queue has been empty for this long (default: 60)",
    )
    parser.add_argument(
        "--ray",
        metavar="URL",
        help="train on a Ray cluster instead of this machine; URL is that of its dashboard, such as http://127.0.0.1:8265",
    )
    parser.add_argument("--cpus", type=whole, metavar="N", help="with --ray: CPUs of each run (default: 1)")
    parser.add_argument(
        "--gpus", type=whole, metavar="N", help="with --ray: GPUs of each process of a run (default: 0)"
    )
    parser.add_argument("--run", help=argparse.SUPPRESS)  # what a job of the cluster does
    parser.add_argument("--attempt", type=whole, help=argparse.SUPPRESS)
    add_store(parser, json=False)


def run(options: argparse.Namespace) -> int:
    """Work until the queue has been empty for `--idle` seconds, or until stopped; the exit code is 0.

    SIGTERM and Ctrl-C stop the run at hand with a checkpoint and put it back into the queue; with `--ray` the jobs go on.
    """
    if options.idle < 0:
        raise InputError(f"--idle: expected 0 or more (got {options.idle:g})", field="idle")
    _check_cluster_options(options)
    store = Store(options.store)
    if options.run is not None:
        row = store.get(options.run)  # before the log: an unknown id is an error of this command
        log_to(store.folder_of(row.id) / LOG)
        return train_run(store.url, row.id, DEFAULT_TRAIN, attempt=options.attempt)
    if options.ray is not None:
        return _serve_cluster(store, options)
    mark_lost(store)
    found = devices.describe()
    with gentle_stop(_say) as stop:
        work(store, options.idle, stop, gpus=len(found.slots) if found.on_gpu else None)
    return 0


def _check_cluster_options(options: argparse.Namespace) -> None:
    for name, least in (("cpus", 1), ("gpus", 0)):
        number = getattr(options, name)
        if number is not None and options.ray is None:
            raise InputError(f"--{name}: only with --ray", field=name)
        if number is not None and number < least:
            raise InputError(f"--{name}: expected {least} or more (got {number})", field=name)


def _serve_cluster(store: Store, options: argparse.Namespace) -> int:
    from isoviz.runs.ray_jobs import Cluster, Dispatcher, token_of

    cluster = Cluster(options.ray, token_of(os.environ))
    dispatcher = Dispatcher(store, cluster, cpus=options.cpus or 1, gpus=options.gpus or 0, say=_say)
    with gentle_stop(lambda _: _say("stopping; jobs on the cluster continue")) as stop:
        dispatcher.serve(options.idle, stop)
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
                _say(f"run {row.id}: {row.name}")
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
            _say(f"run {row.id} is back in the queue")


def _say(line: str) -> None:
    with suppress(OSError):  # the terminal may be gone
        print(line, file=sys.stderr, flush=True)

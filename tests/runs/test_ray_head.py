"""Runs over a real Ray cluster, results in PostgreSQL: a job is killed, the dispatcher is restarted, nothing runs twice.

`benchmarks/ray_runs.py` restarts the head, too.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from isoviz.config import RunConfig
from isoviz.events import Lost, Resumed
from isoviz.runs import ray_jobs
from isoviz.runs.ray_jobs import Cluster, Dispatcher
from isoviz.runs.store import Store
from tests.runs.fake_training import SPEC
from tests.runs.observing import TOLD, ended, finish, kinds, until
from tests.runs.postgres_server import Address
from tests.runs.ray_head import ROOT, TOKEN, Head, installed

PYTHON = f"""#!/bin/sh
PYTHONPATH={ROOT} exec {sys.executable} -c '
import sys, isoviz.__main__, isoviz.commands.worker
isoviz.commands.worker.DEFAULT_TRAIN = "{SPEC}"
sys.exit(isoviz.__main__.main(sys.argv[3:]))' "$@"
"""
"""In place of Python: the same command, with a training that takes no time."""


@contextmanager
def dispatched(store: Store, head: Head) -> Iterator[None]:
    """A running dispatcher."""
    over = threading.Event()
    dispatcher = Dispatcher(store, Cluster(head.address, TOKEN), say=lambda line: None)
    thread = threading.Thread(target=dispatcher.serve, args=(3600.0, over.is_set))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_job_is_killed_and_the_dispatcher_restarted(
    postgres: Address, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = installed()
    python = tmp_path / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    monkeypatch.setenv("ISOVIZ_PYTHON", str(python))
    monkeypatch.setenv("ISOVIZ_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(ray_jobs, "POLL_SECONDS", 0.5)
    import psycopg

    name = f"ray{time.time_ns()}"
    with psycopg.connect(postgres("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    store = Store(postgres(name))
    steady, victim = store.create([RunConfig(params=TOLD, seed=seed) for seed in range(2)])
    quick = store.create([RunConfig(params={"does": "finish"}, seed=seed) for seed in range(3)])
    runs = [steady, victim, *quick]
    with Head(program, cpus=8) as head:
        with dispatched(store, head):
            until(lambda: all("stepped" in kinds(store, run) for run in (steady, victim)))
            pid = store.get(victim).pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            until(lambda: "resumed" in kinds(store, victim))
        with dispatched(store, head):
            assert [ended(store, run).status for run in quick] == ["finished"] * 3
            assert store.get(steady).status == "running" and "lost" not in kinds(store, steady)
            finish(store, steady)
            finish(store, victim)
            assert [ended(store, run).status for run in (steady, victim)] == ["finished"] * 2
    trained = [(store.folder_of(run) / "ran").read_text().split() for run in runs]
    assert [len(set(pids)) for pids in trained] == [len(pids) for pids in trained] == [1, 2, 1, 1, 1]
    for run, losses in ((steady, 0), (victim, 1)):
        assert len(store.events_of_kind(run, Lost)) == len(store.events_of_kind(run, Resumed)) == losses
    killed = store.events_of_kind(victim, Lost)[0]
    assert killed.message == "the worker was killed by SIGKILL"
    store.close()

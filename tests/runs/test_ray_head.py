"""Runs over a real Ray cluster, results in PostgreSQL: a process is killed, the program that submits is restarted, nothing runs twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from isoviz.__main__ import main
from isoviz.config import RunConfig
from isoviz.errors import InputError
from isoviz.events import Lost, Resumed
from isoviz.runs.ray_tasks import RayTasks
from isoviz.runs.store import Store
from tests.runs.fake_training import SPEC
from tests.runs.observing import LONG, TOLD, ended, finish, gone, kinds, until
from tests.runs.postgres_server import Address
from tests.runs.ray_head import ROOT, Head, require_ray

PROGRAM = """
import sys
from isoviz.runs import ray_tasks
from isoviz.runs.gentle_stop import gentle_stop
from isoviz.runs.ray_tasks import RayTasks
from isoviz.runs.store import Store
ray_tasks.SAVE_SECONDS = 15.0
tasks = RayTasks(Store(sys.argv[1]), sys.argv[2], train=sys.argv[3])
with gentle_stop(print) as stop:
    tasks.serve(3600.0, stop)
"""
"""`isoviz worker --ray`, with a training that takes no time."""


@contextmanager
def submitting(store: Store, head: Head, end: int = signal.SIGTERM) -> Iterator[None]:
    """The program, ended by a signal."""
    command = [sys.executable, "-c", PROGRAM, store.url, head.address, SPEC]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}) as process:
        try:
            yield
        finally:
            process.send_signal(end)
            process.wait(60)


@pytest.fixture
def store(postgres: Address, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    require_ray()
    monkeypatch.setenv("ISOVIZ_HOME", str(tmp_path / "home"))
    import psycopg

    name = f"ray{time.time_ns()}"
    with psycopg.connect(postgres("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    opened = Store(postgres(name))
    yield opened
    opened.close()


@pytest.mark.nightly
def test_runs_survive_a_killed_process_and_a_restart_and_none_runs_twice(store):
    steady, victim, stubborn = store.create(
        [RunConfig(params=params, seed=seed) for seed, params in enumerate([TOLD, TOLD, {"does": "ignore everything"}])]
    )
    quick = store.create([RunConfig(params={"does": "finish"}, seed=seed) for seed in range(3)])
    dying, wide = store.create([RunConfig(params={"does": "die"}), RunConfig(params=TOLD, processes=1, seed=9)])
    with Head(cpus=8) as head:
        with submitting(store, head):
            until(lambda: all("stepped" in kinds(store, run) for run in (steady, victim, stubborn)))
            os.kill(store.get(victim).pid or 0, signal.SIGKILL)
            until(lambda: "resumed" in kinds(store, victim))
            assert [ended(store, run).status for run in quick] == ["finished"] * 3
            store.request_stop(stubborn)
            assert ended(store, stubborn).status == "stopped"
            until(lambda: gone(store.get(stubborn).pid or 0))
            until(lambda: len(store.events_of_kind(dying, Lost)) == 3)
        # asked to end, it stopped its runs with a checkpoint and put them back
        assert {store.get(run).status for run in (steady, victim, wide)} == {"queued"}
        resumed = lambda *times: [kinds(store, run).count("resumed") for run in (steady, victim, wide)] == [*times]  # noqa: E731
        with submitting(store, head, signal.SIGKILL):
            until(lambda: resumed(1, 2, 1))
        with submitting(store, head):  # its predecessor's tasks ended with it
            until(lambda: resumed(2, 3, 2))
            for run in (steady, victim, wide):
                finish(store, run)
            assert [ended(store, run).status for run in (steady, victim, wide)] == ["finished"] * 3
    assert store.get(dying).status == "lost"  # three times without a checkpoint
    assert "does not resume by itself" in store.events_of_kind(dying, Lost)[-1].advice
    trained = [(store.folder_of(run) / "ran").read_text().split() for run in (steady, victim, wide, dying, *quick)]
    assert [len(set(pids)) for pids in trained] == [len(pids) for pids in trained] == [3, 4, 3, 3, 1, 1, 1]
    assert len(store.events_of_kind(victim, Resumed)) == 3


def test_options_and_stores_that_a_cluster_cannot_use(store, tmp_path, capsys, monkeypatch):
    import ray

    def unreachable(*_: object, **__: object) -> None:
        sys.exit(15)  # as Ray does after two minutes

    monkeypatch.setattr(ray, "init", unreachable)
    assert main(["worker", "--store", str(tmp_path), "--ray", "127.0.0.1:1"]) == 2
    assert "--ray: no cluster answers at '127.0.0.1:1'" in capsys.readouterr().err
    monkeypatch.setattr(Store, "has_password", True)
    with pytest.raises(InputError, match="contains a password"):
        RayTasks(store)


@pytest.mark.nightly
def test_a_run_waits_in_the_queue_until_a_task_begins(store):
    first, second = store.create([RunConfig(params=LONG, seed=seed) for seed in range(2)])
    with Head(cpus=1) as head, submitting(store, head):
        until(lambda: "stepped" in kinds(store, first))
        assert store.get(second).status == "queued"
        store.request_stop(second)
        assert store.get(second).status == "stopped"
        store.request_stop(first)
        assert ended(store, first).status == "stopped"

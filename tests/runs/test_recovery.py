"""Whose run is lost, and when: by its process on this machine, by its silence elsewhere."""

from __future__ import annotations

import subprocess
import sys

import psutil
import pytest
from sqlalchemy import update

from isoviz.config import RunConfig
from isoviz.runs import schema
from isoviz.runs.identity import owner_of, pid_scope
from isoviz.runs.recovery import mark_lost, slot_lock
from isoviz.runs.store import Store
from tests.runs.conftest import Make


@pytest.fixture
def dead() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    return process.pid


def claimed(store: Store, config: RunConfig) -> str:
    """A run as an app's runner has claimed it."""
    (run_id,) = store.create([config])
    row = store.claim(owner_of("cpu"), "cpu")
    assert row is not None and row.id == run_id
    return run_id


def silent_for(store: Store, seconds: float, **values: object) -> None:
    with store._database.writing() as connection:
        past = store._database.now() - seconds
        connection.execute(update(schema.runs).values(heartbeat=past, **values))


def test_dead_worker_is_lost_at_once_unless_its_app_lives(store: Store, config: Make, dead: int) -> None:
    run_id = claimed(store, config())
    store.set_worker(run_id, dead, 1.0)
    with slot_lock(store, owner_of("cpu")).acquire(timeout=0):
        assert mark_lost(store) == [], "the app knows how it ended"
    assert mark_lost(store) == [run_id]
    assert store.get(run_id).status == "lost"


def test_living_worker_is_left_alone(store: Store, config: Make) -> None:
    run_id = claimed(store, config())
    me = psutil.Process()
    store.set_worker(run_id, me.pid, me.create_time())
    silent_for(store, 3600)
    assert mark_lost(store) == []
    store.set_worker(run_id, me.pid, me.create_time() - 100)  # another process had this number
    assert mark_lost(store) == [run_id]


def test_run_that_a_dead_app_never_started_is_queued_again(store: Store, config: Make) -> None:
    run_id = claimed(store, config())
    assert mark_lost(store) == [] and store.get(run_id).status == "running", "it may be about to"
    silent_for(store, 4)
    with slot_lock(store, owner_of("cpu")).acquire(timeout=0):
        mark_lost(store)
        assert store.get(run_id).status == "running"
    mark_lost(store)
    assert (store.get(run_id).status, store.get(run_id).owner) == ("queued", None)


def test_elsewhere_silence_decides_also_under_the_same_host_name(store: Store, config: Make, dead: int) -> None:
    run_id = claimed(store, config())
    store.set_worker(run_id, dead, 1.0)
    assert store.get(run_id).pid_scope == pid_scope()
    silent_for(store, 20, pid_scope="another")  # a container with this host's name
    assert mark_lost(store) == []
    silent_for(store, 31)
    assert mark_lost(store) == [run_id]


def test_reserved_run_of_a_dead_command_is_lost_with_it(store: Store, config: Make, dead: int) -> None:
    (own_run,) = store.create([config(seed=1)], claim="this command")
    (orphan,) = store.create([config(seed=2)], claim="a command that is gone")
    store.set_worker(orphan, dead, 1.0)
    assert mark_lost(store) == [orphan]
    error = store.get(orphan).error
    assert error is not None and error["message"] == "the command that was running it has ended"
    assert store.get(own_run).status == "queued"
    store.requeue(orphan)

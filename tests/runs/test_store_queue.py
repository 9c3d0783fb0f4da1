"""What every store promises of its queue: who may take a run, give it back, stop it, and have it again."""

from __future__ import annotations

import os
import threading
import time

import pytest
from sqlalchemy import update

from isoviz.errors import StoreError
from isoviz.events import Checkpointed, Stopped
from isoviz.runs import schema
from isoviz.runs.identity import host_name
from isoviz.runs.store import Store
from tests.runs.conftest import Make
from tests.runs.reports import ENDINGS, FINISHED, begun


def test_claims_take_the_oldest_first(store: Store, config: Make) -> None:
    ids = store.create([config(seed=s) for s in range(3)])
    claimed = [store.claim("me", "cuda:1") for _ in range(4)]
    assert [row.id for row in claimed if row] == ids
    assert claimed[3] is None
    row = store.get(ids[0])
    assert (row.status, row.owner, row.device, row.host, row.attempt) == ("running", "me", "cuda:1", host_name(), 1)
    assert row.started is not None and row.heartbeat is not None and row.position is None


def test_a_claim_for_two_gpus_leaves_runs_of_three_processes(store: Store, config: Make) -> None:
    quoting = '"processes":1,'  # in a text, which says nothing about the run
    ids = store.create(
        [
            config(processes=3, prefix=quoting),
            config(processes=20),
            config(processes=2),
            config(),
            config(processes=8, accelerate_config="/machines.yaml"),
        ]
    )
    claimed = [store.claim("me", "worker", gpus=2) for _ in range(4)]
    assert [row and row.id for row in claimed] == [*ids[2:], None]
    rest = store.claim("me", "worker")
    assert rest is not None and rest.id == ids[0]


def test_eight_claimants_share_twenty_runs_without_loss(store: Store, config: Make) -> None:
    ids = store.create([config(seed=s) for s in range(20)])
    claimed: list[str] = []
    ready = threading.Barrier(8)

    def work(name: str) -> None:
        misses = 0
        ready.wait()
        while misses < 3:
            row = store.claim(name, "cpu")
            if row is None:
                misses += 1
                time.sleep(0.02)
            else:
                claimed.append(row.id)

    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(claimed) == ids


def test_a_reserved_run_goes_to_its_owner_only(store: Store, config: Make) -> None:
    reserved, other = store.create([config(seed=1)], claim="shell") + store.create([config(seed=2)])
    row = store.get(reserved)
    assert (row.status, row.owner, row.host, row.position) == ("queued", "shell", host_name(), None)
    assert row.pid is not None
    assert store.get(other).position == 1
    assert store.claim("someone", "cpu", id=reserved) is None
    first = store.claim("shell", "cpu")
    assert first is not None and first.id == other, "without an id only what is free is taken"
    claimed = store.claim("shell", "cpu", id=reserved)
    assert claimed is not None and (claimed.status, claimed.pid) == ("running", os.getpid()), "who claims by id runs it"
    assert store.claim("shell", "cpu", id=reserved) is None


@pytest.mark.parametrize("status", ["stopped", "failed", "lost"])
def test_resumable_runs_are_queued_again_at_the_end(store: Store, config: Make, status: str) -> None:
    run_id = begun(store, config())
    store.append(run_id, [Checkpointed(step=4, epoch=1, path="c")])
    store.request_stop(run_id)
    store.append(run_id, [ENDINGS[status]])
    (other,) = store.create([config()])
    store.requeue(run_id)
    row = store.get(run_id)
    assert (row.status, row.resume, row.stop_requested, row.ended, row.error) == ("queued", True, False, None, None)
    assert row.progress is not None and row.progress.checkpoint_step == 4
    assert [r.id for r in store.list(order="queue")] == [other, run_id]
    assert row.position == 2


def test_run_of_a_stopped_worker_keeps_its_place_in_the_queue(store: Store, config: Make) -> None:
    run_id = begun(store, config())
    store.create([config()])
    store.request_release(run_id, 1)
    assert store.signals(run_id).stop
    store.append(run_id, [ENDINGS["stopped"]])
    assert not store.release(run_id, 2), "a later attempt is not this worker's"
    assert store.release(run_id, 1)
    row = store.get(run_id)
    assert (row.status, row.resume, row.stop_requested, row.position) == ("queued", True, False, 1)


@pytest.mark.parametrize("user_first", [True, False])
def test_run_that_a_user_stopped_is_not_requeued(store: Store, config: Make, user_first: bool) -> None:
    run_id = begun(store, config())
    requests = [lambda: store.request_stop(run_id), lambda: store.request_release(run_id, 1)]
    for request in requests if user_first else requests[::-1]:
        request()
    store.append(run_id, [ENDINGS["stopped"]])
    assert not store.release(run_id, 1)
    assert store.get(run_id).status == "stopped"


@pytest.mark.parametrize("status", ["queued", "running", "finished", "diverged"])
def test_other_runs_cannot_be_resumed(store: Store, config: Make, status: str) -> None:
    (run_id,) = store.create([config()])
    if status != "queued":
        store.claim("me", "cpu")
    if status in ENDINGS:
        store.append(run_id, [ENDINGS[status]])
    with pytest.raises(StoreError, match=rf"it is {status} \(allowed: failed, lost, stopped\)"):
        store.requeue(run_id)
    assert store.get(run_id).status == status


def test_stopping(store: Store, config: Make) -> None:
    waiting, running, done = (store.create([config(seed=s)])[0] for s in range(3))
    for run_id in (waiting, running, done):
        if run_id != waiting:
            store.claim("me", "cpu", id=run_id)
    store.append(done, [FINISHED])
    for run_id in (waiting, running, done):
        store.request_stop(run_id)
        store.request_stop(run_id)
    assert store.get(waiting).status == "stopped"
    assert [event["kind"] for _, event in store.events(waiting)] == ["stopped"]
    assert (store.get(running).status, store.signals(running).stop) == ("running", True)
    assert (store.get(done).status, store.signals(done).stop) == ("finished", False)
    assert store.claim("me", "cpu") is None


def test_silent_runs_are_found(store: Store, config: Make) -> None:
    run_id = begun(store, config())
    (reserved,) = store.create([config()], claim="me")
    store.create([config()])
    assert store.held_runs(silent_seconds=600) == []
    with store._database.writing() as connection:
        connection.execute(update(schema.runs).values(heartbeat=store._database.now() - 3600))
    assert [row.id for row in store.held_runs(silent_seconds=600)] == [run_id, reserved]
    store.heartbeat(run_id)
    assert store.held_runs(silent_seconds=600) == [], "a beat speaks for the runs that wait for the same owner"


def test_a_run_resumes_where_its_checkpoints_are(store: Store, config: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    (run_id,) = store.create([config()])
    with monkeypatch.context() as patch:
        patch.setattr("isoviz.runs.identity.host_name", lambda: "node/7")
        store.claim("a worker", "cpu")
    store.request_stop(run_id)
    store.append(run_id, [Stopped(step=2)])
    store.requeue(run_id)
    other = Store(store.url)
    if store.url.startswith("postgresql"):  # an SQLite store is on one machine
        assert other.claim("me", "cpu") is None
    (store.folder / "hosts").mkdir(exist_ok=True)
    (store.folder / "hosts" / "node%2F7").touch()
    other.close()
    sharing = Store(store.url)
    claimed = sharing.claim("me", "cpu")
    assert claimed is not None and claimed.id == run_id
    sharing.close()


def test_an_unclaimed_run_is_back_in_its_place(store: Store, config: Make) -> None:
    ids = store.create([config(seed=s) for s in range(2)])
    row = store.claim("me", "cpu")
    assert row is not None
    store.release(row.id, row.attempt)
    assert [r.id for r in store.list(order="queue", status="queued")] == ids
    again = store.claim("you", "cpu")
    assert again is not None and again.id == ids[0]
    store.release(again.id, row.attempt)
    assert store.get(again.id).status == "running", "only the attempt that claimed it gives it back"

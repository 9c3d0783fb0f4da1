"""What every store promises, on SQLite and on PostgreSQL."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest
from sqlalchemy import inspect, select, update

from isoviz.config import RunConfig
from isoviz.errors import InputError, StoreError
from isoviz.events import (
    Checkpointed,
    Diverged,
    Entered,
    Evaluated,
    Event,
    Failed,
    Finished,
    Lost,
    Resumed,
    Stepped,
    Stopped,
    Weights,
    parse_event,
)
from isoviz.runs import schema
from isoviz.runs.identity import host_name
from isoviz.runs.store import Store

Make = Callable[..., RunConfig]


def step(number: int, total: float = 1.0) -> Stepped:
    return Stepped(
        step=number,
        epoch=number / 10,
        losses={"total": total, "task": 0.5},
        learning_rate=1e-3,
        samples_per_second=100.0,
        eta_seconds=3.0,
    )


FINISHED = Finished(
    metrics={"accuracy": 0.75}, isotropy={"isoscore": 0.25, "ev": [0.5, 1.0]}, timing={"train_seconds": 1.0}
)
FAILED = Failed(error="ValueError", message="no", advice="none")
ENDINGS: dict[str, Event] = {
    "finished": FINISHED,
    "stopped": Stopped(step=4),
    "failed": FAILED,
    "diverged": Diverged(term="task", step=3, message="m", advice="a"),
    "lost": Lost(message="gone", advice="resume"),
}


def begun(store: Store, config: RunConfig) -> str:
    """A running run."""
    (run_id,) = store.create([config])
    row = store.claim("me", "cpu")
    assert row is not None and row.id == run_id
    return run_id


def test_a_created_run_comes_back_as_it_was(store: Store, config: Make) -> None:
    wanted = config(seed=7, learning_rate=3e-4, params={"lam": -1.0, "form": "paper", "on": True, "k": 3})
    before = time.time()
    (run_id,) = store.create([wanted], group="sweep", name="  my\n run ")
    row = store.get(run_id)
    assert row.config == wanted
    assert [type(v) for v in row.config.params.values()] == [float, str, bool, int]
    assert (row.status, row.group, row.name, row.position) == ("queued", "sweep", "my run", 1)
    assert before - 1 <= row.created <= time.time() + 1
    assert (row.started, row.ended, row.result, row.error, row.progress, row.resume) == (None,) * 5 + (False,)
    assert not store.stop_requested(run_id)


def test_ids_sort_by_creation_and_lists_page(store: Store, config: Make) -> None:
    ids = store.create([config(seed=s) for s in range(5)], group="a") + store.create([config(seed=9)])
    assert ids == sorted(set(ids))
    assert [row.id for row in store.list()] == ids[::-1]
    assert [row.id for row in store.list(order="oldest", limit=2, offset=1)] == ids[1:3]
    assert [row.id for row in store.list(group="a", order="queue")] == ids[:5]
    assert [row.config.seed for row in store.list(order="oldest")] == [0, 1, 2, 3, 4, 9]
    assert [row.position for row in store.list(order="oldest")] == [1, 2, 3, 4, 5, 6]
    assert store.list(status=["failed", "lost"]) == []
    with pytest.raises(InputError, match="unknown status 'done'"):
        store.list(status="done")


def test_several_runs_of_one_name_are_numbered(store: Store, config: Make) -> None:
    ids = store.create([config(), config(seed=1)], name="pair")
    assert [store.get(run_id).name for run_id in ids] == ["pair 1", "pair 2"]
    (run_id,) = store.create([config(seed=3)])
    assert store.get(run_id).name == "baseline on demo/acceptability, seed 3"


def test_creating_is_all_or_nothing(store: Store, config: Make) -> None:
    with pytest.raises(InputError, match="1 to 200 characters"):
        store.create([config(), config()], name="x" * 300)
    assert store.list() == []
    assert store.create([]) == []


def test_events_keep_their_order_and_are_read_by_cursor(store: Store, config: Make) -> None:
    run_id = begun(store, config())
    sent: list[Event] = [Entered(phase="loading"), *(step(n) for n in range(1, 8))]
    assert store.append(run_id, sent[:1]) == 1
    assert store.append(run_id, sent[1:]) == 8
    assert store.append(run_id, []) == 8
    first = store.events(run_id, limit=3)
    rest = store.events(run_id, after=first[-1][0])
    assert [seq for seq, _ in first + rest] == list(range(1, 9))
    assert [event["kind"] for _, event in first] == ["entered", "stepped", "stepped"]
    assert store.events(run_id, after=8) == []
    for (_, data), event in zip(first + rest, sent, strict=True):
        assert abs(data.pop("time") - time.time()) < 60
        assert parse_event(data) == event


def test_events_keep_the_times_at_which_they_happened(store: Store, config: Make) -> None:
    run_id = begun(store, config())
    store.append(run_id, [step(1), step(2)], times=[1.5, 2.25])
    assert [event["time"] for _, event in store.events(run_id)] == [1.5, 2.25]


def test_non_finite_numbers_are_null(store: Store, config: Make) -> None:
    run_id = begun(store, config())
    store.append(
        run_id,
        [step(1, total=math.nan), Evaluated(step=1, epoch=1, loss=math.inf, metrics={"f1": math.nan}, primary="f1")],
    )
    store.append(run_id, [Finished(metrics={"f1": math.nan}, isotropy={"ev": [math.inf]}, timing={})])
    (_, stepped), (_, evaluated), (_, finished) = store.events(run_id)
    assert stepped["losses"] == {"total": None, "task": 0.5}
    assert (evaluated["loss"], evaluated["metrics"]) == (None, {"f1": None})
    assert finished["isotropy"] == {"ev": [None]}
    row = store.get(run_id)
    assert row.result == {"metrics": {"f1": None}, "isotropy": {"ev": [None]}, "timing": {}}
    json.dumps([row.progress, row.result], allow_nan=False)


def test_a_result_tells_whose_weights_are_kept(store: Store, config: Make) -> None:
    run_id = begun(store, config())
    kept = Weights(epoch=2, step=12, path="checkpoints/step-0000012")
    store.append(run_id, [FINISHED.model_copy(update={"weights": kept})])
    result = store.get(run_id).result
    assert result is not None and result["weights"] == {"epoch": 2, "step": 12, "path": "checkpoints/step-0000012"}


def test_progress_tells_the_latest(store: Store, config: Make) -> None:
    run_id = begun(store, config())
    store.append(run_id, [Entered(phase="loading"), step(1), step(2)])
    store.append(run_id, [Checkpointed(step=2, epoch=1, path="checkpoints/x"), step(3)])
    store.append(run_id, [Entered(phase="saving", detail="now")])
    progress = store.get(run_id).progress
    assert progress is not None
    assert (progress["step"], progress["phase"], progress["detail"], progress["checkpoint_step"]) == (
        3,
        "saving",
        "now",
        2,
    )
    signals = store.signals(run_id)
    assert (signals.phase, signals.checkpoint_step, signals.status, signals.stop) == ("saving", 2, "running", False)
    store.append(run_id, [Resumed(step=2, epoch=1)])
    assert (store.get(run_id).progress or {})["step"] == 2


@pytest.mark.parametrize("status", list(ENDINGS))
def test_an_ending_sets_the_status_and_nothing_follows_it(store: Store, config: Make, status: str) -> None:
    run_id = begun(store, config())
    store.append(run_id, [step(1), ENDINGS[status]])
    row = store.get(run_id)
    assert row.status == status
    assert row.ended is not None
    assert (row.result is not None) == (status == "finished")
    assert (row.error is not None) == (status in ("failed", "diverged", "lost"))
    if row.error is not None:
        assert row.error["kind"] == status and row.error["message"] and row.error["advice"]
    for event in (step(2), FINISHED):
        with pytest.raises(StoreError, match=f"takes no events: it is {status}"):
            store.append(run_id, [event])
    with pytest.raises(StoreError):
        store.heartbeat(run_id)
    assert [seq for seq, _ in store.events(run_id)] == [1, 2]
    assert store.counts() == {**dict.fromkeys(("queued", "running", *ENDINGS), 0), status: 1}


def test_a_failed_append_leaves_nothing(store: Store, config: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = begun(store, config())

    def broken(*_: object) -> None:
        raise RuntimeError("the power went")

    with monkeypatch.context() as patch:
        patch.setattr("isoviz.runs.store.change_of", broken)
        with pytest.raises(RuntimeError):
            store.append(run_id, [step(1), FINISHED])
    assert store.events(run_id) == []
    assert store.get(run_id).status == "running"
    assert store.append(run_id, [step(1)]) == 1


def test_a_queued_run_takes_no_events(store: Store, config: Make) -> None:
    (run_id,) = store.create([config()])
    with pytest.raises(StoreError, match="it is queued"):
        store.append(run_id, [step(1)])


def test_claims_take_the_oldest_first(store: Store, config: Make) -> None:
    ids = store.create([config(seed=s) for s in range(3)])
    taken = [store.claim("me", "cuda:1") for _ in range(4)]
    assert [row.id for row in taken if row] == ids
    assert taken[3] is None
    row = store.get(ids[0])
    assert (row.status, row.owner, row.device, row.host, row.attempt) == ("running", "me", "cuda:1", host_name(), 1)
    assert row.started is not None and row.heartbeat is not None and row.position is None


def test_of_eight_who_claim_at_once_one_wins(store: Store, config: Make) -> None:
    for _ in range(5):
        (run_id,) = store.create([config()])
        won: list[str] = []
        ready = threading.Barrier(8)

        def race(name: str, won: list[str] = won, ready: threading.Barrier = ready) -> None:
            ready.wait()
            if store.claim(name, "cpu") is not None:
                won.append(name)

        threads = [threading.Thread(target=race, args=(f"t{n}",)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert store.get(run_id).owner == won[0]


def test_eight_claimants_share_twenty_runs_without_loss(store: Store, config: Make) -> None:
    ids = store.create([config(seed=s) for s in range(20)])
    taken: list[str] = []

    def work(name: str) -> None:
        misses = 0
        while misses < 3:
            row = store.claim(name, "cpu")
            if row is None:
                misses += 1
                time.sleep(0.02)
            else:
                taken.append(row.id)

    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == ids


def test_a_reserved_run_goes_to_its_owner_only(store: Store, config: Make) -> None:
    reserved, other = store.create([config(seed=1)], claim="shell") + store.create([config(seed=2)])
    row = store.get(reserved)
    assert (row.status, row.owner, row.host, row.position) == ("queued", "shell", host_name(), None)
    assert row.pid is not None
    assert store.get(other).position == 1
    assert store.claim("someone", "cpu", id=reserved) is None
    first = store.claim("shell", "cpu")
    assert first is not None and first.id == other, "without an id only what is free is taken"
    mine = store.claim("shell", "cpu", id=reserved)
    assert mine is not None and (mine.status, mine.pid) == ("running", os.getpid()), "who claims by id runs it"
    assert store.claim("shell", "cpu", id=reserved) is None


APPENDER = """
import sys
from isoviz.events import Entered
from isoviz.runs.store import Store
store = Store(sys.argv[1])
for n in range(25):
    store.append(sys.argv[2], [Entered(phase="training", detail=f"{sys.argv[3]} {n} {part}") for part in range(4)])
"""


def test_appends_from_several_processes_neither_lose_nor_mix(store: Store, config: Make) -> None:
    run_id = begun(store, config())
    processes = [
        subprocess.Popen([sys.executable, "-c", APPENDER, store.url, run_id, name], stderr=subprocess.PIPE, text=True)
        for name in "abc"
    ]
    for process in processes:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    rows = store.events(run_id)
    assert [seq for seq, _ in rows] == list(range(1, 301))
    details = [event["detail"].split() for _, event in rows]
    for start in range(0, 300, 4):
        assert [part for _, _, part in details[start : start + 4]] == list("0123"), "a batch stays together"
        assert len({name for name, _, _ in details[start : start + 4]}) == 1
    for name in "abc":
        assert [int(n) for who, n, part in details if who == name and part == "0"] == list(range(25))


def test_a_superseded_attempt_cannot_write(store: Store, config: Make) -> None:
    run_id = begun(store, config())
    store.append(run_id, [step(1)], attempt=1)
    store.append(run_id, [ENDINGS["lost"]], attempt=1)
    store.requeue(run_id)
    for event in (step(2), FINISHED):
        with pytest.raises(StoreError):
            store.append(run_id, [event], attempt=1)
    row = store.claim("me", "cpu")
    assert row is not None and row.attempt > 1
    with pytest.raises(StoreError, match="attempt 1"):
        store.append(run_id, [FINISHED], attempt=1)
    with pytest.raises(StoreError, match="attempt 1"):
        store.heartbeat(run_id, attempt=1)
    assert store.append(run_id, [Resumed(step=1, epoch=0)], attempt=row.attempt) == 3


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
    assert (row.progress or {})["checkpoint_step"] == 4
    assert [r.id for r in store.list(order="queue")] == [other, run_id]
    assert row.position == 2


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


def test_a_resumed_run_can_be_reserved(store: Store, config: Make) -> None:
    run_id = begun(store, config())
    store.append(run_id, [FAILED])
    store.requeue(run_id, claim="shell")
    assert store.claim("runner", "cpu") is None
    row = store.claim("shell", "cpu", id=run_id)
    assert row is not None and row.resume


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
    assert (store.get(running).status, store.stop_requested(running)) == ("running", True)
    assert (store.get(done).status, store.stop_requested(done)) == ("finished", False)
    assert store.claim("me", "cpu") is None


def test_stopping_a_resumed_run_that_waits_names_its_checkpoint(store: Store, config: Make) -> None:
    run_id = begun(store, config())
    store.append(run_id, [Checkpointed(step=40, epoch=1, path="c"), Stopped(step=40)])
    store.requeue(run_id)
    store.request_stop(run_id)
    assert store.events(run_id)[-1][1]["step"] == 40


def test_deleting_takes_events_and_files(store: Store, config: Make) -> None:
    run_id = begun(store, config())
    store.append(run_id, [step(1)])
    folder = store.folder_of(run_id)
    folder.mkdir(parents=True)
    (folder / "weights").write_bytes(b"x" * 1000)
    assert store.disk_use(run_id) == 1000
    with pytest.raises(StoreError, match="is running: stop it"):
        store.delete(run_id)
    assert folder.exists()
    store.append(run_id, [FAILED])
    store.delete(run_id)
    assert not folder.exists()
    assert store.list() == []
    with store._database.reading() as connection:
        assert connection.execute(select(schema.events)).all() == []


def test_names_tags_and_notes(store: Store, config: Make) -> None:
    (run_id,) = store.create([config()])
    store.rename(run_id, "λ = 1 ★")
    store.tag(run_id, ["b", "a", "b"])
    store.note(run_id, "first\nsecond")
    row = store.get(run_id)
    assert (row.name, row.tags, row.note) == ("λ = 1 ★", ("b", "a"), "first\nsecond")
    for bad in ("", "  ", "x" * 201):
        with pytest.raises(InputError, match="1 to 200 characters"):
            store.rename(run_id, bad)


def test_an_unknown_id_is_named(store: Store) -> None:
    calls: list[Callable[[], object]] = [
        lambda: store.get("abc"),
        lambda: store.events("abc"),
        lambda: store.append("abc", [FAILED]),
        lambda: store.request_stop("abc"),
        lambda: store.stop_requested("abc"),
        lambda: store.requeue("abc"),
        lambda: store.heartbeat("abc"),
        lambda: store.rename("abc", "x"),
        lambda: store.tag("abc", ["x"]),
        lambda: store.note("abc", "x"),
        lambda: store.delete("abc"),
        lambda: store.folder_of("../../etc"),
        lambda: store.set_worker("abc", 1, 1.0),
    ]
    for call in calls:
        with pytest.raises(StoreError, match=r"no run '(abc|\.\./\.\./etc)' in the store"):
            call()


def test_silent_runs_are_found(store: Store, config: Make) -> None:
    run_id = begun(store, config())
    (reserved,) = store.create([config()], claim="me")
    store.create([config()])
    assert store.lost_runs(older_than=5) == []
    with store._database.writing() as connection:
        connection.execute(update(schema.runs).values(heartbeat=store._database.now() - 60))
    assert [row.id for row in store.lost_runs(older_than=30)] == [run_id, reserved]
    store.heartbeat(run_id)
    assert store.lost_runs(older_than=30) == [], "a beat speaks for the runs that wait for the same owner"


def test_an_unclaimed_run_is_back_in_its_place(store: Store, config: Make) -> None:
    ids = store.create([config(seed=s) for s in range(2)])
    row = store.claim("me", "cpu")
    assert row is not None
    store.unclaim(row.id, row.attempt)
    assert [r.id for r in store.list(order="queue", status="queued")] == ids
    again = store.claim("you", "cpu")
    assert again is not None and again.id == ids[0]
    store.unclaim(again.id, row.attempt)
    assert store.get(again.id).status == "running", "only the attempt that claimed it gives it back"


def test_a_second_store_object_sees_the_same(store: Store, store_url: str, config: Make) -> None:
    run_id = begun(store, config())
    store.append(run_id, [step(1)])
    again = Store(store_url)
    assert again.folder == store.folder
    assert [event["step"] for _, event in again.events(run_id)] == [1]
    assert Store(store.url).get(run_id) == store.get(run_id)


def test_a_newer_schema_is_refused(store: Store, store_url: str) -> None:
    with store._database.writing() as connection:
        connection.execute(update(schema.meta).values(value=str(schema.VERSION + 1)))
    with pytest.raises(StoreError, match="written by a newer IsoViz") as caught:
        Store(store_url)
    assert "Update IsoViz" in str(caught.value.advice)


def test_many_may_open_a_new_store_at_once(store_url: str) -> None:
    code = "import sys; from isoviz.runs.store import Store; print(Store(sys.argv[1]).counts()['queued'])"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, store_url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    for process in processes:
        out, errors = process.communicate(timeout=60)
        assert out == "0\n", errors


def test_the_tables_are_prefixed_so_that_a_shared_database_is_no_trap(store: Store) -> None:
    with store._database.reading() as connection:
        assert all(name.startswith("isoviz_") for name in inspect(connection).get_table_names())

"""Events of a run in every store: in order, exactly once, and reflected in the run's status."""

from __future__ import annotations

import math
import time

import pytest

from isoviz.errors import StoreError
from isoviz.events import Checkpointed, Entered, Evaluated, Event, Finished, Resumed, Started, Stepped, parse_event
from isoviz.runs.store import Store
from tests.runs.conftest import Make
from tests.runs.reports import ENDINGS, FINISHED, begun, step


def test_events_keep_their_order_and_are_read_by_cursor(store: Store, config: Make) -> None:
    run_id = begun(store, config())
    begin = time.time()
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
        assert begin - 1 <= data.pop("time") <= time.time() + 1
        assert parse_event(data) == event


def test_events_of_one_kind_are_read_whatever_precedes_them(store: Store, config: Make) -> None:
    run_id = begun(store, config())
    download = [Entered(phase="loading", detail=f'{n} MB, {{"kind":"started"}}') for n in range(200)]
    store.append(run_id, [*download, started("d"), step(1), started("e"), step(2)])
    assert store.events_of_kind(run_id, Started) == [started("d"), started("e")]
    assert store.events_of_kind(run_id, Started, limit=1) == [started("d")]
    assert store.events_of_kind(run_id, Resumed) == []
    with pytest.raises(StoreError, match="no run"):
        store.events_of_kind("nobody", Started)


def started(data: str) -> Started:
    return Started(
        **dict.fromkeys(("total_steps", "steps_per_epoch", "train_rows", "eval_rows", "parameters", "threads"), 1),
        device="cpu",
        precision="no",
        startup_seconds=0.5,
        versions={},
        data_fingerprint=data,
        model_fingerprint="m",
    )


def test_non_finite_numbers_are_null(store: Store, config: Make) -> None:
    run_id = begun(store, config())
    store.append(
        run_id,
        [step(1, total=math.nan), Evaluated(step=1, epoch=1, loss=math.inf, metrics={"f1": math.nan}, primary="f1")],
    )
    store.append(run_id, [Finished(metrics={"f1": math.nan}, isotropy={}, timing={})])
    (_, stepped), (_, evaluated), _ = store.events(run_id)
    assert stepped["losses"] == {"total": None, "task": 0.5}
    assert (evaluated["loss"], evaluated["metrics"]) == (None, {"f1": None})
    row = store.get(run_id)
    assert row.result is not None and row.result.metrics == {"f1": None}
    assert isinstance(parse_event(stepped), Stepped)  # null is read back as not a number


def test_progress_tells_the_latest(store: Store, config: Make) -> None:
    run_id = begun(store, config())
    store.append(run_id, [Entered(phase="loading"), step(1), step(2)])
    store.append(run_id, [Checkpointed(step=2, epoch=1, path="checkpoints/x"), step(3)])
    store.append(run_id, [Entered(phase="saving", detail="now")])
    progress = store.get(run_id).progress
    assert progress is not None
    assert (progress.step, progress.phase, progress.checkpoint_step) == (3, "saving", 2)
    signals = store.signals(run_id)
    assert (signals.phase, signals.checkpoint_step, signals.status, signals.stop) == ("saving", 2, "running", False)
    store.append(run_id, [Checkpointed(step=9, epoch=1, path="checkpoints/y")])  # steps 4 to 9 were not reported
    saved = store.get(run_id).progress
    assert saved is not None and (saved.step, saved.checkpoint_step) == (9, 9)
    store.append(run_id, [Resumed(step=2, epoch=1)])
    resumed = store.get(run_id).progress
    assert resumed is not None and resumed.step == 2


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
        with pytest.raises(StoreError, match=f"accepts no events: it is {status}"):
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

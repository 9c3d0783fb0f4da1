"""One run executed in this process, as the command line does, and the disk that fills up under it."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import event

from isoviz.config import RunConfig
from isoviz.errors import DataError, DivergedError, StoreError
from isoviz.events import Checkpointed, Entered, Event, Finished, Stopped
from isoviz.input_validation import parsing
from isoviz.runs.execution import execute, explain
from isoviz.runs.store import Store
from tests.runs import fake_training
from tests.runs.fake_training import step
from tests.runs.observing import until, within

FINISHED = Finished(metrics={}, isotropy={}, timing={})


def test_a_reserved_run_is_claimed_and_executed_here(store, config):
    first, second = store.create([config(), config(seed=1)], claim="shell")
    row = execute(store, first, train=fake_training.train)
    assert (row.status, row.owner, row.attempt) == ("finished", "shell", 1)
    assert [e["kind"] for _, e in store.events(first)] == ["entered", "stepped", "finished"]
    assert store.get(second).status == "queued"
    with pytest.raises(StoreError, match="cannot be run: it is finished"):
        execute(store, first, train=fake_training.train)


@pytest.mark.parametrize(
    ("does", "status", "error", "message", "advice"),
    [
        ("raise", "failed", "ValueError", "the first line", "log"),
        ("reject", "failed", "DataError", "column 'label' has one class", "Add rows"),
        ("run out of memory", "failed", "MemoryError", "cannot allocate 8 GB", "batch size"),
        ("diverge", "diverged", None, "'istar' became non-finite at step 17", "Lower the learning rate"),
        ("return", "failed", "RuntimeError", "without an ending", "log"),
    ],
)
def test_each_exception_has_its_ending(local, config, does, status, error, message, advice):
    (run_id,) = local.create([config(does)])
    row = execute(local, run_id, train=fake_training.train)
    assert row.status == status
    assert row.error is not None
    assert row.error.get("error") == error
    assert message in row.error["message"]
    assert advice in row.error["advice"]
    assert "Traceback" in (local.folder_of(run_id) / "worker.log").read_text()


def test_torchs_ways_to_run_out_of_memory():
    class OutOfMemoryError(RuntimeError):
        """Has the name of torch's."""

    for error in (
        OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory: you tried 8 bytes"),
        RuntimeError("MPS backend out of memory"),
        ImportError("libtorch_cpu.so: failed to map segment from shared object: Cannot allocate memory"),
        RuntimeError("std::bad_alloc"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
    ):
        assert "batch size" in explain(error).advice
    assert "batch size" not in explain(RuntimeError("shape mismatch")).advice
    with pytest.raises(DataError) as refused, parsing("train.parquet cannot be read as parquet", "data", DataError):
        raise MemoryError("malloc of size 64 failed")
    assert "batch size" in explain(refused.value).advice, "however the error was worded on its way"
    assert "disk is full" in explain(OSError(errno.ENOSPC, "No space left on device")).advice
    from safetensors import SafetensorError

    serialising = "Error while serializing: I/O error: No space left on device (os error 28)"
    assert "disk is full" in explain(SafetensorError(serialising)).advice
    assert explain(DivergedError("task", 2, "a")).kind == "diverged"
    assert explain(DataError("m")).advice
    assert explain(ValueError()).message == "no message"


def test_an_interrupt_stops_the_run_and_is_passed_on(local, config):
    def train(config: RunConfig, emit: Callable[[Event], None], *_: object) -> None:
        emit(Checkpointed(step=8, epoch=1, path="c"))
        raise KeyboardInterrupt

    (run_id,) = local.create([config()])
    with pytest.raises(KeyboardInterrupt):
        execute(local, run_id, train=train)
    assert local.get(run_id).status == "stopped"
    assert local.events(run_id)[-1][1]["step"] == 8


def test_a_stop_request_arrives_soon_and_heartbeats_continue(local, config):
    took: list[float] = []

    def train(config: RunConfig, emit: Callable[[Event], None], should_stop: Callable[[], bool], *_: object) -> None:
        before = local.get(run_id).heartbeat
        assert before is not None
        while (local.get(run_id).heartbeat or 0) <= before + 1:
            time.sleep(0.05)
        assert not should_stop()
        begin = time.monotonic()
        local.request_stop(run_id)
        while not should_stop():
            time.sleep(0.005)
        took.append(time.monotonic() - begin)
        emit(Stopped(step=0))

    def arriving() -> float:
        nonlocal run_id
        (run_id,) = local.create([config()])
        assert execute(local, run_id, train=train).status == "stopped"
        return took.pop()

    run_id = ""
    within(0.4, arriving)


def test_a_run_that_was_given_up_stops_writing(local, config):
    from isoviz.events import Lost

    (run_id,) = local.create([config()])
    saw: list[bool] = []

    def train(config: RunConfig, emit: Callable[[Event], None], should_stop: Callable[[], bool], *_: object) -> None:
        local.append(run_id, [Lost(message="silent", advice="a")])
        until(should_stop)
        saw.append(should_stop())
        emit(FINISHED)

    row = execute(local, run_id, train=train)
    assert saw == [True]
    assert row.status == "lost"
    assert [e["kind"] for _, e in local.events(run_id)] == ["lost"]


# ---------------------------------------------------------------------- a full disk, brought about by SQLite itself


def fill_disk(store: Store) -> Callable[[], None]:
    """From now on the database may not grow; returns what gives the space back."""
    pages = {"limit": 0}

    @event.listens_for(store._database.engine, "begin")
    def limit(connection: Any) -> None:
        page_count = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages['limit'] or page_count}")

    def free() -> None:
        pages["limit"] = 1_000_000

    return free


def fat(number: int) -> Event:
    return Entered(phase="training", detail=f"{number:04d}" + "x" * 20_000)


def test_a_disk_that_was_full_for_a_while_costs_nothing(local, config):
    (run_id,) = local.create([config()])
    local.claim("me", "cpu")
    free = fill_disk(local)
    failed = threading.Event()

    def train(config: RunConfig, emit: Callable[[Event], None], *_: object) -> None:
        for number in range(40):
            emit(fat(number))
            time.sleep(0.02)
        failed.set()
        assert len(local.events(run_id)) < 40
        free()
        emit(FINISHED)

    row = execute(local, run_id, train=train)
    assert row.status == "finished"
    assert failed.is_set()
    assert [e["detail"][:4] for _, e in local.events(run_id)[:-1]] == [f"{n:04d}" for n in range(40)]


def test_a_checkpoint_waits_until_its_past_is_written(local, config, monkeypatch):
    """A run killed after a checkpoint resumes behind it: what was not written by then would be lost."""
    append, written = local.append, threading.Event()
    monkeypatch.setattr(local, "append", lambda *given, **named: (written.wait(), append(*given, **named))[1])
    (run_id,) = local.create([config()])
    at_checkpoint: list[int] = []

    def train(config: RunConfig, emit: Callable[[Event], None], *_: object) -> None:
        for number in range(1, 30):
            step(emit, number)
        threading.Timer(0.3, written.set).start()
        emit(Entered(phase="saving"))
        at_checkpoint.append(len(local.events(run_id)))
        emit(FINISHED)

    assert execute(local, run_id, train=train).status == "finished"
    assert at_checkpoint == [30]

"""Spares: taken where one waits, done without where none does, gone when no one expects work or the app closes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from isoviz.jobs import queue, scheduling, service, spares
from isoviz.jobs.processes import is_alive
from isoviz.jobs.service import JobService
from isoviz.jobs.spares import SpareKeeper, waiting_elsewhere
from tests.jobs.conftest import settled, until
from tests.jobs.light import LIGHT, PREPARE, WARM


@pytest.fixture
def keeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SpareKeeper]:
    monkeypatch.setattr(spares, "MEMORY", 0)
    made = SpareKeeper(PREPARE, "any", lambda count: tmp_path / f"spare-{count % 2}.log", tmp_path / "spare")
    yield made
    made.close()


def pid_of(keeper: SpareKeeper) -> int:
    assert keeper.pid is not None
    return keeper.pid


def test_one_is_enough_and_it_goes_when_nobody_expects_work(keeper: SpareKeeper) -> None:
    keeper.tend()
    assert keeper.pid is None, "nobody expects work"
    keeper.expectation.renew(60)
    keeper.tend()
    pid, started = pid_of(keeper), psutil.Process(pid_of(keeper)).create_time()
    keeper.tend()
    assert keeper.pid == pid
    keeper.expectation.renew(0)
    keeper.tend()
    assert keeper.pid is None and not is_alive(pid, started)
    keeper.expectation.renew(60)
    keeper.postpone(60)
    keeper.tend()
    assert keeper.pid is None, "what has just begun is not slowed"


def test_one_that_died_or_has_other_surroundings_is_not_taken(
    keeper: SpareKeeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper.expectation.renew(60)
    keeper.tend()
    dead = psutil.Process(pid_of(keeper))
    dead.kill()
    until(lambda: dead.status() == psutil.STATUS_ZOMBIE if dead.is_running() else True)
    assert keeper.tend() == -9 and keeper.pid is None, "not again and again"
    keeper.postpone(0)
    keeper.tend()
    stranger, born = pid_of(keeper), psutil.Process(pid_of(keeper)).create_time()
    monkeypatch.setenv("ISOVIZ_HOME", str(tmp_path / "elsewhere"))
    assert keeper.take() is None and not is_alive(stranger, born)


def test_none_where_memory_is_short(keeper: SpareKeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spares, "MEMORY", 2**60)
    keeper.expectation.renew(60)
    keeper.tend()
    assert keeper.pid is None


def test_none_where_the_operator_wants_none(keeper: SpareKeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOVIZ_SPARES", "off")
    keeper.expectation.renew(60)
    keeper.tend()
    assert keeper.pid is None


def test_apps_share_one_and_the_next_takes_over(
    keeper: SpareKeeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = SpareKeeper(PREPARE, "any", lambda count: tmp_path / f"other-{count % 2}.log", tmp_path / "spare")
    try:
        other.expectation.renew(60)  # a page of the other app; this one looks first
        keeper.tend()
        other.tend()
        pid, started = pid_of(keeper), psutil.Process(pid_of(keeper)).create_time()
        assert other.pid is None and waiting_elsewhere(other.file, PREPARE)
        assert not waiting_elsewhere(other.file, "what:else")
        keeper.close()
        assert not is_alive(pid, started) and not waiting_elsewhere(other.file, PREPARE)
        other.tend()
        pid, started = pid_of(other), psutil.Process(pid_of(other)).create_time()
        taken = other.take()
        assert taken is not None and taken.pid == pid and not waiting_elsewhere(other.file, PREPARE)
        taken.kill()
    finally:
        other.close()


def test_a_job_is_left_to_the_app_that_keeps_the_spare_but_not_for_long(
    busy: Path, keeper: SpareKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = SpareKeeper(PREPARE, "any", keeper._log, keeper.file.with_name("spare"))
    monkeypatch.setattr(scheduling, "spare", mine)
    monkeypatch.setattr(scheduling, "HANDOVER_SECONDS", 60.0)
    keeper.expectation.renew(60)
    keeper.tend()
    queue.start(LIGHT, "left", {"while": str(busy)})
    assert queue.look(LIGHT, "left").status == "waiting" and scheduling.at_work() == []
    monkeypatch.setattr(scheduling, "HANDOVER_SECONDS", 0.0)  # it had its time
    scheduling.dispatch()
    until(lambda: queue.look(LIGHT, "left").status == "running")
    assert pid_of(keeper) not in [entry.pid for entry in scheduling.at_work()]
    busy.unlink()
    assert settled(LIGHT, "left").status == "done"


def test_app_serves_jobs_from_its_spare_and_clears_what_is_old(busy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spares, "MEMORY", 0)
    monkeypatch.setattr(service, "AFTER_SECONDS", 1.0)
    swept: list[float] = []
    monkeypatch.setattr(queue, "sweep", lambda: swept.append(time.monotonic()))
    app = JobService(PREPARE)
    app.start()
    try:
        app.expect()
        until(lambda: app._spare.pid is not None)
        pid = app._spare.pid
        queue.start(WARM, "plain", {})
        assert settled(WARM, "plain").status == "done" and app._spare.pid == pid, "it needs no encoder"
        queue.start(LIGHT, "k", {"while": str(busy)})
        until(lambda: queue.look(LIGHT, "k").status == "running")
        assert [entry.pid for entry in scheduling.at_work() if entry.job] == [pid]
        time.sleep(3 * service.TICK_SECONDS)
        assert app._spare.pid is None, "work that has just begun is not slowed by the next one"
        busy.unlink()
        assert settled(LIGHT, "k").status == "done"
        until(lambda: app._spare.pid not in (None, pid))
        last = psutil.Process(pid_of(app._spare))
        until(lambda: swept)
    finally:
        app.close()
    assert not last.is_running() and scheduling.spare is None

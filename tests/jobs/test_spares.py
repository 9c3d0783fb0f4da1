"""Spares: taken where one waits, done without where none does, gone when no one expects work or the app closes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from isoviz.jobs import queue, service, spares
from isoviz.jobs.processes import Worker, is_alive
from isoviz.jobs.service import JobService
from isoviz.jobs.spares import SpareKeeper
from tests.jobs.conftest import settled
from tests.jobs.light import LIGHT, PREPARE, WARM
from tests.runs.observing import until

linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a spare does not fork")


@pytest.fixture
def keeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SpareKeeper]:
    monkeypatch.setattr(spares, "MEMORY", 0)
    made = SpareKeeper(PREPARE, "any", lambda count: tmp_path / f"spare-{count % 2}.log")
    yield made
    made.close()


def pid_of(keeper: SpareKeeper) -> int:
    assert keeper.pid is not None
    return keeper.pid


def order(worker: Worker, call: str) -> None:
    worker.order(f"tests.jobs.light:{call}", {}, worker.log.with_name(f"{worker.pid}.log"))


def test_one_is_enough_and_it_exits_when_no_work_is_expected(keeper: SpareKeeper) -> None:
    keeper.check()
    assert keeper.pid is None, "nobody expects work"
    keeper.expect()
    keeper.check()
    pid, started = pid_of(keeper), psutil.Process(pid_of(keeper)).create_time()
    keeper.check()
    assert keeper.pid == pid
    keeper._expected_until = 0.0
    keeper.check()
    assert keeper.pid is None and not is_alive(pid, started)
    keeper.expect()
    keeper.postpone(60)
    keeper.check()
    assert keeper.pid is None, "what has just begun is not slowed"


def test_one_that_died_is_not_taken(keeper: SpareKeeper) -> None:
    keeper.expect()
    keeper.check()
    dead = psutil.Process(pid_of(keeper))
    dead.kill()
    until(lambda: dead.status() == psutil.STATUS_ZOMBIE if dead.is_running() else True)
    assert keeper.check() == -9 and keeper.pid is None, "not again and again"
    assert keeper.take() is None


@pytest.fixture
def forking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., SpareKeeper]]:
    """Makes a keeper whose spare is ready, and may fork."""
    made: list[SpareKeeper] = []
    monkeypatch.setattr(spares, "MEMORY", 0)

    def make(prepare: str = PREPARE) -> SpareKeeper:
        made.append(SpareKeeper(prepare, "any", lambda _: tmp_path / "spare.log", fork=True))
        made[-1].expect()
        made[-1].check()
        until(lambda: not made[-1].preparing)
        return made[-1]

    yield make
    for keeper in made:
        keeper.close()


@linux
def test_a_ready_spare_forks_and_stays_while_a_fork_runs(forking: Callable[..., SpareKeeper]) -> None:
    keeper = forking()
    spare = pid_of(keeper)
    waiting, ends, peaks = keeper.take(), keeper.take(), keeper.take()
    assert waiting is not None and ends is not None and peaks is not None
    for worker in (waiting, ends, peaks):
        assert psutil.Process(worker.pid).ppid() == spare and os.getpgid(worker.pid) == worker.pid
        assert not worker.gone and worker.exit_code is None
    order(ends, "ends_with_three")
    order(peaks, "peak_is_low")
    until(lambda: ends.gone and peaks.gone)
    assert ends.exit_code == 3 and peaks.exit_code == 0, "memory of the spare's imports is not its own"
    keeper._expected_until = 0.0
    keeper.check()
    assert keeper.pid == spare, "it still has to say how the other one ends"
    waiting.kill()
    assert waiting.gone and waiting.exit_code == -15
    keeper.check()
    assert keeper.pid is None


@linux
def test_forks_outlive_a_spare_that_died_and_no_more_are_taken(forking: Callable[..., SpareKeeper]) -> None:
    keeper = forking()
    worker = keeper.take()
    assert worker is not None
    psutil.Process(pid_of(keeper)).kill()
    until(lambda: keeper._spare is not None and keeper._spare.gone)
    assert keeper.take() is None and keeper.pid is None
    assert not worker.gone
    worker.kill()
    assert worker.gone and worker.exit_code is None, "no one can know it"


@linux
def test_a_spare_with_threads_serves_one_job_itself(forking: Callable[..., SpareKeeper]) -> None:
    keeper = forking("tests.jobs.light:start_thread")
    spare = pid_of(keeper)
    worker = keeper.take()
    assert worker is not None and worker.pid == spare and keeper.pid is None
    order(worker, "ends_with_three")
    until(lambda: worker.gone)
    assert worker.exit_code == 3


@pytest.mark.parametrize("reason", ["memory", "operator"])
def test_none_where_memory_is_short_or_the_operator_disables_them(
    keeper: SpareKeeper, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reason == "memory":
        monkeypatch.setattr(spares, "MEMORY", 2**60)
    else:
        monkeypatch.setenv("ISOVIZ_SPARES", "off")
    keeper.expect()
    keeper.check()
    assert keeper.pid is None


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
        # the other ended just now
        until(lambda: [process.pid for process in queue.processes() if process.entry] == [pid])
        time.sleep(3 * service.TICK_SECONDS)
        assert app._spare.pid is None, "work that has just begun is not slowed by the next one"
        busy.unlink()
        assert settled(LIGHT, "k").status == "done"
        until(lambda: app._spare.pid not in (None, pid))
        last = psutil.Process(pid_of(app._spare))
        until(lambda: swept)
    finally:
        app.close()
    assert not last.is_running() and queue.spare is None

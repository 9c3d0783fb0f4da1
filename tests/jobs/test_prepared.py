"""Prepared workers: taken where one waits, done without where none does, gone when no one expects work or the app closes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from isoviz.jobs import prepared, queue, service
from isoviz.jobs.prepared import PreparedWorker
from isoviz.jobs.processes import Process, is_alive
from isoviz.jobs.service import JobService
from tests.jobs.conftest import settled
from tests.jobs.light import LIGHT, PREPARE, WARM
from tests.runs.observing import until

linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a spare does not fork")


@pytest.fixture
def keeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PreparedWorker]:
    monkeypatch.setattr(prepared, "MEMORY", 0)
    made = PreparedWorker(PREPARE, "any", lambda count: tmp_path / f"spare-{count % 2}.log")
    yield made
    made.close()


def pid_of(keeper: PreparedWorker) -> int:
    assert keeper.pid is not None
    return keeper.pid


def order(keeper: PreparedWorker, call: str, **arguments: str) -> Process:
    return keeper.order(f"tests.jobs.light:{call}", arguments, keeper._log(0).with_name(f"{call}.log"))


def test_one_is_enough_and_it_exits_when_no_work_is_expected(keeper):
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


def test_one_that_died_is_not_taken(keeper):
    keeper.expect()
    keeper.check()
    dead = psutil.Process(pid_of(keeper))
    dead.kill()
    until(lambda: dead.status() == psutil.STATUS_ZOMBIE if dead.is_running() else True)
    keeper.check()
    assert keeper.pid is None, "not again and again"
    assert keeper.take() is None


@pytest.fixture
def forking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., PreparedWorker]]:
    """Makes a keeper whose spare is ready, and may fork."""
    made: list[PreparedWorker] = []
    monkeypatch.setattr(prepared, "MEMORY", 0)

    def make(prepare: str = PREPARE) -> PreparedWorker:
        made.append(PreparedWorker(prepare, "any", lambda _: tmp_path / "spare.log", fork=True))
        made[-1].expect()
        made[-1].check()
        until(lambda: not made[-1].preparing)
        return made[-1]

    yield make
    for keeper in made:
        keeper.close()


@linux
def test_a_ready_spare_forks_and_stays_while_a_fork_runs(forking):
    keeper = forking()
    spare = pid_of(keeper)
    waiting, ends, peaks = (order(keeper, call) for call in ("waits", "ends_with_three", "peak_is_low"))
    assert psutil.Process(waiting.pid).ppid() == spare and os.getpgid(waiting.pid) == waiting.pid
    assert not waiting.gone and waiting.exit_code is None
    until(lambda: ends.gone and peaks.gone)
    assert ends.exit_code == 3 and peaks.exit_code == 0, "memory of the imports is not its own"
    keeper._expected_until = 0.0
    keeper.check()
    assert keeper.pid == spare, "it still has to say how the other one ends"
    waiting.kill()
    assert waiting.gone and waiting.exit_code == -15
    keeper.check()
    assert keeper.pid is None


@linux
def test_forks_outlive_a_worker_that_died_and_the_next_order_starts_a_new_one(forking):
    keeper = forking()
    running = order(keeper, "waits")
    psutil.Process(pid_of(keeper)).kill()
    until(lambda: keeper._worker is not None and keeper._worker.gone)
    other = order(keeper, "ends_with_three")
    assert keeper.pid is None and not running.gone
    running.kill()
    assert running.gone and running.exit_code is None, "no one can know it"
    until(lambda: other.gone)
    assert other.exit_code == 3


@linux
def test_a_worker_with_threads_serves_one_job_itself(forking):
    keeper = forking("tests.jobs.light:start_thread")
    spare = pid_of(keeper)
    worker = order(keeper, "ends_with_three")
    assert worker.pid == spare and keeper.pid is None
    until(lambda: worker.gone)
    assert worker.exit_code == 3


@pytest.mark.parametrize("reason", ["memory", "operator"])
def test_none_where_memory_is_short_or_the_operator_disables_them(keeper, reason, monkeypatch):
    if reason == "memory":
        monkeypatch.setattr(prepared, "MEMORY", 2**60)
    else:
        monkeypatch.setenv("ISOVIZ_SPARES", "off")
    keeper.expect()
    keeper.check()
    assert keeper.pid is None


def test_app_serves_jobs_from_its_spare_and_clears_what_is_old(busy, monkeypatch):
    monkeypatch.setattr(prepared, "MEMORY", 0)
    monkeypatch.setattr(service, "AFTER_SECONDS", 1.0)
    swept: list[float] = []
    monkeypatch.setattr(queue, "sweep", lambda: swept.append(time.monotonic()))
    app = JobService(PREPARE)
    app.start()
    try:
        app.expect()
        until(lambda: app._prepared.pid is not None)
        pid = app._prepared.pid
        queue.start(WARM, "plain", {})
        assert settled(WARM, "plain").status == "done" and app._prepared.pid == pid, "it needs no encoder"
        queue.start(LIGHT, "k", {"while": str(busy)})
        until(lambda: queue.look(LIGHT, "k").status == "running")
        # the other ended just now
        until(lambda: [process.pid for process in queue.processes() if process.entry] == [pid])
        time.sleep(3 * service.TICK_SECONDS)
        assert app._prepared.pid is None, "work that has just begun is not slowed by the next one"
        busy.unlink()
        assert settled(LIGHT, "k").status == "done"
        until(lambda: app._prepared.pid not in (None, pid))
        last = psutil.Process(pid_of(app._prepared))
        until(lambda: swept)
    finally:
        app.close()
    assert not last.is_running() and queue.prepared is None

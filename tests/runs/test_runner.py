"""The life of a run with real processes, and every way in which it can end, brought about for real."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest
from sqlalchemy import text

from isoviz.config import RunConfig
from isoviz.runs.identity import host_name, owner_of
from isoviz.runs.runner import Runner
from isoviz.runs.store import Store
from tests.runs.observing import LONG, ended, gone, kinds, posix, until, within

Make = Callable[..., RunConfig]


def test_a_run_goes_from_queued_to_finished(runner: Runner, local: Store, config: Make) -> None:
    first, second = local.create([config(), config(seed=1)])
    row = ended(local, first)
    assert (row.status, row.device, row.owner, row.attempt) == ("finished", "cpu", owner_of("cpu"), 1)
    assert row.result is not None and row.result.metrics == {"accuracy": 1.0}
    assert kinds(local, first) == ["entered", "stepped", "finished"]
    assert ended(local, second).status == "finished"
    other = local.get(second)
    assert (other.pid, other.pid_started) != (row.pid, row.pid_started), "each run has a process of its own"
    assert f"worker {row.pid} takes run {first}" in (local.folder_of(first) / "worker.log").read_text()
    assert runner.is_alive


def test_an_exception_is_reported_and_the_next_run_starts(runner: Runner, local: Store, config: Make) -> None:
    failed, after = local.create([config("raise"), config()])
    row = ended(local, failed)
    assert row.status == "failed"
    assert row.error is not None
    assert (row.error["error"], row.error["message"]) == ("ValueError", "the first line")
    assert "log" in row.error["advice"]
    log = (local.folder_of(failed) / "worker.log").read_text()
    assert "Traceback (most recent call last)" in log
    assert "and a second" in log
    assert ended(local, after).status == "finished"


def test_a_diverged_run_keeps_what_it_reported(runner: Runner, local: Store, config: Make) -> None:
    (run_id,) = local.create([config("diverge")])
    row = ended(local, run_id)
    assert row.status == "diverged"
    assert row.error is not None
    assert (row.error["term"], row.error["step"], row.error["advice"]) == ("istar", 17, "Lower the learning rate.")
    assert kinds(local, run_id) == ["entered", "stepped", "diverged"]


@posix
@pytest.mark.parametrize(("does", "message"), [("die", "killed by SIGKILL"), ("exit", "exit code 3")])
def test_a_vanished_worker_is_lost_and_the_next_run_starts(
    runner: Runner, local: Store, config: Make, does: str, message: str
) -> None:
    vanished, after = local.create([config(does), config()])
    row = ended(local, vanished)
    assert row.status == "lost"
    assert row.error is not None
    assert message in row.error["message"]
    assert ("memory" in row.error["advice"]) == (does == "die")
    assert "Resume" in row.error["advice"]
    assert ended(local, after).status == "finished"


@posix
def test_a_worker_killed_from_outside_is_lost(runner: Runner, local: Store, config: Make) -> None:
    run_id = ""

    def finding_out() -> float:
        nonlocal run_id
        (run_id,) = local.create([config(seed=1, params=LONG)])
        until(lambda: "stepped" in kinds(local, run_id))
        pid = local.get(run_id).pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        return until(lambda: local.get(run_id).status == "lost")

    within(2.0, finding_out)
    local.requeue(run_id)
    until(lambda: "resumed" in kinds(local, run_id))
    row = local.get(run_id)
    assert (row.status, row.attempt) == ("running", 3)
    local.request_stop(run_id)
    assert ended(local, run_id).status == "stopped"


def test_output_blocks_nothing(runner: Runner, local: Store, config: Make) -> None:
    (run_id,) = local.create([config("be loud")])
    assert ended(local, run_id).status == "finished"
    assert (local.folder_of(run_id) / "worker.log").stat().st_size > 2 * 1024 * 1023


@posix
def test_a_worker_that_does_not_exit_frees_the_slot(runner: Runner, local: Store, config: Make) -> None:
    lingering, after = local.create([config("linger"), config()])
    row = ended(local, lingering)
    assert row.status == "finished"
    assert row.pid is not None
    assert ended(local, after).status == "finished"
    assert gone(row.pid)


def test_a_run_deleted_right_after_its_end_frees_the_slot(runner: Runner, local: Store, config: Make) -> None:
    lingering, after = local.create([config("linger"), config()])
    ended(local, lingering)
    local.delete(lingering)
    assert ended(local, after).status == "finished"
    assert not local.path_of(lingering).exists()


def test_a_worker_that_cannot_begin_leaves_its_reason(
    start_runner: Callable[..., Runner], local: Store, config: Make
) -> None:
    (run_id,) = local.create([config()])
    start_runner(train="tests.runs.no_such_module:train")
    row = ended(local, run_id)
    assert row.status == "lost"
    assert row.error is not None
    assert "exit code 1" in row.error["message"]
    log = local.folder_of(run_id) / "worker.log"
    until(lambda: log.exists() and "No module named 'tests.runs.no_such_module'" in log.read_text())


def test_a_store_that_refuses_events_ends_the_run(runner: Runner, local: Store, config: Make) -> None:
    with local._database.writing() as connection:
        refuse = "SELECT RAISE(ABORT, 'refused')"
        when = "WHEN NEW.body LIKE '%stepped%'"
        connection.execute(text(f"CREATE TRIGGER t BEFORE INSERT ON isoviz_events {when} BEGIN {refuse}; END"))
    (run_id,) = local.create([config(params=LONG)])
    row = ended(local, run_id)
    assert row.status == "lost"
    assert row.error is not None and "exit code 1" in row.error["message"]
    assert "refused" in (local.folder_of(run_id) / "worker.log").read_text()


@posix
def test_silent_runs_of_other_hosts_and_dead_shells_are_lost(runner: Runner, local: Store, config: Make) -> None:
    elsewhere, shell, living = (local.create([config(seed=n)], claim="x")[0] for n in range(3))
    dead = subprocess.Popen([sys.executable, "-c", "pass"])
    dead.wait()
    local.claim("x", "cpu", id=elsewhere)
    local.set_worker(shell, dead.pid, 1.0)
    with local._database.writing() as connection:
        statement = "UPDATE isoviz_runs SET host = 'another-host', pid = 1, pid_scope = 'there' WHERE id = :id"
        connection.execute(text(statement), {"id": elsewhere})
        connection.execute(text("UPDATE isoviz_runs SET heartbeat = heartbeat - 60"))
    for run_id in (elsewhere, shell):
        assert ended(local, run_id).status == "lost"
    assert "no heartbeat for 30 s" in (local.get(elsewhere).error or {})["message"]
    assert (local.get(living).status, local.get(living).host) == ("queued", host_name())


def test_a_process_that_ends_while_devices_are_detected_prints_no_traceback(
    local: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an ending process the import of torch raises; nobody waits for its devices."""
    reported: list[object] = []
    looking = threading.Event()
    runner = Runner(local)

    def describe() -> object:
        looking.set()
        assert runner._closing.wait(60)
        raise RuntimeError("can't register atexit after shutdown")

    monkeypatch.setattr("isoviz.devices.describe", describe)
    monkeypatch.setattr(threading, "excepthook", reported.append)
    runner.start()
    assert looking.wait(60)
    runner.close()
    assert reported == [] and not runner.is_alive

"""The life of a run with real processes, and every way in which it can end, brought about for real."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from isoviz.runs.identity import owner_of
from tests.runs.observing import LONG, ended, kinds, posix, until


def test_a_run_goes_from_queued_to_finished(runner, local, config):
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


@posix
@pytest.mark.parametrize(("does", "message"), [("die", "killed by SIGKILL"), ("exit", "exit code 3")])
def test_a_vanished_worker_is_lost_and_the_next_run_starts(runner, local, config, does, message):
    vanished, after = local.create([config(does), config()])
    row = ended(local, vanished)
    assert row.status == "lost"
    assert row.error is not None
    assert message in row.error["message"]
    assert ("memory" in row.error["advice"]) == (does == "die")
    assert "Resume" in row.error["advice"]
    assert ended(local, after).status == "finished"


def test_a_worker_that_cannot_begin_leaves_its_reason(start_runner, local, config):
    (run_id,) = local.create([config()])
    start_runner(train="tests.runs.no_such_module:train")
    row = ended(local, run_id)
    assert row.status == "lost"
    assert row.error is not None
    assert "exit code 1" in row.error["message"]
    log = local.folder_of(run_id) / "worker.log"
    until(lambda: log.exists() and "No module named 'tests.runs.no_such_module'" in log.read_text())


def test_a_store_that_refuses_events_ends_the_run(runner, local, config):
    with local._database.writing() as connection:
        refuse = "SELECT RAISE(ABORT, 'refused')"
        when = "WHEN NEW.body LIKE '%stepped%'"
        connection.execute(text(f"CREATE TRIGGER t BEFORE INSERT ON isoviz_events {when} BEGIN {refuse}; END"))
    (run_id,) = local.create([config(params=LONG)])
    row = ended(local, run_id)
    assert row.status == "lost"
    assert row.error is not None and "exit code 1" in row.error["message"]
    assert "refused" in (local.folder_of(run_id) / "worker.log").read_text()

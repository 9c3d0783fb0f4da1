"""The life of a run with real processes, and every way in which it can end, brought about for real."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from sqlalchemy import text

from isoviz.config import RunConfig
from isoviz.runs.identity import host_name
from isoviz.runs.processes import Spare, environment, is_alive
from isoviz.runs.runner import Runner
from isoviz.runs.slot import owner_of
from isoviz.runs.store import RunRow, Store
from tests.runs.fake_training import SPEC

Make = Callable[..., RunConfig]

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and groups as POSIX has them")


@dataclass(frozen=True)
class Slot:
    name: str


def until(true: Callable[[], object], seconds: float = 10.0) -> float:
    """Wait for something; returns how long it took."""
    begin = time.monotonic()
    while not true():
        assert time.monotonic() - begin < seconds, "it did not happen in time"
        time.sleep(0.01)
    return time.monotonic() - begin


def ended(store: Store, run_id: str, seconds: float = 15.0) -> RunRow:
    until(lambda: store.get(run_id).ended is not None, seconds)
    return store.get(run_id)


def kinds(store: Store, run_id: str) -> list[str]:
    return [event["kind"] for _, event in store.events(run_id)]


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def spares() -> list[psutil.Process]:
    children = [child for child in psutil.Process().children() if not gone(child.pid)]
    return [child for child in children if "isoviz.runs.worker" in " ".join(child.cmdline())]


@pytest.fixture
def runner(local: Store) -> Iterator[Runner]:
    made = Runner(local, [Slot("cpu")], train=SPEC)
    made.start()
    yield made
    made.close()
    # What a failed test left running must not outlive it.
    for row in local.list(status="running"):
        if row.pid is not None and row.pid_started is not None and is_alive(row.pid, row.pid_started):
            os.killpg(row.pid, signal.SIGKILL)


def test_a_run_goes_from_queued_to_finished(runner: Runner, local: Store, config: Make) -> None:
    first, second = local.create([config(), config(seed=1)])
    row = ended(local, first)
    assert (row.status, row.device, row.owner, row.attempt) == ("finished", "cpu", owner_of("cpu"), 1)
    assert row.result == {"metrics": {"accuracy": 1.0}, "isotropy": {}, "timing": {}}
    assert kinds(local, first) == ["entered", "stepped", "finished"]
    assert ended(local, second).status == "finished"
    assert local.get(second).pid != row.pid, "each run has a process of its own"
    assert f"worker {row.pid} takes run {first}" in (local.folder_of(first) / "worker.log").read_text()
    assert runner.is_alive


def test_a_ready_spare_begins_a_run_at_once(runner: Runner, local: Store, config: Make) -> None:
    until(lambda: spares())
    time.sleep(1.5)
    (run_id,) = local.create([config()])
    row = ended(local, run_id)
    assert row.started is not None
    assert local.events(run_id)[0][1]["time"] - row.started < 0.5
    assert row.started - row.created < 0.5


def test_an_exception_is_told_and_the_next_run_starts(runner: Runner, local: Store, config: Make) -> None:
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
    (run_id,) = local.create([config(seed=1, params={"does": "finish", "seconds": 60.0})])
    until(lambda: "stepped" in kinds(local, run_id))
    pid = local.get(run_id).pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert until(lambda: local.get(run_id).status == "lost") < 2.0
    local.requeue(run_id)
    until(lambda: "resumed" in kinds(local, run_id))
    row = local.get(run_id)
    assert (row.status, row.attempt) == ("running", 3)
    local.request_stop(run_id)
    assert ended(local, run_id).status == "stopped"


def test_a_good_worker_stops_by_itself_with_a_checkpoint(runner: Runner, local: Store, config: Make) -> None:
    stopped, after = local.create([config(params={"does": "finish", "seconds": 60.0}), config()])
    until(lambda: "stepped" in kinds(local, stopped))
    local.request_stop(stopped)
    assert until(lambda: local.get(stopped).ended is not None) < 1.0
    ending = local.events(stopped)[-1][1]
    assert (ending["kind"], ending["step"], ending["forced"]) == ("stopped", 5, False)
    assert ended(local, after).status == "finished"


def test_a_worker_that_is_saving_gets_the_time(runner: Runner, local: Store, config: Make) -> None:
    (run_id,) = local.create([config("save slowly")])
    until(lambda: "stepped" in kinds(local, run_id))
    local.request_stop(run_id)
    row = ended(local, run_id)
    assert row.status == "stopped"
    assert local.events(run_id)[-1][1]["forced"] is False


@posix
def test_stop_reaches_the_whole_group_within_two_seconds(runner: Runner, local: Store, config: Make) -> None:
    deaf, after = local.create([config("ignore everything"), config()])
    pids_file = local.folder_of(deaf) / "pids"
    until(pids_file.exists)
    pids = [int(pid) for pid in pids_file.read_text().split()]
    assert len(pids) == 3
    assert not any(gone(pid) for pid in pids)
    time.sleep(0.3)
    local.request_stop(deaf)
    assert until(lambda: all(gone(pid) for pid in pids)) < 2.0
    assert ended(local, deaf).status == "stopped"
    ending = local.events(deaf)[-1][1]
    assert (ending["forced"], ending["step"]) == (True, 3)
    assert ended(local, after).status == "finished"


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


def test_a_worker_that_cannot_begin_leaves_its_reason(local: Store, config: Make) -> None:
    (run_id,) = local.create([config()])
    runner = Runner(local, [Slot("cpu")], train="tests.runs.no_such_module:train")
    runner.start()
    try:
        row = ended(local, run_id)
    finally:
        runner.close()
    assert row.status == "lost"
    assert row.error is not None
    assert "exit code 1" in row.error["message"]
    assert "No module named 'tests.runs.no_such_module'" in (local.folder_of(run_id) / "worker.log").read_text()


def test_a_store_that_refuses_events_ends_the_run(runner: Runner, local: Store, config: Make) -> None:
    with local._database.writing() as connection:
        refuse = "SELECT RAISE(ABORT, 'refused')"
        when = "WHEN NEW.body LIKE '%stepped%'"
        connection.execute(text(f"CREATE TRIGGER t BEFORE INSERT ON isoviz_events {when} BEGIN {refuse}; END"))
    (run_id,) = local.create([config(params={"does": "finish", "seconds": 60.0})])
    row = ended(local, run_id)
    assert row.status == "lost"
    assert row.error is not None and "exit code 1" in row.error["message"]
    assert "refused" in (local.folder_of(run_id) / "worker.log").read_text()


def test_closing_leaves_the_worker_and_ends_the_spare(local: Store, config: Make) -> None:
    runner = Runner(local, [Slot("cpu")], train=SPEC)
    runner.start()
    (run_id,) = local.create([config(params={"does": "finish", "seconds": 4.0})])
    until(lambda: "stepped" in kinds(local, run_id))
    until(lambda: len(spares()) == 2, seconds=5)
    begin = time.monotonic()
    runner.close()
    assert time.monotonic() - begin < 1.0
    assert not runner.is_alive
    row = local.get(run_id)
    assert row.status == "running" and row.pid is not None and not gone(row.pid)
    assert [spare.pid for spare in spares() if not gone(spare.pid)] == [row.pid]
    again = Runner(local, [Slot("cpu")], train=SPEC)
    again.start()
    try:
        assert ended(local, run_id).status == "finished"
        assert local.get(run_id).attempt == 1
        (after,) = local.create([config()])
        assert ended(local, after).status == "finished"
    finally:
        again.close()


APP = """
import sys, time
from isoviz.runs.runner import Runner
from isoviz.runs.store import Store

class Slot:
    name = "cpu"

runner = Runner(Store(sys.argv[1]), [Slot()], train=sys.argv[2])
runner.start()
print("started", flush=True)
time.sleep(600)
"""


@pytest.fixture
def app(local: Store) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Starts another process with a runner on the same store."""
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        process = subprocess.Popen([sys.executable, "-c", APP, local.url, SPEC], stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None and process.stdout.readline() == "started\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@posix
def test_a_run_survives_its_app_and_is_adopted(
    app: Callable[[], subprocess.Popen[str]], local: Store, config: Make
) -> None:
    other = app()
    long, deaf, after = local.create(
        [config(params={"does": "finish", "seconds": 6.0}), config("ignore everything"), config()]
    )
    until(lambda: "stepped" in kinds(local, long))
    until(lambda: len(psutil.Process(other.pid).children()) == 2)
    worker = local.get(long).pid
    assert worker is not None
    (spare,) = (child.pid for child in psutil.Process(other.pid).children() if child.pid != worker)
    other.kill()
    other.wait()
    assert until(lambda: gone(spare)) < 5.0, "a spare does not outlive its app"
    assert not gone(worker)

    runner = Runner(local, [Slot("cpu")], train=SPEC)
    runner.start()
    try:
        row = ended(local, long)
        assert (row.status, row.pid, row.attempt) == ("finished", worker, 1)
        until((local.folder_of(deaf) / "pids").exists)
        began = local.get(deaf).started
        assert began is not None and row.ended is not None and began >= row.ended, "one run at a time on a slot"
        runner.close()
        runner = Runner(local, [Slot("cpu")], train=SPEC)
        runner.start()
        pids = [int(pid) for pid in (local.folder_of(deaf) / "pids").read_text().split()]
        local.request_stop(deaf)
        until(lambda: all(gone(pid) for pid in pids))
        assert ended(local, deaf).status == "stopped", "an adopted worker is stopped like any other"
        assert ended(local, after).status == "finished"
    finally:
        runner.close()


@posix
def test_a_worker_that_died_with_its_app_is_lost(
    app: Callable[[], subprocess.Popen[str]], local: Store, config: Make
) -> None:
    other = app()
    (run_id,) = local.create([config(params={"does": "finish", "seconds": 60.0})])
    until(lambda: "stepped" in kinds(local, run_id))
    worker = local.get(run_id).pid
    assert worker is not None
    other.kill()
    other.wait()
    os.kill(worker, signal.SIGKILL)
    until(lambda: gone(worker))
    runner = Runner(local, [Slot("cpu")], train=SPEC)
    runner.start()
    try:
        row = ended(local, run_id)
    finally:
        runner.close()
    assert row.status == "lost"
    assert row.error is not None and row.error["message"] == "the worker vanished"


@posix
def test_two_apps_run_each_run_once_and_one_takes_over(
    app: Callable[[], subprocess.Popen[str]], local: Store, config: Make
) -> None:
    first, _second = app(), app()
    ids = local.create([config(seed=n, params={"does": "finish", "seconds": 0.2}) for n in range(5)])
    rows = [ended(local, run_id) for run_id in ids]
    assert [row.status for row in rows] == ["finished"] * 5
    for row in rows:
        assert len((local.folder_of(row.id) / "ran").read_text().split()) == 1
    for earlier, later in pairwise(rows):
        assert earlier.ended is not None and later.started is not None
        assert later.started >= earlier.ended, "never two at once on one device"
    first.kill()
    first.wait()
    (run_id,) = local.create([config()])
    assert ended(local, run_id).status == "finished"


def test_a_runner_takes_over_in_the_same_process(local: Store, config: Make) -> None:
    first, second = (Runner(local, [Slot("cpu")], train=SPEC) for _ in range(2))
    first.start()
    until(lambda: len(spares()) == 1)
    second.start()
    time.sleep(0.5)
    assert second.is_alive
    assert len(spares()) == 1, "who waits for the lock keeps no spare"
    first.close()
    (run_id,) = local.create([config()])
    try:
        assert ended(local, run_id).status == "finished"
    finally:
        second.close()
    # Its own only: other tests of this process may have left some of their libraries' threads.
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("runner")]


def test_two_slots_run_two_at_once_and_see_their_device(
    local: Store, config: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    runner = Runner(local, [Slot("cuda:0"), Slot("cuda:1")], train=SPEC)
    runner.start()
    try:
        ids = local.create([config(seed=n, params={"does": "finish", "seconds": 20.0}) for n in range(2)])
        until(lambda: all("stepped" in kinds(local, run_id) for run_id in ids))
        rows = [local.get(run_id) for run_id in ids]
        seen = {}
        for row in rows:
            assert row.pid is not None
            seen[row.device] = psutil.Process(row.pid).environ()["CUDA_VISIBLE_DEVICES"]
            local.request_stop(row.id)
        assert seen == {"cuda:0": "5", "cuda:1": "7"}
        for run_id in ids:
            ended(local, run_id)
    finally:
        runner.close()


SPARE = """
import sys, time
from pathlib import Path
from isoviz.runs.processes import Spare
spare = Spare("cpu", Path(sys.argv[1]), sys.argv[2])
print(spare.pid, flush=True)
time.sleep(600)
"""


@posix
def test_a_spare_exits_when_its_parent_is_killed(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", SPARE, str(tmp_path / "log"), SPEC], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert not gone(pid)
    parent.kill()
    parent.communicate()
    until(lambda: gone(pid), seconds=5)


def test_a_spare_has_a_group_of_its_own(tmp_path: Path) -> None:
    spare = Spare("cpu", tmp_path / "log", SPEC)
    try:
        if sys.platform != "win32":
            assert os.getpgid(spare.pid) == spare.pid != os.getpgid(0)
        assert is_alive(spare.pid, spare.started)
        assert not is_alive(spare.pid, spare.started - 100), "a recycled process id is another process"
    finally:
        spare.kill()
    assert gone(spare.pid)


@pytest.mark.parametrize(
    ("slot", "visible", "expected"),
    [("cpu", "0,1", ""), ("cuda:1", None, "1"), ("cuda:1", "5, 7", "7"), ("mps", None, None)],
)
def test_a_worker_sees_its_own_device_only(
    slot: str, visible: str | None, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    found = environment(slot)
    assert found.get("CUDA_VISIBLE_DEVICES") == expected
    assert found.get("ACCELERATE_USE_CPU") == ("true" if slot == "cpu" else None)


@posix
def test_silent_runs_of_other_hosts_and_dead_shells_are_lost(runner: Runner, local: Store, config: Make) -> None:
    elsewhere, shell, living = (local.create([config(seed=n)], claim="x")[0] for n in range(3))
    dead = subprocess.Popen([sys.executable, "-c", "pass"])
    dead.wait()
    local.claim("x", "cpu", id=elsewhere)
    local.set_worker(elsewhere, 1, 1.0, host="another-host")
    local.set_worker(shell, dead.pid, 1.0)
    with local._database.writing() as connection:
        connection.execute(text("UPDATE isoviz_runs SET heartbeat = heartbeat - 60"))
    for run_id in (elsewhere, shell):
        assert ended(local, run_id).status == "lost"
    assert "nothing was heard of it for 30 s" in (local.get(elsewhere).error or {})["message"]
    assert (local.get(living).status, local.get(living).host) == ("queued", host_name())

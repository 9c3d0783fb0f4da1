"""The processes that train: the spare that waits, what it sees of the machine, and when it ends."""

from __future__ import annotations

import subprocess
import sys
import time

import psutil
import pytest

from isoviz.jobs.processes import environment
from isoviz.runs.runner import POLL_SECONDS
from tests.runs.fake_training import FAKE
from tests.runs.observing import LONG, ended, gone, kinds, posix, until, within


def test_a_ready_spare_begins_a_run_at_once(runner, local, config, my_workers):
    def spare_is_ready() -> bool:
        logs = [path.read_text() for path in (local.folder / "logs").glob("prepared-*.log")]
        return any(f"spare {spare.pid} is ready" in log for spare in my_workers() for log in logs)

    time.sleep(2 * POLL_SECONDS)
    assert my_workers() == [], "nobody is about to launch a run"
    runner.expect()

    def slower_part() -> float:
        until(spare_is_ready)
        (run_id,) = local.create([config()])
        row = ended(local, run_id)
        until(lambda: gone(row.pid or 0))
        assert row.started is not None
        return max(row.started - row.created, local.events(run_id)[0][1]["time"] - row.started)

    within(0.5, slower_part)


def test_two_slots_run_two_at_once_and_see_their_device(start_runner, local, config, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    start_runner("cuda:0", "cuda:1")
    ids = local.create([config(seed=n, params=LONG) for n in range(2)])
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


SPARE = """
import sys, time
from pathlib import Path
from isoviz.jobs.processes import Worker
spare = Worker(sys.argv[2], "cpu", Path(sys.argv[1]), fork=True)
print(spare.pid, flush=True)
time.sleep(600)
"""


@posix
def test_a_spare_exits_when_its_parent_is_killed(tmp_path):
    parent = subprocess.Popen(
        [sys.executable, "-c", SPARE, str(tmp_path / "log"), FAKE], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    assert not any(gone(pid) for pid in pids)
    parent.kill()
    parent.communicate()
    until(lambda: all(gone(pid) for pid in pids))


@pytest.mark.parametrize(
    ("slot", "visible", "expected"),
    [("cpu", "0,1", ""), ("cuda:1", None, "1"), ("cuda:1", "5, 7", "7"), ("mps", None, None)],
)
def test_a_worker_sees_its_own_device_only(slot, visible, expected, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    variables = environment(slot)
    assert variables.get("CUDA_VISIBLE_DEVICES") == expected
    assert variables.get("ACCELERATE_USE_CPU") == ("true" if slot == "cpu" else None)

"""Runs that train on several of a machine's slots: they wait for enough free slots, and no other run starts in the meantime."""

from __future__ import annotations

import time

import pytest

from isoviz.devices import visible
from isoviz.runs.recovery import end, lost
from tests.runs.observing import ended, until


def test_runs_of_more_processes_than_gpus_are_left_to_others(start_runner, local, config):
    wide, narrow = local.create([config(processes=3), config(processes=2)])
    start_runner("cuda:0", "cuda:1")
    assert ended(local, narrow).status == "finished"
    assert local.get(wide).status == "queued"


def test_a_process_sees_the_devices_of_its_slots(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert visible(["cuda:2", "cuda:0"]) == "2,0"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5, 7,GPU-3f")
    assert visible(["cuda:2", "cuda:0"]) == "GPU-3f,5"


def test_the_runner_gives_a_run_of_two_processes_both_slots(start_runner, local, config):
    beside, wide, after = local.create([config("finish when told"), config(processes=2), config()])
    start_runner("cuda:0", "cuda:1")
    until(lambda: local.get(wide).status == "running")
    until(lambda: local.folder_of(beside).joinpath("ran").exists())
    assert not local.folder_of(wide).joinpath("ran").exists() and local.get(after).status == "queued"
    local.folder_of(beside).joinpath("finish").touch()
    assert ended(local, wide).status == ended(local, after).status == "finished"


@pytest.mark.parametrize("by_user", [True, False])
def test_a_wide_run_that_ends_while_it_waits_holds_no_slot(start_runner, local, config, by_user):
    beside, wide, after = local.create([config("finish when told"), config(processes=2), config()])
    start_runner("cuda:0", "cuda:1")
    until(lambda: local.get(wide).status == "running")
    local.request_stop(wide) if by_user else end(local, wide, local.get(wide).attempt, lost(None))
    assert (ended(local, wide).status, ended(local, after).status) == ("stopped" if by_user else "lost", "finished")
    local.folder_of(beside).joinpath("finish").touch()
    assert ended(local, beside).status == "finished"


def test_slots_in_use_before_a_restart_are_no_others(start_runner, local, config):
    beside, wide = local.create([config("finish when told"), config("finish when told", processes=2)])
    first = start_runner("cuda:0", "cuda:1", "cuda:2")
    until(lambda: local.folder_of(wide).joinpath("ran").exists())
    local.folder_of(beside).joinpath("finish").touch()
    assert ended(local, beside).status == "finished"
    (free,) = {"cuda:0", "cuda:1", "cuda:2"} - set((local.get(wide).device or "").split(","))
    first.close()
    after = local.create([config("finish when told") for _ in range(2)])
    start_runner("cuda:0", "cuda:1", "cuda:2")
    until(lambda: any(local.get(run).status == "running" for run in after))
    (running,) = (row for row in local.list(status="running") if row.id in after)
    assert running.device == free
    time.sleep(1.0)  # several turns of all slots: none of those in use starts the other
    assert sum(local.get(run).status == "queued" for run in after) == 1
    for run in (wide, *after):
        local.folder_of(run).mkdir(parents=True, exist_ok=True)
        local.folder_of(run).joinpath("finish").touch()
    assert {ended(local, run).status for run in (wide, *after)} == {"finished"}

"""Runners start and stop, in this process and others: their runs are adopted, and each runs once."""

from __future__ import annotations

import time

import psutil

from tests.runs.observing import TOLD, ended, finish, gone, kinds, posix, until, within


def test_closing_leaves_the_worker_and_ends_the_spare(start_runner, local, config, my_workers):
    (run_id,) = local.create([config(params=TOLD)])

    def closing() -> float:
        runner = start_runner()
        until(lambda: "stepped" in kinds(local, run_id))
        until(lambda: len(my_workers()) == 2)
        (spare,) = (worker.pid for worker in my_workers() if worker.pid != local.get(run_id).pid)
        begin = time.monotonic()
        runner.close()
        took = time.monotonic() - begin
        assert not runner.is_alive
        row = local.get(run_id)
        assert row.status == "running" and row.pid is not None and not gone(row.pid)
        assert gone(spare)
        return took

    within(1.0, closing)
    start_runner()
    finish(local, run_id)
    assert ended(local, run_id).status == "finished"
    assert local.get(run_id).attempt == 1
    (after,) = local.create([config()])
    assert ended(local, after).status == "finished"


@posix
def test_a_run_survives_its_app_and_is_adopted(app, start_runner, local, config, my_workers):
    other = app()
    long, deaf, after = local.create([config(params=TOLD), config("ignore everything"), config()])
    until(lambda: "stepped" in kinds(local, long))
    until(lambda: len(psutil.Process(other.pid).children(recursive=True)) == 2)
    worker = local.get(long).pid
    assert worker is not None
    (spare,) = (child.pid for child in psutil.Process(other.pid).children(recursive=True) if child.pid != worker)
    other.kill()
    other.wait()
    until(lambda: gone(spare))  # it does not outlive its app
    assert not gone(worker)

    runner = start_runner()
    until(my_workers)  # a spare: what this runner found running it has adopted
    finish(local, long)
    row = ended(local, long)
    assert (row.status, row.pid, row.attempt) == ("finished", worker, 1)
    until((local.folder_of(deaf) / "pids").exists)
    began = local.get(deaf).started
    assert began is not None and row.ended is not None and began >= row.ended, "one run at a time on a slot"
    runner.close()
    start_runner()
    pids = [int(pid) for pid in (local.folder_of(deaf) / "pids").read_text().split()]
    local.request_stop(deaf)
    until(lambda: all(gone(pid) for pid in pids))
    assert ended(local, deaf).status == "stopped", "an adopted worker is stopped like any other"
    assert ended(local, after).status == "finished"

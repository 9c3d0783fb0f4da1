"""How a running run is stopped: by itself, with time to save, or by force."""

from __future__ import annotations

import time

from isoviz.runs import runner as running
from isoviz.runs.store import Signals
from tests.runs.observing import LONG, PATIENCE, ended, finish, gone, kinds, posix, until, within


def test_a_good_worker_stops_by_itself_with_a_checkpoint(runner, local, config, monkeypatch):
    # A worker that a busy machine holds up would be killed, as it should; how soon it stops is measured.
    assert running.STOP_SECONDS > 1.0
    monkeypatch.setattr(running, "STOP_SECONDS", PATIENCE)

    def stopping() -> float:
        stopped, after = local.create([config(params=LONG), config()])
        until(lambda: "stepped" in kinds(local, stopped))
        local.request_stop(stopped)
        took = until(lambda: local.get(stopped).ended is not None)
        ending = local.events(stopped)[-1][1]
        assert (ending["kind"], ending["step"], ending["forced"]) == ("stopped", 5, False)
        assert ended(local, after).status == "finished"
        return took

    within(1.0, stopping)


def test_a_worker_that_is_saving_gets_the_time(runner, local, config, monkeypatch):
    assert running.STOP_SECONDS < 3.0 < running.SAVE_SECONDS
    # The runner's clock without the machine's: patient until it knows of the saving, then out of patience for all others.
    monkeypatch.setattr(running, "STOP_SECONDS", PATIENCE)
    monkeypatch.setattr(running, "SAVE_SECONDS", PATIENCE)
    looks: list[str] = []
    signals_of = local.signals

    def signals(run_id: str) -> Signals:
        sent = signals_of(run_id)
        if sent.phase == "saving":
            running.STOP_SECONDS = 0.0
            looks.append(sent.status)
        return sent

    monkeypatch.setattr(local, "signals", signals)
    (run_id,) = local.create([config("save slowly")])
    until(lambda: "stepped" in kinds(local, run_id))
    local.request_stop(run_id)
    until(lambda: len(looks) > 10)
    assert set(looks) == {"running"}
    finish(local, run_id)
    row = ended(local, run_id)
    assert row.status == "stopped"
    assert local.events(run_id)[-1][1]["forced"] is False


def test_a_slow_step_gets_the_time_it_needs(runner, local, config, monkeypatch):
    monkeypatch.setattr(running, "STOP_SECONDS", 0.0)  # no grace period beyond the current step
    (run_id,) = local.create([config("step slowly")])
    until(lambda: local.signals(run_id).step_seconds == 600.0)
    local.request_stop(run_id)
    time.sleep(10 * running.WATCH_SECONDS)
    assert local.get(run_id).status == "running"
    finish(local, run_id)
    assert ended(local, run_id).status == "stopped"
    ending = local.events(run_id)[-1][1]
    assert (ending["step"], ending["forced"]) == (5, False)


@posix
def test_stop_reaches_the_whole_group_within_two_seconds(runner, local, config):
    def stopping() -> float:
        deaf, after = local.create([config("ignore everything"), config()])
        pids_file = local.folder_of(deaf) / "pids"
        until(pids_file.exists)
        until(lambda: "checkpointed" in kinds(local, deaf))
        pids = [int(pid) for pid in pids_file.read_text().split()]
        assert len(pids) == 3
        assert not any(gone(pid) for pid in pids)
        local.request_stop(deaf)
        took = until(lambda: all(gone(pid) for pid in pids))
        assert ended(local, deaf).status == "stopped"
        ending = local.events(deaf)[-1][1]
        assert (ending["forced"], ending["step"]) == (True, 3)
        assert ended(local, after).status == "finished"
        return took

    within(2.0, stopping)

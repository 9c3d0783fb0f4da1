"""People's jobs go first: a queued run waits while someone's view waits for its turn, but not for ever."""

from __future__ import annotations

import pytest

from isoviz.jobs import queue
from isoviz.runs import runner as running
from isoviz.runs.runner import Runner
from isoviz.runs.store import Store
from tests.jobs.here import lane_taken
from tests.jobs.light import LANE, LIGHT
from tests.runs.conftest import Make
from tests.runs.observing import PATIENCE, ended, until


def test_queued_run_starts_after_the_view_someone_waits_for(
    runner: Runner, local: Store, config: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "HOLD_SECONDS", PATIENCE)  # however long a busy machine takes
    gave_way: list[bool] = []
    check = runner._gives_way
    monkeypatch.setattr(runner, "_gives_way", lambda: gave_way.append(check()) or gave_way[-1])
    with lane_taken(LANE):
        queue.start(LIGHT, "k", {})
        until(lambda: gave_way and gave_way[-1])
        (run_id,) = local.create([config()])
        checks = len(gave_way)
        until(lambda: len(gave_way) > checks + 3)
        assert (queue.look(LIGHT, "k").status, local.get(run_id).status) == ("waiting", "queued")
    row = ended(local, run_id)
    assert row.status == "finished" and row.started is not None
    until(lambda: queue.look(LIGHT, "k").status == "done")


def test_class_that_never_stops_asking_does_not_hold_runs_up_for_ever(
    runner: Runner, local: Store, config: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "HOLD_SECONDS", 0.5)
    with lane_taken(LANE):
        queue.start(LIGHT, "k", {})
        (run_id,) = local.create([config()])
        assert ended(local, run_id).status == "finished"
        assert queue.look(LIGHT, "k").status == "waiting"

"""People's jobs go first: a queued run waits while someone's view waits for its turn, but not for ever."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from isoviz.config import RunConfig
from isoviz.jobs import queue
from isoviz.runs import runner as running
from isoviz.runs.runner import Runner
from isoviz.runs.store import Store
from tests.jobs.here import end_all, lane_taken
from tests.jobs.light import LANE, LIGHT
from tests.runs.observing import LONG, ended, kinds, until

Make = Callable[..., RunConfig]


def test_queued_run_starts_after_the_view_someone_waits_for(runner: Runner, local: Store, config: Make) -> None:
    with lane_taken(LANE):
        queue.start(LIGHT, "k", {})
        (run_id,) = local.create([config()])
        time.sleep(5 * running.POLL_SECONDS)
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
    end_all()


def test_view_runs_beside_a_running_training(runner: Runner, local: Store, config: Make) -> None:
    (run_id,) = local.create([config(params=LONG)])
    until(lambda: "stepped" in kinds(local, run_id))
    queue.start(LIGHT, "k", {})
    until(lambda: queue.look(LIGHT, "k").status == "done")
    assert local.get(run_id).status == "running"
    local.request_stop(run_id)
    assert ended(local, run_id).status == "stopped"

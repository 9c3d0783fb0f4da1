"""A job's work in this process: error messages and memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from isoviz.jobs import queue, serving
from isoviz.jobs.kinds import Recent
from isoviz.jobs.scheduling import JobProcess
from isoviz.jobs.spares import environment_key
from tests.jobs.here import lane_taken, write_job
from tests.jobs.light import LANE, LIGHT, STORE


def work(request: dict[str, Any]) -> bool:
    return serving.work(LIGHT, write_job(LIGHT, "k", request), Recent(1))


@pytest.mark.parametrize(
    ("does", "message", "field", "advice", "fit"),
    [
        ("reject", "rows: must be at least 2 (got 1)", "rows", "Take more.", True),
        ("break", "the computation failed with RuntimeError: a bug", None, "See the log below.", False),
        ("run out of memory", "the machine ran out of memory", "rows", "Take fewer.", False),
    ],
)
def test_failure_is_reported_in_the_users_terms(
    does: str, message: str, field: str | None, advice: str, fit: bool
) -> None:
    assert work({"does": does}) is fit, "after a bug the next job gets a process of its own"
    state = queue.look(LIGHT, "k")
    assert (state.status, state.message, state.field, state.advice) == ("failed", message, field, advice)
    queue.stop(LIGHT, "k")
    assert queue.look(LIGHT, "k").status == "none"


def test_a_job_started_again_the_moment_it_failed_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between a failure and the worker's return to its own log, someone presses the button again."""
    states = []

    def start_again(_: Path) -> None:
        if queue.look(LIGHT, "k").status == "failed":
            with lane_taken(LANE):
                queue.start(LIGHT, "k", {"number": 2})
                states.append(queue.look(LIGHT, "k").status)

    monkeypatch.setattr(serving, "log_to", start_again)
    monkeypatch.setattr(serving, "_leave_with_the_last_app", lambda me: None)
    me = psutil.Process()
    entry = JobProcess(me.pid, me.create_time(), LIGHT.name, LANE.name, environment_key(), "")
    entry = replace(entry, log=str(write_job(LIGHT, "k", {"does": "break"}) / "own"))
    entry.file.parent.mkdir(parents=True)
    entry.write(None)
    assert serving.serve_kind(LIGHT) == 0
    assert states == ["waiting"] and queue.look(LIGHT, "k").under_way


def test_limit_that_is_no_number_stops_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOVIZ_VIEWS_LIMIT", "lots")
    work({})
    assert "number of GiB" in queue.look(LIGHT, "k").message and STORE.find("k") is None


def test_least_used_makes_room() -> None:
    recent, made = Recent(2), []
    for key in "abaca":
        recent.get(key, lambda key=key: made.append(key))
    assert made == ["a", "b", "c"]
    recent.get("b", lambda: made.append("b"))
    assert made == ["a", "b", "c", "b"]

"""A job's work in this process: what is said of one that goes wrong, and what stays in memory."""

from __future__ import annotations

from typing import Any

import pytest

from isoviz.jobs import queue, serving
from isoviz.jobs.kinds import Recent
from tests.jobs.here import write_job
from tests.jobs.light import LIGHT, STORE


def work(request: dict[str, Any]) -> bool:
    return serving.work(LIGHT, write_job(LIGHT, "k", request), Recent(1))


@pytest.mark.parametrize(
    ("does", "message", "field", "advice", "fit"),
    [
        ("reject", "rows: must be at least 2 (got 1)", "rows", "Take more.", True),
        ("break", "the computation failed with RuntimeError: a bug", None, "The log below tells more.", False),
        ("run out of memory", "the machine's memory is not enough for this", "rows", "Take fewer.", False),
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

"""Results on disk are complete or absent, and stay within the limits."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest

from isoviz.errors import InputError
from isoviz.jobs.results import ResultStore, byte_limit

STORE = ResultStore("things")


def keep(key: str, seen: float, numbers: int = 1_000) -> None:
    STORE.publish(key, {"depth": 0}, {"sigma": np.arange(numbers, dtype=np.float32)})
    os.utime(STORE.root / "results" / key, (seen, seen))


def limited(**limits: object) -> ResultStore:
    return ResultStore("things", **limits)  # type: ignore[arg-type]


def names() -> set[str]:
    return {path.name for path in (STORE.root / "results").glob("*")}


def test_written_atomically_and_completed_later() -> None:
    STORE.publish("a", {"depth": 3, "pending": ["twonn"]}, {"sigma": np.arange(5.0)})
    soon = STORE.find("a")
    assert soon is not None and soon.pending == ("twonn",) and soon.arrays["sigma"].tolist() == [0, 1, 2, 3, 4]
    STORE.publish("a", {"depth": 3}, {})
    STORE.publish("a", {"depth": 4, "pending": ["twonn"]}, {})  # one that was further stays
    result = STORE.find("a")
    assert result is not None and result.pending == () and result.facts["depth"] == 3
    assert STORE.find("b") is None and names() == {"a"}


def test_the_least_recently_used_goes_first() -> None:
    for index, key in enumerate("abc"):
        keep(key, 1_000 + index)
    one = STORE.size() // 3
    assert STORE.find("a") is not None  # seen now, so b is the oldest
    limited(limit=lambda: int(2.5 * one)).shrink()
    assert names() == {"a", "c"} and STORE.size() <= 2.5 * one
    STORE.shrink()
    assert names() == {"a", "c"}


def test_what_killed_processes_left_goes_after_a_day() -> None:
    inputs, partial, recent = STORE.inputs_of("a"), STORE.root / "results" / ".new-b", STORE.inputs_of("c")
    inputs.parent.mkdir(parents=True)
    partial.mkdir(parents=True)
    for path in (inputs, recent):
        path.touch()
    for path in (inputs, partial):
        os.utime(path, (time.time() - 2 * 86400,) * 2)
    STORE.shrink()
    assert recent.exists() and not inputs.exists() and not partial.exists()


def test_limit_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert byte_limit() == 2 * 2**30
    monkeypatch.setenv("ISOVIZ_VIEWS_LIMIT", "0.5")
    assert byte_limit() == 2**29
    monkeypatch.setenv("ISOVIZ_VIEWS_LIMIT", "lots")
    with pytest.raises(InputError, match="number above 0"):
        byte_limit()

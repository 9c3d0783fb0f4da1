"""Results on disk are complete or absent, and stay within the limits, including failures and inputs."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from isoviz.errors import InputError
from isoviz.jobs.progress import ProgressFile, read, write_json
from isoviz.jobs.results import ERROR, ResultStore, byte_limit

STORE = ResultStore("things")


def keep(key: str, seen: float, numbers: int = 1_000) -> None:
    STORE.publish(key, {"depth": 0}, {"sigma": np.arange(numbers, dtype=np.float32)})
    os.utime(STORE.root / "results" / key, (seen, seen))


def fail(key: str, seconds_ago: float, input_bytes: int = 0) -> Path:
    folder = STORE.job_folder(key)
    folder.mkdir(parents=True)
    write_json(folder / "request.json", {"texts": ["a private sentence"]})
    (folder / "inputs.safetensors").write_bytes(bytes(input_bytes))
    write_json(folder / ERROR, {"message": "no", "field": None, "advice": None})
    os.utime(folder / ERROR, (time.time() - seconds_ago,) * 2)
    return folder


def limited(**limits: object) -> ResultStore:
    return ResultStore("things", **limits)  # type: ignore[arg-type]


def names() -> set[str]:
    return {path.name for part in ("results", "jobs") for path in (STORE.root / part).glob("*")}


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
    assert limited(limit=lambda: int(2.5 * one)).shrink() == ["b"]
    assert names() == {"a", "c"} and STORE.size() <= 2.5 * one
    assert STORE.shrink() == []


def test_result_just_made_stays_however_large() -> None:
    keep("old", 2)
    keep("new", 1, numbers=100_000)
    assert limited(limit=lambda: 10).shrink(keep="new") == ["old"]


def test_failures_go_after_their_time_and_count_with_all_that_they_were_given() -> None:
    keep("seen", time.time())
    old, large, recent = fail("old", 7200), fail("large", 60, input_bytes=100_000), fail("recent", 5)
    under_way = STORE.job_folder("running")
    under_way.mkdir()
    write_json(under_way / "request.json", {})
    store = limited(limit=lambda: 50_000, failure_seconds=3600.0)
    assert store.size() > 100_000
    assert set(store.shrink()) == {"old", "large"}
    assert not old.exists() and not large.exists() and recent.exists() and under_way.exists()
    assert limited(most=1).shrink() == ["recent"], "failures count too"
    assert names() == {"seen", "running"}
    assert not any(b"private" in path.read_bytes() for path in STORE.root.rglob("*") if path.is_file())


def test_empty_store() -> None:
    assert STORE.size() == 0 and STORE.shrink() == []


def test_limit_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert byte_limit() == 2 * 2**30
    monkeypatch.setenv("ISOVIZ_VIEWS_LIMIT", "0.5")
    assert byte_limit() == 2**29
    monkeypatch.setenv("ISOVIZ_VIEWS_LIMIT", "lots")
    with pytest.raises(InputError, match="number of GiB"):
        byte_limit()


def test_progress_is_written_twice_a_second_at_most_and_never_back(tmp_path: Path) -> None:
    now = [0.0]
    report = ProgressFile(tmp_path, clock=lambda: now[0])
    seen = []
    for step, (seconds, done) in enumerate([(0.0, 1), (0.1, 2), (0.5, 6), (0.9, 7), (1.0, 4), (1.6, 10)]):
        now[0] = seconds
        report(done, 10, f"step {step}")
        seen.append((read(tmp_path).done, read(tmp_path).text))
    assert seen == [(1, "step 0"), (1, "step 0"), (6, "step 2"), (6, "step 2"), (6, "step 4"), (10, "step 5")]
    assert read(tmp_path).fraction == 1.0

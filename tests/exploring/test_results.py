"""Finished views on disk: whole or not at all, and never more of them than the limit."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from isoviz.errors import InputError
from isoviz.exploring import results


def keep(root: Path, key: str, seen: float, numbers: int = 1_000) -> None:
    arrays = {"0.cls.sigma": np.arange(numbers, dtype=np.float32)}
    folder = results.publish(root / "jobs" / key, key, {"depth": 0, "entries": []}, arrays, at=root)
    os.utime(folder, (seen, seen))


def test_written_and_read_again(tmp_path: Path) -> None:
    keep(tmp_path, "a", 1)
    found = results.find("a", at=tmp_path)
    assert found is not None and found.depth == 0
    sigma = found.array(0, "cls", "sigma")
    assert sigma is not None and (sigma == np.arange(1_000)).all()
    assert found.array(0, "cls", "cloud") is None
    assert results.find("b", at=tmp_path) is None
    assert not (tmp_path / "jobs" / "a").exists()


def test_same_content_twice_is_kept_once(tmp_path: Path) -> None:
    keep(tmp_path, "a", 1)
    keep(tmp_path, "a", 2)
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["a"]
    assert not (tmp_path / "jobs" / "a").exists()


def test_longest_unseen_goes_first(tmp_path: Path) -> None:
    for place, key in enumerate("abc"):
        keep(tmp_path, key, 1_000 + place)
    one = results.size(at=tmp_path) // 3
    assert results.find("a", at=tmp_path) is not None  # seen now, so b is the oldest
    assert results.shrink(int(2.5 * one), at=tmp_path) == ["b"]
    assert {path.name for path in (tmp_path / "results").iterdir()} == {"a", "c"}
    assert results.size(at=tmp_path) <= 2.5 * one


def test_below_the_limit_nothing_goes(tmp_path: Path) -> None:
    keep(tmp_path, "a", 1)
    assert results.shrink(results.size(at=tmp_path), at=tmp_path) == []
    assert results.find("a", at=tmp_path) is not None


def test_view_just_made_stays_however_large(tmp_path: Path) -> None:
    keep(tmp_path, "old", 2)
    keep(tmp_path, "new", 1, numbers=100_000)
    assert results.shrink(10, at=tmp_path, keep="new") == ["old"]
    assert results.find("new", at=tmp_path) is not None


def test_empty_store(tmp_path: Path) -> None:
    assert results.size(at=tmp_path) == 0 and results.shrink(1, at=tmp_path) == []


def test_limit_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert results.limit() == 2 * 2**30
    monkeypatch.setenv("ISOVIZ_VIEWS_LIMIT", "0.5")
    assert results.limit() == 2**29
    monkeypatch.setenv("ISOVIZ_VIEWS_LIMIT", "lots")
    with pytest.raises(InputError, match="number of GiB"):
        results.limit()

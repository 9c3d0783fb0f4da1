"""What each release promised still holds: public names, options, stores, and the keys and values that commands print of them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from factory import record_release
from isoviz.__main__ import build_parser, main
from isoviz.runs.store import Store

RELEASES = sorted(path.name for path in record_release.RELEASES.iterdir())


def lost(promised: Any, now: Any, place: str = "") -> list[str]:
    """Where a document lacks what was promised: keys may be added, but values must stay."""
    if isinstance(promised, dict) and isinstance(now, dict):
        return [
            gap
            for key, value in promised.items()
            for gap in (lost(value, now[key], f"{place}.{key}") if key in now else [f"{place}.{key}"])
        ]
    if isinstance(promised, list) and isinstance(now, list) and len(promised) == len(now):
        return [
            gap
            for index, both in enumerate(zip(promised, now, strict=True))
            for gap in lost(*both, f"{place}[{index}]")
        ]
    same = now == pytest.approx(promised, rel=1e-9) if isinstance(promised, float) else now == promised
    return [] if same else [f"{place}: {promised!r} became {now!r}"]


def test_a_gap_is_found() -> None:
    assert lost({"a": [1, {"b": 2.0}]}, {"a": [1, {"b": 2.0, "c": 3}], "d": 4}) == []
    assert lost({"a": [1, {"b": 2.0}], "d": 4}, {"a": [1, {"b": 2.1}]}) == [".a[1].b: 2.0 became 2.1", ".d"]
    assert lost([1, 2], [1]) == [": [1, 2] became [1]"]


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> tuple[Path, dict[str, Any]]:
    folder = record_release.RELEASES / request.param
    return folder, json.loads((folder / "promises.json").read_text(encoding="utf-8"))


def test_public_names_and_options_stay(release: tuple[Path, dict[str, Any]]) -> None:
    now = {"names": record_release.names(), "options": dict(record_release.options(build_parser()))}
    gone = [
        f"{kind} {owner}: {name}"
        for kind in now
        for owner, those in release[1][kind].items()
        for name in those
        if name not in now[kind].get(owner, ())
    ]
    assert gone == []


def test_a_store_of_the_release_is_read_and_goes_on(
    release: tuple[Path, dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, promises = release
    (tmp_path / "isoviz.db").write_bytes(gzip.decompress((folder / "store.db.gz").read_bytes()))
    for line, document in promises["documents"].items():
        assert lost(document, record_release.answer(line, tmp_path)) == [], line
    waiting = promises["waiting"]
    assert main(["worker", "--store", str(tmp_path), "--idle", "0"]) == 0, capsys.readouterr().err
    store = Store(tmp_path)
    assert store.get(waiting).status == "finished" and store.get(waiting).result is not None
    store.delete(waiting)
    store.close()

"""`isoviz doctor` on sound and damaged installations."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest

from isoviz.__main__ import main
from isoviz.commands import doctor
from isoviz.runs.store import Store


@pytest.fixture
def findings(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    """Run it on a store; the findings that are not `ok`, as about and text."""

    def run(code: int = 0) -> dict[str, str]:
        assert main(["doctor", "--store", str(tmp_path), "--json"]) == code
        document = json.loads(capsys.readouterr().out)
        assert document["problems"] == sum(one["state"] == "problem" for one in document["findings"])
        assert all(one["state"] == "ok" or one["advice"] for one in document["findings"])
        return {one["about"]: one["text"] for one in document["findings"] if one["state"] != "ok"}

    return run


def test_a_sound_installation_has_no_problem(findings: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "store" not in findings()  # there is none yet, and looking made none
    assert list(tmp_path.iterdir()) == []
    Store(tmp_path).close()
    assert "store" not in findings()
    assert main(["doctor", "--store", str(tmp_path)]) == 0
    assert capsys.readouterr().out.endswith("0 problems\n")


@pytest.mark.parametrize("where", [0, 8192])
def test_a_damaged_store_is_a_problem(findings: Any, tmp_path: Path, where: int) -> None:
    Store(tmp_path).close()
    file = tmp_path / "isoviz.db"
    content = bytearray(file.read_bytes())
    content[where : where + 4096] = b"\xff" * 4096
    file.write_bytes(content)
    assert "is damaged" in findings(1)["store"]


def test_a_full_disk_is_a_problem(findings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    for free, code in ((2e9, 0), (1e8, 1)):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: usage(1e12, 1e12 - free, free))
        assert f"{free / 1e9:.1f} GB free" in findings(code)["disk"]


def test_what_is_not_installed_is_a_note_with_its_extra(findings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    version = importlib.metadata.version

    def some(name: str) -> str:
        if name == "segno":
            raise importlib.metadata.PackageNotFoundError
        return version(name)

    monkeypatch.setattr(importlib.metadata, "version", some)
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    found = findings()
    assert "lacks segno" in found["packages"] and {"devices", "store", "hub"} <= set(found)

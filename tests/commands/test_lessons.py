"""`isoviz lessons`: one file that needs nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from isoviz.__main__ import main


def test_one_small_file_that_asks_for_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "lessons.html"
    assert main(["lessons", "--out", str(out)]) == 0
    assert "open it in any browser" in capsys.readouterr().out
    text = out.read_text("utf-8")
    assert len(text.encode()) < 1.5e6
    assert not re.findall(r"\b(?:src|href)\s*=|@import|url\(|fetch\(|XMLHttpRequest|WebSocket", text)
    assert "default-src 'none'" in text  # the browser holds it to that


@pytest.mark.parametrize(("place", "problem"), [("nowhere/lessons.html", "there is no folder"), ("", "is a folder")])
def test_a_place_where_no_file_can_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str, problem: str
) -> None:
    assert main(["lessons", "--out", str(tmp_path / place)]) == 2
    line = capsys.readouterr().err.strip()
    assert line.startswith("isoviz: --out: ") and problem in line and "\n" not in line

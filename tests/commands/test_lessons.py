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
    own = re.sub(r"(?m)^const LAB_SOURCE = .*$", "", text)  # one of its libraries could load files by address
    assert not re.findall(r"""\bsrc\s*=|\bhref\s*=(?!"#)|@import|url\(|fetch\(|XMLHttpRequest|WebSocket""", own)
    assert "default-src 'none'" in text  # the browser holds it to that

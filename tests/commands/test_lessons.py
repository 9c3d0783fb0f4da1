"""`isoviz lessons`: one file that needs nothing else."""

from __future__ import annotations

import os
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


def test_a_device_gets_the_page_and_no_size(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["lessons", "--out", os.devnull]) == 0
    assert capfd.readouterr().out == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("out", ["/dev/full", "x" * 300 + ".html"])
def test_a_failed_write_is_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str], out: str) -> None:
    assert main(["lessons", "--out", str(tmp_path / out)]) == 2
    line = capfd.readouterr().err.strip()
    assert line.startswith("isoviz: --out: ") and "\n" not in line and "Traceback" not in line

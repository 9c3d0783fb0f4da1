"""docs/metrics.md says what the catalogue says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from isoviz import metrics
from isoviz.metrics.__main__ import markdown_table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
BEGIN, END = "<!-- catalogue: begin -->\n", "<!-- catalogue: end -->"


def test_the_table_is_the_catalogues():
    text = PAGE.read_text(encoding="utf-8")
    table = text.split(BEGIN)[1].split(END)[0].strip()
    assert table == markdown_table(), "paste what `python -m isoviz.metrics` prints between the two comments"


def test_the_command_prints_it():
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-m", "isoviz.metrics"],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert done.stdout.strip() == markdown_table()
    assert done.stderr == ""


def test_each_metric_has_one_line_of_equal_width():
    header, _, *lines = markdown_table().splitlines()
    assert [re.match(r"\| `(\w+)` \|", line).group(1) for line in lines] == list(metrics.catalogue())
    columns = len(re.findall(r"(?<!\\)\|", header))
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {columns}


def test_the_page_keeps_its_sections():
    text = PAGE.read_text(encoding="utf-8")
    for section in ("**Closed form.**", "**Few points.**", "**Which cloud.**"):
        assert section in text

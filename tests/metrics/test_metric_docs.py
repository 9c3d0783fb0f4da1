"""docs/metrics.md says what the catalogue says."""

from __future__ import annotations

import re
from pathlib import Path

from factory.reference_docs import measures_part
from isoviz import metrics

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"


def test_each_metric_has_one_line_of_equal_width_and_a_section():
    table, *sections = measures_part().split('<a id="')
    header, _, *lines = table.strip().splitlines()
    assert [re.match(r"\| \[.+?\]\(#\w+\) \| `(\w+)` \|", line).group(1) for line in lines] == list(metrics.catalogue())
    assert [section.split('"')[0] for section in sections] == list(metrics.catalogue())
    columns = len(re.findall(r"(?<!\\)\|", header))
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {columns}

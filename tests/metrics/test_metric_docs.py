"""docs/metrics.md says what the catalogue says."""

from __future__ import annotations

import re
from pathlib import Path

from factory.reference_docs import measures_part
from isoviz import metrics

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"


def test_each_metric_has_one_line_of_equal_width():
    header, _, *lines = measures_part().splitlines()
    assert [re.match(r"\| `(\w+)` \|", line).group(1) for line in lines] == list(metrics.catalogue())
    columns = len(re.findall(r"(?<!\\)\|", header))
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {columns}

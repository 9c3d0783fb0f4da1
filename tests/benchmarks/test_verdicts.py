"""The table of verdicts before and after is that of today's judges."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BEFORE = ROOT / "docs" / "verdicts-06d9bc1c.json"


@pytest.fixture
def verdicts(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("verdicts")


def test_the_table_in_the_docs_is_the_scripts(verdicts):
    page = (ROOT / "docs" / verdicts.PAGE).read_text(encoding="utf-8")
    section = page.partition(f"<!-- begin {verdicts.SECTION} -->\n")[2].partition(f"\n<!-- end {verdicts.SECTION} -->")[
        0
    ]
    assert section == verdicts.body(BEFORE).strip()


def test_a_changed_a_new_and_a_dropped_claim(verdicts):
    before = json.loads(BEFORE.read_text(encoding="utf-8"))[:2]
    changed = {**before[0], "outcome": "held"}
    new = {**before[0], "claim": "Something else."}
    rows = verdicts.compared(before, [changed, new]).rows
    assert [row[2:] for row in rows] == [
        ["cannot tell", "held", "changed"], ["—", "cannot tell", "new"], ["not held", "—", ""],
    ]  # fmt: skip

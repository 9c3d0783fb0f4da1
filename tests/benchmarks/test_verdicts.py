"""The shipped verdicts and the table of verdicts before and after are those of today's judges."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

from isoviz.studies import Result

ROOT = Path(__file__).resolve().parents[2]
BEFORE = ROOT / "docs" / "verdicts-06d9bc1c.json"


@pytest.fixture
def verdicts(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("verdicts")


def test_the_recorded_examples_have_the_verdicts_of_todays_judges(verdicts):
    results = verdicts.results()
    assert len(results) == 20
    for path, today in results.items():
        shipped = Result.model_validate_json(path.read_text(encoding="utf-8"))
        assert [(v.claim, v.outcome) for v in shipped.verdicts] == [(v.claim, v.outcome) for v in today.verdicts], path


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

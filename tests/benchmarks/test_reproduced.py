"""The comparison of a second run with the record: what counts as the same."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import reproduced

from isoviz.studies import Result

RECORD = Result.model_validate_json((reproduced.RECORDED / "istar-figure-3.json").read_text(encoding="utf-8"))


def shifted(spreads: float) -> Result:
    """The record with one cell of its table moved by so many of its deviations."""
    table = RECORD.tables[0]
    rows = [list(row) for row in table.rows]
    middle, spread = reproduced.CELL.match(str(rows[0][3])).groups()[:2]  # type: ignore[union-attr]
    rows[0][3] = f"{float(middle) + spreads * float(spread):.4f} ± {spread}"
    return RECORD.model_copy(update={"tables": [table.model_copy(update={"rows": rows})]})


def test_the_record_reproduces_itself():
    cells, good = reproduced.row_of(RECORD, RECORD)
    count = len(reproduced.numbers(RECORD))
    assert good and count >= 30 and cells[2:] == [f"{count} of {count}", str(count), "0.00", "same"]


@pytest.mark.parametrize(("spreads", "good"), [(0.8, True), (1.2, False)])
def test_a_number_may_be_one_spread_off(spreads, good):
    cells, differences = reproduced.row_of(RECORD, shifted(spreads))
    assert differences is good and float(cells[4]) == pytest.approx(spreads, rel=0.05)


def test_another_verdict_or_a_missing_number_is_no_reproduction():
    verdict = RECORD.verdicts[0]
    other = "held" if verdict.outcome != "held" else "not held"
    changed = RECORD.model_copy(
        update={"verdicts": [verdict.model_copy(update={"outcome": other}), *RECORD.verdicts[1:]]}
    )
    assert not reproduced.row_of(RECORD, changed)[1]
    assert not reproduced.row_of(RECORD, RECORD.model_copy(update={"figures": []}))[1]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((0.5, 0.1), (0.55, 0.3), 0.05 / 0.05**0.5),
        ((0.5, 0.0), (0.5 + 1e-9, 0.0), 0.0),
        ((0.5, 0.0), (0.51, 0.0), float("inf")),
    ],
)
def test_distance_is_in_pooled_spreads(first, second, expected):
    assert reproduced.distance(first, second) == pytest.approx(expected)

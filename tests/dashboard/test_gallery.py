"""The gallery of docs/static.md has the figures, tables and numbers that the app shows today."""

from __future__ import annotations

import re
from io import StringIO

import pandas as pd
import pytest

from dashboard.export import at_address
from factory.record_gallery import FOLDER, GALLERY
from tests.dashboard.reading import packages_scanned_once
from tests.dashboard.saved import saved

RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


@pytest.mark.parametrize("name", GALLERY)
def test_the_gallery_has_the_numbers_of_today(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the last digit, which depends on the machine. If not, run `python -m factory.record_gallery`."""
    for variable, value in {"EXAMPLES": "on", "RUNNER": "off", "SPARES": "off"}.items():
        monkeypatch.setenv(f"ISOVIZ_{variable}", value)
    with packages_scanned_once():
        pages = (FOLDER / f"{name}.html").read_bytes(), at_address.content(GALLERY[name])
    old, new = map(saved, pages)
    assert len(old.figures) == len(new.figures) > 0 and [*old.codes] == [*new.codes] and [*old.tables] == [*new.tables]
    for before, after in zip(*map(tables_of, pages), strict=True):
        assert list(before.columns) == list(after.columns) and before.shape == after.shape
        assert values_of(before) == pytest.approx(values_of(after), rel=2e-3, abs=2e-3)


def tables_of(page: bytes) -> list[pd.DataFrame]:
    return pd.read_html(StringIO(page.decode().partition("<body>")[2].partition("<script")[0]))


def values_of(table: pd.DataFrame) -> list[float]:
    """All numbers in a table's text."""
    text = re.sub(
        "·10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", lambda power: f"e{power[1].translate(RAISED)}", table.to_csv().replace("−", "-")
    )
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", text)]

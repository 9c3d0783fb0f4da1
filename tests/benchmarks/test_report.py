"""What benchmarks write: one section each, replaced in place, and medians of contenders that take turns."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def report(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("_report")


def test_a_section_is_replaced_in_place_and_leaves_the_others_alone(report, tmp_path):
    page = tmp_path / "docs" / "benchmarks.md"
    report.write_section(page, "metrics", "first")
    report.write_section(page, "loop", "of another script")
    page.write_text(page.read_text() + "\nA closing word by hand.\n")
    report.write_section(page, "metrics", "second\n\n| a |")
    text = page.read_text()
    assert text.startswith("# Benchmarks")
    assert "first" not in text
    assert text.index("second\n\n| a |") < text.index("of another script") < text.index("A closing word by hand.")
    assert text.count("<!-- begin metrics -->") == text.count("<!-- end metrics -->") == 1
    again = page.read_bytes()
    report.write_section(page, "metrics", "second\n\n| a |")
    assert page.read_bytes() == again


def test_a_broken_marker_is_refused_before_anything_is_lost(report, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- begin metrics -->\nold\n")
    with pytest.raises(ValueError, match="one of the markers of 'metrics' is missing"):
        report.write_section(page, "metrics", "new")
    assert "old" in page.read_text()

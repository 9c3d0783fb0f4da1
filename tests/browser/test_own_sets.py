"""Own vectors and own texts in a real browser: uploaded, coloured, pasted; the address restores both in a fresh session."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Server, becomes, steady
from tests.jobs.here import end_all

LONG = 240_000
"""Milliseconds for what waits on a process that imports torch on a busy machine."""
COLOURS = """() => new Set(document.querySelector(".ivz-map-points").layer.parts.flatMap((part, place) => {
  const bytes = document.querySelector(".ivz-map-points").layer.colours[place];
  return [...Array(part.x.length).keys()].map((i) => bytes.slice(4 * i, 4 * i + 3).join());
})).size"""
POINTS = (
    "() => document.querySelector('.ivz-map-points')?.layer?.parts.reduce((sum, part) => sum + part.x.length, 0) ?? 0"
)


@pytest.fixture
def serving(serve: Callable[..., Server]) -> Iterator[Server]:
    yield serve()
    end_all()


def drawn(page: Page, count: int) -> float:
    """Wait for a map of so many points; the seconds that it took."""
    begin = time.monotonic()
    while page.evaluate(POINTS) != count:
        assert time.monotonic() - begin < LONG / 1000, f"{page.evaluate(POINTS)} points"
        page.wait_for_timeout(20)
    return time.monotonic() - begin


def write(path: Path, rows: int, width: int) -> Path:
    points = np.random.default_rng(0).normal(size=(rows, width)).astype(np.float32)
    frame = pd.DataFrame(points, columns=[f"x{place}" for place in range(width)])
    frame.insert(0, "label", [("sport", "politics", "weather")[row % 3] for row in range(rows)])
    frame.to_parquet(path)
    return path


def test_vectors_with_labels_are_uploaded_coloured_and_restored(
    serving: Server, open_tab: Callable[..., Page], tmp_path: Path
) -> None:
    page = open_tab(f"{serving.url}/explore?explore_at=My+vectors", width=1440)
    upload = page.get_by_test_id("stFileUploaderDropzoneInput").first
    expect(upload).to_be_attached(timeout=LONG)
    upload.set_input_files(write(tmp_path / "mine.parquet", 5_000, 96))
    print(f"first picture of 5,000 vectors {drawn(page, 5_000):.2f} s after the upload began")
    expect(page.get_by_text("5,000 vectors of 96 dimensions, with label").first).to_be_visible()
    becomes(page, lambda: page.evaluate(COLOURS), 3)
    expect(page).to_have_url(re.compile("explore_vectors=[0-9a-f]{32}"))

    again = open_tab(steady(page, lambda: page.url), width=1440)
    drawn(again, 5_000)
    becomes(again, lambda: again.evaluate(COLOURS), 3)
    expect(again.get_by_test_id("stMetricValue").first).to_be_visible()


def test_twenty_pasted_sentences_become_a_map_and_are_restored(serving: Server, open_tab: Callable[..., Page]) -> None:
    page = open_tab(f"{serving.url}/explore?explore_at=My+texts", width=1440)
    lines = [f"The {animal} {verb} in the garden." for animal in ("cat", "dog", "bird", "fox") for verb in
             ("sleeps", "eats", "runs", "hides", "waits")]  # fmt: skip
    field = page.get_by_role("textbox", name="Texts, one per line")
    expect(field).to_be_visible(timeout=LONG)
    field.fill("\n".join(lines))
    field.press("Control+Enter")
    expect(page.get_by_text("pasted texts: 20 texts").first).to_be_visible(timeout=LONG)
    drawn(page, 20)
    expect(page.get_by_text("The first 20 of 20 texts of pasted texts").first).to_be_visible()

    again = open_tab(steady(page, lambda: page.url), width=1440)
    drawn(again, 20)
    said = again.evaluate(
        "() => document.querySelector('.ivz-map-points').layer.parts.flatMap((part) => [...part.texts])"
    )
    assert sorted(said) == sorted(lines)

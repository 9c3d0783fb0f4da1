"""Own vectors in a real browser: uploaded, coloured, transformed and exported; the address restores it all."""

from __future__ import annotations

import json
import re
import time
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
from playwright.sync_api import Page, expect

from tests.browser.conftest import LONG, OpenTab, Server, becomes, stable

ROWS = 300
COLOURS = """() => new Set(document.querySelector(".ivz-map-points").layer.parts.flatMap((part, place) => {
  const bytes = document.querySelector(".ivz-map-points").layer.colours[place];
  return [...Array(part.x.length).keys()].map((i) => bytes.slice(4 * i, 4 * i + 3).join());
})).size"""
POINTS = (
    "() => document.querySelector('.ivz-map-points')?.layer?.parts.reduce((sum, part) => sum + part.x.length, 0) ?? 0"
)


def drawn(page: Page, count: int) -> float:
    """Wait for a map of `count` points; returns the seconds."""
    begin = time.monotonic()
    while page.evaluate(POINTS) != count:
        assert time.monotonic() - begin < LONG / 1000, f"{page.evaluate(POINTS)} points"
        page.wait_for_timeout(20)
    return time.monotonic() - begin


def write(path: Path, rows: int, width: int) -> Path:
    points = np.random.default_rng(0).normal(size=(rows, width)).astype(np.float32)
    frame = pd.DataFrame(points, columns=[f"x{index}" for index in range(width)])
    frame.insert(0, "label", [("sport", "politics", "weather")[row % 3] for row in range(rows)])
    frame.to_parquet(path)
    return path


def test_vectors_with_labels_are_uploaded_coloured_transformed_and_restored(
    server: Server, open_tab: OpenTab, tmp_path: Path
) -> None:
    page = open_tab(f"{server.url}/explore?explore_at=My+vectors", width=1440)
    upload = page.get_by_test_id("stFileUploaderDropzoneInput").first
    expect(upload).to_be_attached(timeout=LONG)
    upload.set_input_files(write(tmp_path / "mine.parquet", ROWS, 48))
    print(f"first picture of {ROWS:,} vectors {drawn(page, ROWS):.2f} s after the upload began")
    expect(page.get_by_text(f"mine.parquet · {ROWS:,} vectors")).to_be_visible()
    becomes(page, lambda: page.evaluate(COLOURS), 3)
    expect(page).to_have_url(re.compile("explore_vectors=[0-9a-f]{32}"))

    address = stable(page, lambda: page.url)
    expect(page.get_by_role("progressbar")).to_have_count(0, timeout=LONG)  # a click in a rerun may be lost
    page.get_by_role("link", name="Transform in What-if").click()
    page.get_by_role("button", name="Prepare files").click(timeout=LONG)
    with page.expect_download(timeout=LONG) as waiting:
        page.get_by_role("button", name="Matrix (numpy)").click()
    archive = zipfile.ZipFile(waiting.value.path())
    (key,) = re.findall("whatif_either=([0-9a-f]{32})", page.url)
    origin = json.loads(archive.read("origin.json"))
    assert origin["key"] == key and origin["chain"] == "zca:strength=0.5"

    again = open_tab(address, dark=True, width=390)  # a fresh session
    drawn(again, ROWS)
    becomes(again, lambda: again.evaluate(COLOURS), 3)

"""Ruler: from Home in two clicks, two typed sentences, the JSON, and six lines in a fresh process that give the page's numbers."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from isoviz.operations import jobs
from isoviz.operations.jobs import SetRequest
from isoviz.readouts.ruler import SIX_LINES, Ruler
from isoviz.vectors import demo_sets
from tests.browser.conftest import Server, becomes, fits

LONG = 240_000
"""Milliseconds for an encoder on a busy machine."""


def test_two_sentences_to_the_json_and_six_lines(server: Server, open_tab: Callable[..., Page], tmp_path: Path) -> None:
    page = open_tab(server.url, width=1440)
    page.get_by_role("link", name="What does 0.62 mean?").click()
    recorded = jobs.find(SetRequest(demo_sets.RECORDED["demo/similarity"]))
    assert recorded is not None
    expect(page.get_by_text(recorded.read(0.62).sentence)).to_be_visible()
    expect(page.locator(".st-key-ruler_distribution .main-svg").first).to_be_visible()

    page.get_by_role("textbox", name="First sentence").fill("The doctor thanked the nurse.")
    page.get_by_role("textbox", name="First sentence").press("Enter")
    expect(page).to_have_url(re.compile("ruler_first="))
    page.get_by_role("textbox", name="Second sentence").fill("The nurse was thanked by the doctor.")
    page.get_by_role("textbox", name="Second sentence").press("Enter")
    spoken = page.get_by_text(re.compile("^Their cosine: "))
    expect(spoken).to_be_visible(timeout=LONG)

    # a page that runs may replace its buttons
    expect(page.locator("[data-test-script-state=running]")).to_have_count(0)
    for name, file in (("Ruler (JSON)", "ruler.json"), ("Your sentences (pair.npy)", "pair.npy")):
        with page.expect_download() as download:
            page.get_by_role("button", name=name).click()
        assert download.value.suggested_filename == file
        download.value.save_as(tmp_path / file)
    process = subprocess.run(
        [sys.executable, "-c", SIX_LINES], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    cosine, percentile, probability = map(float, process.stdout.split())
    ruler = Ruler.model_validate_json((tmp_path / "ruler.json").read_text())
    reading = ruler.read(cosine)
    assert ruler == recorded and (percentile, probability) == (reading.percentile, reading.probability)
    expect(spoken).to_have_text(f"Their cosine: {reading.sentence}")

    other = open_tab(page.url, dark=True, width=390)  # a fresh session
    expect(other.get_by_text(f"Their cosine: {reading.sentence}")).to_be_visible(timeout=LONG)
    becomes(other, lambda: fits(other), True)

"""Compare: three uploads to a verdict in a browser; the old address of recorded encoders leads there; the page fits narrow and dark."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
from playwright.sync_api import expect

from tests.browser.conftest import LONG, OpenTab, Server, becomes, fits
from tests.readouts.searches import made


def test_three_uploads_to_a_verdict(server: Server, open_tab: OpenTab, tmp_path: Path) -> None:
    page = open_tab(f"{server.url}/atlas", width=1440)
    expect(page).to_have_url(re.compile("/compare"), timeout=LONG)
    expect(page.get_by_role("heading", name="Recorded encoders")).to_be_visible(timeout=LONG)
    page.get_by_text("Your vectors", exact=True).click()
    search, files = made(seed=3), {"documents": [], "questions": []}
    for name, noise in (("old", 0.0), ("noisy", 1.5)):
        for side, points in zip(files, search.seen(noise), strict=True):
            (tmp_path / side).mkdir(exist_ok=True)
            np.save(tmp_path / side / f"{name}.npy", points)
            files[side].append(tmp_path / side / f"{name}.npy")
    rows = pd.DataFrame(search.relevance + np.array([1, 1, 0]), columns=["query", "document", "relevance"])
    rows.to_csv(tmp_path / "relevance.csv", index=False)
    fields = page.get_by_test_id("stFileUploaderDropzoneInput")
    expect(page.get_by_text("A file from each encoder, of the same documents")).to_be_visible(timeout=LONG)
    expect(fields).to_have_count(3)
    fields.nth(0).set_input_files(files["documents"])
    expect(page).to_have_url(re.compile("compare_vectors=[0-9a-f]{32}.[0-9a-f]{32}"), timeout=LONG)
    fields.nth(2).set_input_files(tmp_path / "relevance.csv")
    fields.nth(1).set_input_files(files["questions"])
    expect(page.get_by_text(re.compile("noisy.npy ranks lower than old.npy"))).to_be_visible(timeout=LONG)
    expect(page.locator(".st-key-compare_changes .main-svg").first).to_be_visible()
    expect(page.get_by_role("heading", name="Questions that get worse")).to_be_visible()

    other = open_tab(page.url, dark=True, width=390)  # a fresh session
    expect(other.get_by_text(re.compile("noisy.npy ranks lower than old.npy"))).to_be_visible(timeout=LONG)
    becomes(other, lambda: fits(other), True)

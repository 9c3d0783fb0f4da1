"""The dashboard from a wheel, without a checkout: `isoviz FILE` opens Explore on the file, and every page can be drawn."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import OpenTab, drawn, visit_all
from tests.ports import free_port
from tests.wheel import ROOT, built, start, unpacked

pytestmark = pytest.mark.browser


def test_a_file_opens_in_an_installed_app_and_every_page_is_drawn(tmp_path: Path, open_tab: OpenTab) -> None:
    site = unpacked(built(ROOT, tmp_path / "dist")[1], tmp_path / "site-packages", core=False)
    points = np.random.default_rng(0).normal(size=(321, 8)) * [1, 1, 1, 20, 1, 1, 1, 1]
    np.save(tmp_path / "cloud.npy", points)
    began = time.monotonic()
    app = start(site, "cloud.npy", "--headless", "--port", str(free_port()), cwd=tmp_path)
    try:
        assert app.stdout is not None
        link = next(line.split()[-1] for line in app.stdout if "Your link:" in line)
        page = open_tab(link)
        expect(page.get_by_text("· 321 vectors").first).to_be_visible()
        wide = page.get_by_text("Dimension 3 has most variance: 98 % of it (if even: 12 %)")
        expect(wide).to_be_in_viewport()  # nothing was scrolled
        print(f"from the command to the dimension that stands out: {time.monotonic() - began:.1f} s")
        expect(page).to_have_url(re.compile(r"/explore\?(?!.*token)"))
        visit_all(page)
        page.goto(f"{link.partition('/explore')[0]}/run")  # it says what its address lacks
        expect(page.get_by_test_id("stAlert").first).to_be_visible()
        drawn(page)
    finally:
        os.killpg(app.pid, signal.SIGTERM)
        app.communicate(timeout=60)


def test_a_file_opens_with_the_core_alone(chromium: Browser, tmp_path: Path) -> None:
    site = unpacked(built(ROOT, tmp_path / "dist")[1], tmp_path / "site-packages", core=True)
    np.save(tmp_path / "cloud.npy", np.random.default_rng(0).normal(size=(20_100, 8)))
    written = start(site, "cloud.npy", "--no-browser", cwd=tmp_path).communicate(timeout=60)
    context = chromium.new_context(offline=True)
    page = context.new_page()
    page.goto((tmp_path / "cloud.isoviz.html").as_uri())
    expect(page.get_by_text("20,000 of 20,100 rows, drawn with seed 0").first).to_be_visible()
    expect(page.get_by_role("region", name="Measures").get_by_text("IsoScore").first).to_be_visible()
    context.close()
    assert "cloud.isoviz.html" in written[0]

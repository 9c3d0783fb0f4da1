"""The dashboard from a wheel, without a checkout: `isoviz FILE` opens Explore on the file, and every page can be drawn."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab, drawn, visit_all
from tests.ports import free_port
from tests.wheel import ROOT, built, start, unpacked

pytestmark = pytest.mark.browser


def test_a_file_opens_in_an_installed_app_and_every_page_is_drawn(tmp_path: Path, open_tab: OpenTab) -> None:
    site = unpacked(built(ROOT, tmp_path / "dist")[1], tmp_path / "site-packages", core=False)
    np.save(tmp_path / "cloud.npy", np.random.default_rng(0).normal(size=(321, 8)))
    app = start(site, "cloud.npy", "--headless", "--port", str(free_port()), cwd=tmp_path)
    try:
        assert app.stdout is not None
        link = next(line.split()[-1] for line in app.stdout if "Your link:" in line)
        page = open_tab(link)
        expect(page.get_by_text("321 vectors of 8 dimensions").first).to_be_visible()
        expect(page).to_have_url(re.compile(r"/explore\?(?!.*token)"))
        visit_all(page)
        page.goto(f"{link.partition('/explore')[0]}/run")  # it says what its address lacks
        expect(page.get_by_test_id("stAlert").first).to_be_visible()
        drawn(page)
    finally:
        os.killpg(app.pid, signal.SIGTERM)
        app.communicate(timeout=60)

"""A report opened from disk with the network cut."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import OpenTab, becomes, fits, from_disk
from tests.dashboard.test_export import NASTY, sample


def test_a_report_opens_with_the_network_cut(open_tab: OpenTab, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(sample(), encoding="utf-8")
    page = from_disk(open_tab, path, dark=True, width=390)
    expect(page.get_by_text(NASTY).first).to_be_visible()
    assert fits(page)
    colour = page.locator(".plot").evaluate("plot => plot._fullLayout.font.color")
    assert colour == "rgb(232, 237, 242)"  # dark page, light words
    page.emulate_media(media="print")
    becomes(page, lambda: page.locator(".plot").evaluate("plot => plot._fullLayout.font.color"), "rgb(24, 34, 45)")

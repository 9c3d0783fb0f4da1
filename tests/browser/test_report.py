"""A report opened from disk with the network cut, and its pictures as PNG by a real browser."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import expect

from dashboard.report import html_file, markdown_file
from tests.browser.conftest import OpenTab, becomes, fits, from_disk
from tests.dashboard.test_reports import NASTY, sample
from tests.missing import missing


def test_a_report_opens_with_the_network_cut(open_tab: OpenTab, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(html_file.render(sample()), encoding="utf-8")
    page = from_disk(open_tab, path, dark=True, width=390)
    expect(page.get_by_text(NASTY).first).to_be_visible()
    assert fits(page)
    colour = page.locator(".plot").evaluate("plot => plot._fullLayout.font.color")
    assert colour == "rgb(232, 237, 242)"  # dark page, light words
    page.emulate_media(media="print")
    becomes(page, lambda: page.locator(".plot").evaluate("plot => plot._fullLayout.font.color"), "rgb(24, 34, 45)")


def test_pictures_are_drawn_for_markdown() -> None:
    if not markdown_file.can_draw():
        missing("no Chrome or Chromium that kaleido could draw with")
    with zipfile.ZipFile(io.BytesIO(markdown_file.render(sample()))) as files:
        picture = Image.open(io.BytesIO(files.read("figure-1.png")))
    assert picture.width == 2 * markdown_file.WIDTH
    assert len(set(picture.convert("RGB").get_flattened_data())) > 10  # something is drawn

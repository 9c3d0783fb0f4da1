"""The frozen pages of docs/static.md, opened from disk with the network cut: what tests/commands/test_freeze.py compares is drawn."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from factory.record_gallery import FOLDER, GALLERY
from tests.browser.conftest import OpenTab, fits
from tests.dashboard.saved import saved


@pytest.mark.parametrize("name", GALLERY)
def test_a_frozen_page_needs_no_network(open_tab: OpenTab, name: str) -> None:
    path = FOLDER / f"{name}.html"
    written = saved(path.read_bytes())
    page = open_tab("about:blank", width=390, offline=True)
    requests: list[str] = []
    errors: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.goto(path.as_uri())
    expect(page.locator(".plot .main-svg .trace path").first).to_be_visible()
    assert [url for url in requests if not url.startswith(("data:", "blob:"))] == [path.as_uri()] and errors == []
    points = page.locator(".plot").evaluate_all(
        "plots => plots.map(plot => plot.calcdata.map(trace => trace.filter(point => point.x !== undefined).length))"
    )
    assert len(points) == len(written.figures) and all(any(of_figure) for of_figure in points)
    assert page.locator("tbody tr").count() >= sum(map(len, written.tables.values())) > 10
    assert fits(page)

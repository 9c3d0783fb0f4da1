"""The frozen pages of docs/static.md, opened from disk with the network cut: what tests/commands/test_freeze.py compares is drawn."""

from __future__ import annotations

import pytest

from factory.record_gallery import FOLDER, GALLERY
from tests.browser.conftest import OpenTab, fits, from_disk
from tests.dashboard.saved import saved


@pytest.mark.parametrize("name", GALLERY)
def test_a_frozen_page_needs_no_network(open_tab: OpenTab, name: str) -> None:
    path = FOLDER / f"{name}.html"
    written = saved(path.read_bytes())
    page = from_disk(open_tab, path, width=390)
    points = page.locator(".plot").evaluate_all(
        "plots => plots.map(plot => plot.calcdata.map(trace => trace.filter(point => point.x !== undefined).length))"
    )
    assert len(points) == len(written.figures) and all(any(of_figure) for of_figure in points)
    assert page.locator("tbody tr").count() >= sum(map(len, written.tables.values())) > 10
    assert page.locator("main > h1").count() == page.locator("main").count() == 1
    assert fits(page)

"""The clustered |ρ| of Explore in a real browser: the stored values under the pointer, the order of another view, files."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Locator, Page, expect

from isoviz.exploring import results
from isoviz.exploring.results import ViewResult
from tests.browser.conftest import BRIGHTNESS, LONG, OpenTab, Server, becomes, fits, hovered, keep_view

ROWS = 60


@pytest.fixture
def view(server: Server) -> ViewResult:
    """The view of the bundled model, which the server has already."""
    stored = results.find(keep_view(ROWS))
    assert stored is not None
    return stored


def ready(page: Page, count: int) -> list[Locator]:
    """The matrices of the page, once each is drawn."""
    matrix = page.locator(".ivz-cloud")
    expect(matrix).to_have_count(count, timeout=LONG)
    for index in range(count):
        expect(matrix.nth(index).locator(".ivz-matrix-note")).to_be_hidden(timeout=LONG)
    return [matrix.nth(index) for index in range(count)]


def test_matrices_tell_and_save_what_is_stored(
    server: Server, view: ViewResult, open_tab: OpenTab, tmp_path: Path
) -> None:
    address = f"{server.url}/explore?explore_rows={ROWS}&explore_large=correlation&explore_views=2&explore2_rows={ROWS}&explore2_layer=1"
    page = open_tab(address, width=1440)
    first, second = ready(page, 2)
    cells, order = view.matrix(4, "cls")
    other, order_of_own = view.matrix(1, "cls")
    becomes(page, lambda: hovered(first, 20, 3, 128), (order[20], order[3], f"{cells[20, 3] / 255:.2f}"))
    becomes(page, lambda: hovered(second, 20, 3, 128), (order_of_own[20], order_of_own[3], f"{other[20, 3] / 255:.2f}"))
    first.get_by_label("Zoom in").click()  # the middle half
    becomes(page, lambda: hovered(first, 0, 5, 64), (order[32], order[37], f"{cells[32, 37] / 255:.2f}"))
    first.get_by_role("button", name="All").click()

    saved: dict[str, bytes] = {}
    for format in ("csv", "svg", "png"):
        with page.expect_download() as got:
            first.get_by_role("button", name=format.upper(), exact=True).click()
        assert (
            got.value.suggested_filename
            == f"explore-demo-tiny-bert-demo-acceptability-validation-correlation-layer4-cls.{format}"
        )
        got.value.save_as(tmp_path / format)
        saved[format] = (tmp_path / format).read_bytes()
    table = pd.read_csv(io.BytesIO(saved["csv"]), index_col=0)
    assert table.index.tolist() == order.tolist() and [int(name) for name in table.columns] == order.tolist()
    np.testing.assert_allclose(table.to_numpy(), np.where(np.eye(128), 1, cells / 255), atol=6e-4)
    assert saved["svg"].startswith(b"<svg") and b"layer 4" in saved["svg"]
    assert saved["png"].startswith(b"\x89PNG") and len(saved["png"]) > 10_000

    becomes(page, lambda: first.locator("canvas").evaluate(BRIGHTNESS) > 0.5, True)
    page.emulate_media(color_scheme="dark")  # weak correlations look like the page behind them
    becomes(page, lambda: first.locator("canvas").evaluate(BRIGHTNESS) < 0.5, True)
    page.set_viewport_size({"width": 390, "height": 900})
    becomes(page, lambda: fits(page), True)

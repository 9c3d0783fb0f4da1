"""What-if in a real browser: a slider moves numbers and not the other figures, the address restores it, a download parses."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import LONG, POINTS, OpenTab, Server, becomes, fits, save_page, stable
from tests.tiny import TinyModels
from tests.whatif.trained import train


@pytest.fixture
def run(server: Server, tiny_models: TinyModels) -> str:
    """A finished run of the server whose embeddings were read."""
    return train(server.home, tiny_models)


def tile(page: Page, label: str) -> str:
    """The measure of that name after the chain, once it is a number."""
    cell = page.get_by_role("row", name=label).get_by_role("cell").nth(2)
    expect(cell).to_have_text(re.compile(r"^[−\d]"))
    return cell.inner_text()


def ready(page: Page) -> None:
    expect(page.get_by_role("heading", name="Make it a run")).to_be_visible(timeout=LONG)
    # the marks of a new answer come a little after its first numbers
    becomes(page, lambda: stable(page, page.get_by_text("pending").count), 0)


CURVES = "[...document.querySelectorAll('.st-key-whatif_spectrum .js-plotly-plot')].map((plot) => plot.data.map(({ y }) => [...y]))"


def test_a_slider_its_numbers_its_address_and_its_downloads(
    server: Server, run: str, open_tab: OpenTab, tmp_path: Path
) -> None:
    page = open_tab(f"{server.url}/whatif?run={run}&chain=zca:strength=0.5")
    ready(page)
    before = tile(page, "Participation ratio")
    page.evaluate("document.querySelector('.st-key-whatif_map_before .js-plotly-plot').dataset.mark = 'same node'")

    curve = page.locator(".st-key-whatif_spectrum .js-plotly-plot")
    drawn_before = page.evaluate(CURVES)
    slider = page.get_by_role("slider", name="Strength s")
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function(f"(before) => JSON.stringify({CURVES}) !== JSON.stringify(before)", arg=drawn_before)
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop") == 0
    expect(page.get_by_test_id("stSlider").filter(has=slider)).to_be_in_viewport(
        ratio=1
    )  # what is moved and what it changes, without scrolling
    expect(curve).to_be_in_viewport(ratio=1)
    expect(page).to_have_url(re.compile("strength%3D0.55|strength=0.55"))
    expect(page.get_by_role("row", name="Participation ratio").get_by_role("cell").nth(2)).not_to_have_text(before)
    ready(page)
    after = tile(page, "Participation ratio")
    assert float(after) > float(before)
    mark = page.locator(".st-key-whatif_map_before .js-plotly-plot")
    assert mark.get_attribute("data-mark") == "same node"  # the map without transform was not remounted

    with page.expect_download() as waiting:
        page.get_by_role("button", name="Numbers (CSV)").click()
    table = pd.read_csv(io.BytesIO(waiting.value.path().read_bytes()), encoding="utf-8-sig").set_index("measure")
    assert table.loc["Participation ratio", "after"] == pytest.approx(float(after), rel=6e-3)
    assert table["n"].eq(48).all() and "EV_1" in table.index
    assert table["source"].str.endswith("head cloud").all() and table["chain"].eq("zca:strength=0.55").all()

    save_page(page, tmp_path / "saved.html")
    file = open_tab((tmp_path / "saved.html").as_uri(), offline=True)
    marks = ".js-plotly-plot"
    assert file.evaluate(POINTS, ".plot") == page.evaluate(POINTS, marks)
    row = file.get_by_role("row", name=re.compile("Participation ratio")).get_by_role("cell")
    assert float(row.nth(2).inner_text()) == pytest.approx(float(after), rel=6e-3)

    other = open_tab(page.url, dark=True, width=390)  # a fresh session
    ready(other)
    assert tile(other, "Participation ratio") == after
    assert other.get_by_role("slider", name="Strength s").input_value() == "0.55"
    becomes(other, lambda: fits(other), True)


def test_curves_follow_a_slider_that_is_held(server: Server, run: str, open_tab: OpenTab) -> None:
    page = open_tab(f"{server.url}/whatif?run={run}&chain=zca:strength=0.5")
    ready(page)
    slider = page.get_by_role("slider", name="Strength s")
    box = slider.locator("xpath=../../..").bounding_box()  # the track
    assert box is not None
    middle, height = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(middle, height)
    page.mouse.down()
    for share in (0.3, -0.3):
        drawn = page.evaluate(CURVES)
        for part in (0.5, 1.0):
            page.mouse.move(middle + part * share * box["width"], height)
        page.wait_for_function(f"(before) => JSON.stringify({CURVES}) !== JSON.stringify(before)", arg=drawn)
    page.mouse.up()
    ready(page)
    expect(page).to_have_url(re.compile(r"strength(%3D|=)0\.2\b"))
    assert slider.input_value() == "0.2"

"""Explore in a real browser: look, see progress, see the layers; the address brings the same view to another session."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.conftest import LONG, OpenTab, Server, becomes, fits, stable


def lines(page: Page) -> list[tuple[str, list[int], int]]:
    """Name, layers and number of known values of each line of the layer profile."""
    plot = page.locator(".st-key-explore_profile .js-plotly-plot")
    expect(plot).to_be_visible()
    traces: list[list[Any]] = plot.evaluate(
        "plot => (plot.data ?? []).map(t => [t.name, Array.from(t.x), Array.from(t.y).filter(y => y !== null).length])"
    )
    return [(name, [int(layer) for layer in layers], known) for name, layers, known in traces]


def test_look_progress_profile_and_the_same_by_its_address(server: Server, open_tab: OpenTab) -> None:
    page = open_tab(server.url)
    page.get_by_role("link", name="Explore").first.click()
    expect(page.get_by_text("Pick a model and a task, then press Analyse")).to_be_visible()
    page.get_by_label("Rows", exact=True).fill("100")
    page.get_by_label("Rows", exact=True).press("Enter")
    expect(page).to_have_url(re.compile("explore_rows=100"))
    page.get_by_role("button", name="Analyse").click()
    expect(page.get_by_role("progressbar").first).to_be_visible()
    expect(page.get_by_role("button", name="Stop")).to_be_visible()

    expect(page.get_by_text("Layer by layer")).to_be_visible(timeout=LONG)
    expect(page.get_by_role("progressbar")).to_have_count(0, timeout=LONG)
    expect(page.locator(".js-plotly-plot")).to_have_count(3)  # with the map; the other sections are tabs
    expect(page.get_by_label("Rows", exact=True)).to_be_hidden()  # the fields have folded into one line
    page.get_by_role("tab", name="Means, spreads and cosines").click()
    expect(page.locator(".js-plotly-plot")).to_have_count(6)
    shown = stable(page, lambda: lines(page))
    depth = shown[0][1][-1]
    assert [name for name, _, _ in shown] == ["first token [CLS]", "mean of the tokens", "every token"]
    assert depth >= 2 and all(layers == list(range(depth + 1)) for _, layers, _ in shown)
    assert all(known >= depth for _, _, known in shown)

    page.locator(".st-key-explore_pooling").get_by_text("mean", exact=True).click()
    expect(page.get_by_text(f"100 rows · layer {depth}, mean of the tokens")).to_be_visible()
    for written in ("explore_rows=100", "explore_pooling=mean", "explore_tab=Means"):
        expect(page).to_have_url(re.compile(written))

    other = open_tab(page.url, dark=True, width=390)  # a telephone, at night: nothing is computed again
    expect(other.get_by_text(f"100 rows · layer {depth}, mean of the tokens")).to_be_visible()
    becomes(other, lambda: lines(other), shown)
    becomes(other, lambda: fits(other), True)

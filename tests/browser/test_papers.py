"""From the menu to a study computed on this machine: the recorded picture at once, then ours in its place."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import OpenTab, Server, fits


def test_an_address_restores_a_place_on_a_phone(server: Server, open_tab: OpenTab) -> None:
    page = open_tab(f"{server.url}/papers?papers_paper=IsoBN&papers_isobn=Figure+4", dark=True, width=390)
    expect(page.get_by_role("heading", name="Figure 4 ·")).to_be_visible()
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    assert fits(page)
    page.get_by_role("radio", name="Table 2").or_(page.get_by_role("button", name="Table 2")).first.click()
    expect(page.get_by_role("heading", name="Table 2 ·")).to_be_visible()
    page.wait_for_url("**papers_isobn=Table+2**")

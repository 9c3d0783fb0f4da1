"""From the menu to a study computed on this machine: the recorded picture at once, then ours in its place."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenTab, Server, fits

COMPUTING = 600_000
"""Milliseconds for the study: it takes 25 s of an idle processor, and other tests run at the same time."""


def names(page: Page) -> list[str]:
    """Of the lines that the page's first figure has in its legend."""
    script = "plot => plot.data.filter(t => t.showlegend !== false).map(t => t.name)"
    titles: list[str] = page.locator(".js-plotly-plot").first.evaluate(script)
    return titles


def test_a_quick_study_to_its_finished_picture(server: Server, open_tab: OpenTab) -> None:
    page = open_tab(server.url)
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="Papers").click()
    expect(page.get_by_role("heading", name="Which claims hold here?")).to_be_visible()
    page.get_by_role("radio", name="I-STAR").click()
    expect(page.get_by_role("heading", name="Figure 2 ·")).to_be_visible()
    figure = page.locator(".js-plotly-plot")
    expect(figure.locator(".main-svg").first).to_be_visible()  # recorded, before anything is pressed
    expect(page.get_by_text("Recorded 20")).to_be_visible()
    assert "unbiased estimate" in names(page)
    page.get_by_role("button", name="Reproduce (quick)").click()
    expect(page.get_by_role("progressbar").first).to_be_visible()
    expect(page.get_by_role("button", name="Reproduced (quick)")).to_be_visible(timeout=COMPUTING)
    expect(page.get_by_role("radio", name="On this machine, quick")).to_be_checked()
    expect(page.get_by_text("From this machine, 20")).to_be_visible()
    expect(figure.locator(".main-svg").first).to_be_visible()
    assert "unbiased estimate" in names(page)
    page.get_by_role("radio", name="Recorded, full").click()
    expect(page.get_by_text("Recorded 20")).to_be_visible()


def test_an_address_restores_a_place_on_a_phone(server: Server, open_tab: OpenTab) -> None:
    page = open_tab(f"{server.url}/papers?papers_paper=IsoBN&papers_isobn=Figure+4", dark=True, width=390)
    expect(page.get_by_role("heading", name="Figure 4 ·")).to_be_visible()
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    assert fits(page)
    page.get_by_role("radio", name="Table 2").or_(page.get_by_role("button", name="Table 2")).first.click()
    expect(page.get_by_role("heading", name="Table 2 ·")).to_be_visible()
    page.wait_for_url("**papers_isobn=Table+2**")


MISMATCHES = """
() => {
  const claims = {"Figure 6 ·": "early layers most", "Figure 7 ·": "strictly between 0 and 1"};
  window.mismatches = [];
  new MutationObserver(() => {
    const heading = document.querySelector("h3")?.innerText ?? "";
    const text = document.querySelector("[data-testid=stMain]").innerText;
    for (const [place, claim] of Object.entries(claims))
      if (!heading.startsWith(place) && heading.startsWith("Figure") && text.includes(claim)) window.mismatches.push(heading);
  }).observe(document.body, {childList: true, subtree: true, characterData: true});
}
"""
"""Notes every moment at which a claim stands under another figure's heading."""


def test_a_verdict_never_stands_under_another_heading(with_examples: Server, open_tab: OpenTab) -> None:
    page = open_tab(f"{with_examples.url}/papers?papers_paper=I-STAR&papers_istar=Figure+6")
    expect(page.get_by_text("early layers most")).to_be_visible()
    page.evaluate(MISMATCHES)
    for place, claim in (("Figure 7", "strictly between 0 and 1"), ("Figure 6", "early layers most")):
        page.get_by_role("radio", name=place).or_(page.get_by_role("button", name=place)).first.click()
        expect(page.get_by_role("heading", name=f"{place} ·")).to_be_visible()
        expect(page.get_by_text(claim)).to_be_visible()
    assert page.evaluate("window.mismatches") == []

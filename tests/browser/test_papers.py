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

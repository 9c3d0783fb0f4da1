"""Trade-offs in a browser: a press on a mark opens its run."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.conftest import Server, becomes
from tests.dashboard.made_up import config, finish


def test_a_click_on_a_mark_opens_its_run(server: Server, open_tab: Callable[..., Page]) -> None:
    for lam, star in ((-1, 0.125), (1, 0.5)):
        finish(server.store, config("istar", 0, {"lam": lam}), 0.75, star, group="pressed")
    page = open_tab(f"{server.url}/tradeoffs?tradeoffs_group=pressed")
    mark = page.locator(".st-key-tradeoffs_tradeoff .js-plotly-plot .point").last
    expect(mark).to_be_visible()
    box = mark.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_function("() => location.pathname.endsWith('/run') && location.search.startsWith('?id=')")
    expect(page.get_by_role("heading", level=1)).to_contain_text("istar on demo/acceptability")


OVERLAP = """() => {
  const plot = document.querySelector(".st-key-tradeoffs_tradeoff .js-plotly-plot");
  const [buttons, legend] = [".modebar", ".legend"].map((name) => plot.querySelector(name)?.getBoundingClientRect());
  return buttons && legend && buttons.height > 0 ? buttons.bottom > legend.top : null;
}"""


def test_on_a_phone_the_buttons_do_not_cover_the_legend(server: Server, open_tab: Callable[..., Page]) -> None:
    for method, star in (("baseline", 0.125), ("istar", 0.5)):
        finish(server.store, config(method), 0.75, star, group="phone")
    page = open_tab(f"{server.url}/tradeoffs?tradeoffs_group=phone", width=390)
    expect(page.locator(".st-key-tradeoffs_tradeoff .legend")).to_be_visible()
    becomes(page, lambda: page.evaluate(OVERLAP), False)

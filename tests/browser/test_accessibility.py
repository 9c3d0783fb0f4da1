"""axe-core on all pages and the lessons file, in both themes: no serious or critical finding, and headings in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from dashboard.export import standalone
from tests.browser.conftest import PATIENCE, OpenTab, Server
from tests.browser.test_looks import SHIFTS, check_figures
from tests.docs.site import built

IN_THEME = (
    "(dark) => (getComputedStyle(document.querySelector('.stApp')).backgroundColor === 'rgb(15, 21, 28)') === dark"
)
BUSY = ":visible[aria-busy=true]"
"""Numbers that are not there yet are faint."""
SETTLED = """() => {
  const transitions = document.getAnimations().filter((one) => one instanceof CSSTransition);
  const late = new Promise((end) => setTimeout(end, 5000)); // one of an element that is not drawn never ends
  return Promise.race([Promise.allSettled(transitions.map((one) => one.finished)), late]).then(() => true);
}"""


@pytest.fixture
def visit(chromium: Browser) -> Iterator[Callable[[str], Page]]:
    """`visit(url)`: the tab, which goes from page to page."""
    page = chromium.new_page(color_scheme="light", reduced_motion="reduce", bypass_csp=True)
    page.set_default_timeout(PATIENCE)

    def opened(url: str) -> Page:
        page.goto("about:blank")
        page.goto(url)
        return page

    yield opened
    page.close()


def violations(page: Page) -> list[str]:
    """Each finding with the elements it is about; Streamlit's own seconds beside a spinner are pale."""
    answer = Axe().run(page, {"exclude": [["[data-testid=stSpinner]"]]}, options={"resultTypes": ["violations"]})
    grave = [
        violation
        for violation in answer.response["violations"]
        if violation["impact"] in ("serious", "critical") or violation["id"] == "heading-order"
    ]
    return [f"{violation['id']}: {node['html'][:200]}" for violation in grave for node in violation["nodes"]]


THEMES = ("dark", "light")


def violations_of_app(page: Page, themes: Sequence[str] = THEMES) -> list[str]:
    """Of a page of the app, which follows the system's theme while it is open."""
    found = []
    for theme in themes:
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        page.wait_for_function(IN_THEME, arg=theme == "dark")
        page.evaluate(SETTLED)
        found += [f"{theme}: {violation}" for violation in violations(page)]
    return found


def in_both_schemes(page: Page) -> list[str]:
    """Findings of a file, which follows the system's theme."""
    found = []
    for theme in ("dark", "light"):
        page.emulate_media(color_scheme=theme)
        found += [f"{theme}: {violation}" for violation in violations(page)]
    return found


@pytest.mark.nightly
def test_the_one_page(visit: Callable[[str], Page], tmp_path: Path) -> None:
    file = tmp_path / "lessons.html"
    file.write_text(standalone.render(), encoding="utf-8")
    page = visit(f"{file.as_uri()}#playground")
    expect(page.locator("#part-playground .ivp-numbers")).to_be_visible()
    expect(page.locator(BUSY)).to_have_count(0)
    assert in_both_schemes(page) == []
    page = visit(f"{file.as_uri()}#vectors")
    np.save(tmp_path / "own.npy", np.random.default_rng(0).normal(size=(60, 8)))
    page.get_by_text("Or type sentences").click()
    page.get_by_label("Your texts, one per line").fill("A cat sleeps.\nA dog barks.\nShares fell.")
    page.get_by_role("button", name="Encode the texts").click()
    expect(page.get_by_label("A sentence")).to_be_visible()
    expect(page.locator(BUSY)).to_have_count(0)
    assert in_both_schemes(page) == []
    page.set_input_files(".ivv-file", tmp_path / "own.npy")
    page.get_by_label("Add a transform").select_option("zca")
    page.get_by_role("button", name="Compute the frontier").click()
    expect(page.locator(".ivv-pareto")).to_be_visible()
    expect(page.locator(BUSY)).to_have_count(0)
    assert in_both_schemes(page) == []
    for place, seen in (("step=2", ".ivl-form"), ("step=4", ".ivl-sentence")):
        page = visit(f"{file.as_uri()}#lesson=rotation&{place}")
        expect(page.locator(seen)).to_be_visible()
        expect(page.locator(BUSY)).to_have_count(0)
        assert in_both_schemes(page) == []


@pytest.mark.nightly
def test_the_documentation(visit: Callable[[str], Page]) -> None:
    folder = built()
    for name in ("index.html", "metrics/index.html", "gallery/explore.html"):
        page = visit((folder / name).as_uri())
        expect(page.locator("h1")).to_be_visible()
        assert in_both_schemes(page) == []


def test_the_pages(with_examples: Server, open_tab: OpenTab) -> None:
    """And in a figure nothing covers another thing, and little moves while a page comes up."""
    failed: list[str] = []
    page = open_tab("about:blank", width=1440)
    page.add_init_script(SHIFTS)
    # below a page's address, Streamlit first looks for itself there
    refused = lambda response: response.status >= 400 and "/_stcore/" not in response.url  # noqa: E731
    page.on("response", lambda response: failed.append(response.url) if refused(response) else None)
    pages = (
        ("", ".ivp-canvas"),
        ("methods", "[data-testid=stDataFrame]"),
        ("methods?methods_methods=I-STAR", ".katex"),
        ("explore", ".ivz-map-plot .main-svg"),
        ("whatif", ".st-key-whatif_map_after .main-svg"),
        ("ruler", ".ivz-figure-frame .main-svg"),
        ("compare", "[data-testid=stDataFrame]"),
        ("train", "[data-testid=stMultiSelect]"),
        ("live", "[data-figure=isotropy] .main-svg"),
        ("results", ".ivz-figure-frame .main-svg"),
        ("tradeoffs", ".ivz-figure-frame .main-svg"),
        ("papers?study=istar-figure-3", ".ivz-figure-frame .main-svg"),
        ("lessons#lesson=rotation&step=3", ".ivl-form"),
    )
    titles = set[str]()
    for number, (path, seen) in enumerate(pages):
        page.emulate_media(reduced_motion="no-preference")
        page.goto("about:blank")
        page.goto(f"{with_examples.url}/{path}")
        expect(page.locator(seen).first).to_be_visible()
        expect(page.get_by_test_id("stSidebarNav").get_by_role("listitem")).to_have_count(11)
        expect(page.get_by_test_id("stStatusWidget")).to_have_count(0)
        assert path not in ("explore", "whatif") or page.evaluate("window.shift") <= 0.1
        page.wait_for_load_state("networkidle")
        titles.add(page.title())
        themes = THEMES if path in ("explore", "train", "live") else THEMES[number % 2 :][:1]  # others by turns
        assert (violations_of_app(page, themes), failed) == ([], []), path
        if "main-svg" in seen:
            check_figures(page, path)
    assert len(titles) == len(pages) - 1 and all(title.endswith(" · IsoViz") for title in titles)  # one page twice
    page.get_by_text("Join or open a class").click()
    page.get_by_role("button", name="Open a class").click()
    page.get_by_role("button", name="Show the guesses at question 1").click()
    assert violations_of_app(page) == []
    page.evaluate("localStorage.clear()")


def test_the_menu_shows_where_the_focus_is(visit: Callable[[str], Page], with_examples: Server) -> None:
    page = visit(f"{with_examples.url}/playground")
    link = page.get_by_test_id("stSidebarNav").get_by_role("link", name="Lessons")
    expect(link).to_be_visible()
    link.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    expect(link).to_be_focused()
    expect(link).to_have_css("outline-style", "solid")
    expect(link).to_have_css("outline-width", "2px")


CONTROLS = """[...document.querySelectorAll(".st-key-explore_grid :is(button, a[href], input, select, [role=slider])")].filter(
  (one) => one.checkVisibility() && !one.disabled && one.tabIndex >= 0)"""


def test_the_keyboard_alone_reaches_every_control_of_the_grid(
    visit: Callable[[str], Page], with_examples: Server
) -> None:
    page = visit(f"{with_examples.url}/explore")
    expect(page.locator(".ivz-map-plot .main-svg").first).to_be_visible()
    expect(page.get_by_test_id("stStatusWidget")).to_have_count(0)
    count = page.evaluate(f"({CONTROLS}).map((one, number) => (one.dataset.control = number)).length")
    page.evaluate(f"({CONTROLS})[0].focus()")
    reached = set()
    for _ in range(4 * count):
        reached.add(page.evaluate("document.activeElement.dataset.control"))
        page.keyboard.press("Tab")
    assert count > 8 and reached >= {str(number) for number in range(count)}

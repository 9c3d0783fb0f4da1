"""axe-core on the teaching pages and the lessons file, in both themes: no serious and no critical finding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from dashboard import lessons_file
from tests.browser.conftest import PATIENCE, Server

STREAMLITS_MENU = "[data-testid='stSidebarNav']"
"""Its list has groups for children, which is Streamlit's markup and not ours to change."""


@pytest.fixture(params=["light", "dark"])
def visit(request: pytest.FixtureRequest, chromium: Browser) -> Iterator[Callable[[str], Page]]:
    """`visit(url)`: the tab, which goes from page to page."""
    page = chromium.new_page(color_scheme=request.param, reduced_motion="reduce", bypass_csp=True)
    page.set_default_timeout(PATIENCE)

    def opened(url: str) -> Page:
        page.goto("about:blank")
        page.goto(url)
        return page

    yield opened
    page.close()


def violations(page: Page) -> list[str]:
    """Each finding with the elements it is about."""
    answer = Axe().run(page, context={"exclude": [[STREAMLITS_MENU]]}, options={"resultTypes": ["violations"]})
    grave = [violation for violation in answer.response["violations"] if violation["impact"] in ("serious", "critical")]
    return [f"{violation['id']}: {node['html'][:200]}" for violation in grave for node in violation["nodes"]]


def test_the_lessons_file(visit: Callable[[str], Page], tmp_path: Path) -> None:
    file = tmp_path / "lessons.html"
    file.write_text(lessons_file.render(), encoding="utf-8")
    page = visit(file.as_uri())
    expect(page.locator("#part-playground .ivp-numbers")).to_be_visible()
    assert violations(page) == []
    for place, seen in (("step=2", ".ivl-form"), ("step=4", ".ivl-sentence")):
        page = visit(f"{file.as_uri()}#lesson=rotation&{place}")
        expect(page.locator(seen)).to_be_visible()
        assert violations(page) == []


def test_the_pages(visit: Callable[[str], Page], server: Server) -> None:
    for path, seen in (
        ("", ".ivp-canvas"),
        ("playground", ".ivp-canvas"),
        ("methods", "[data-testid=stDataFrame]"),
        ("methods?methods_methods=IsoBN", ".ivp-canvas"),
        ("methods?methods_methods=I-STAR", ".ivp-descent"),
        ("lessons#lesson=rotation&step=3", ".ivl-form"),
    ):
        page = visit(f"{server.url}/{path}")
        expect(page.locator(seen).first).to_be_visible()
        page.wait_for_load_state("networkidle")
        assert violations(page) == [], path
    page.get_by_text("Join or open a class").click()
    page.get_by_role("button", name="Open a class").click()
    page.get_by_role("button", name="Show the guesses at question 1").click()
    assert violations(page) == []
    page.evaluate("localStorage.clear()")

"""The playground as people use it: one file from disk with no network, and the page of the app."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from dashboard.components.playground.source import MEASURES
from dashboard.export import standalone
from dashboard.home import sections as home
from isoviz import metrics
from isoviz.lessons import responses
from tests.browser.conftest import OpenTab, Server, becomes, fits

DIGEST = """async () => {
  const { points } = await globalThis.playground.cloud();
  const hash = await crypto.subtle.digest("SHA-256", points.buffer);
  return Array.from(new Uint8Array(hash)).join(" ");
}"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the file on disk."""
    path: Path = tmp_path_factory.mktemp("file") / "lessons.html"
    path.write_text(standalone.render(), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def opened(open_tab: OpenTab) -> OpenTab:
    """`opened(address)`: a tab without a network."""

    def opened(address: str, **options: Any) -> Page:
        page = open_tab(address, offline=True, **options)
        settled(page)
        return page

    return opened


def settled(page: Page) -> None:
    expect(page.locator("[aria-busy]")).to_have_count(0)


def number(page: Page, name: str, which: str = "value") -> float:
    numbers: dict[str, Any] = page.evaluate(
        "(which) => globalThis.playground.numbers(which)", "after" if which == "after" else "before"
    )
    return float(numbers[name]["true" if which == "true" else "value"])


def drag(page: Page, field: Locator, share: float) -> None:
    """The slider's thumb to that share of its way, by the mouse."""
    box = field.bounding_box()
    assert box is not None
    start = float(field.input_value())
    middle = box["y"] + box["height"] / 2
    place = lambda at: box["x"] + 9 + at * (box["width"] - 18)  # noqa: E731 (the thumb's own width)
    page.mouse.move(place(start), middle)
    page.mouse.down()
    page.mouse.move(place(share), middle, steps=8)
    page.mouse.up()


def test_a_dragged_mean_moves_the_cosine_and_not_the_score(opened: OpenTab, file: str) -> None:
    page = opened(f"{file}#playground")
    score = number(page, "isoscore")
    assert abs(number(page, "mean_cosine")) < 0.01
    drag(page, page.get_by_label("Mean shift"), 0.4)
    settled(page)
    assert number(page, "isoscore") == pytest.approx(score, rel=1e-9)
    assert number(page, "mean_cosine") == pytest.approx(number(page, "mean_cosine", "true"), abs=0.02)
    assert number(page, "mean_cosine") > 0.6
    shown = page.locator("tr[data-measure=mean_cosine] td").first
    assert float(shown.inner_text()) == pytest.approx(number(page, "mean_cosine"), abs=0.0006)
    # too few points: the plug-in score falls, the unbiased one stays, here and in the redraws
    page.evaluate("globalThis.playground.set({ n: 40 })")
    settled(page)
    assert number(page, "isoscore") < 0.45 and number(page, "isoscore_unbiased") == pytest.approx(1, abs=0.15)
    becomes(page, lambda: page.evaluate("globalThis.playground.redraws().plug.length"), 200)
    plug, unbiased = page.evaluate(
        "['plug', 'unbiased'].map((name) => globalThis.playground.redraws()[name].reduce((a, b) => a + b) / 200)"
    )
    assert plug < 0.45 and unbiased == pytest.approx(1, abs=0.02)


def test_a_link_restores_the_cloud_to_the_bit(opened: OpenTab, file: str) -> None:
    state = {
        "d": 30,
        "n": 120,
        "seed": 77,
        "spectrum": "power",
        "decay": 0.3 + 1e-16,
        "shift": 0.1 + 0.2,
        "rogueScale": 3.3,
        "block": 4,
        "rotation": 0.37,
        "tails": 5,
        "clusters": 3,
        "duplicates": 0.1,
        "scale": 1 / 3,
        "view": "principal",
        "transforms": [{"slug": "zca", "strength": 0.35, "eps": 0}, {"slug": "isobn", "beta": 1.25}],
    }
    page = opened(f"{file}#playground")
    first = page.evaluate(DIGEST)
    page.evaluate("(state) => globalThis.playground.set(state)", state)
    becomes(page, lambda: "zca:strength=0.35~isobn:beta=1.25" in page.url, True)
    again = opened(page.url)
    assert again.evaluate("globalThis.playground.state()") == page.evaluate("globalThis.playground.state()")
    assert again.evaluate(DIGEST) == page.evaluate(DIGEST) != first
    # another link in the same tab
    page.evaluate("location.hash = 'd=5&n=50'")
    becomes(page, lambda: page.evaluate("globalThis.playground.state().d"), 5)
    broken = opened(f"{file}#d=-3&n=few&%E0%A4%A&spectrum=steep&transforms=~pca:strength=2~zca:strength=9")
    restored = broken.evaluate("globalThis.playground.state()")
    assert (restored["d"], restored["n"], restored["spectrum"]) == (2, 1000, "flat")
    assert restored["transforms"] == [{"slug": "zca", "strength": 1, "eps": 0}]


def test_transforms_show_before_and_after_and_can_be_removed(opened: OpenTab, file: str) -> None:
    page = opened(f"{file}#d=24&n=300&rogueScale=6&shift=1")
    add = page.get_by_label("Add a transform")
    add.select_option(label="ZCA whitening")
    expect(page.get_by_role("img", name="After the transforms")).to_be_visible()
    settled(page)
    half = number(page, "isoscore", "after")
    assert number(page, "isoscore") < half < 1
    drag(page, page.get_by_label("Strength"), 1)
    settled(page)
    assert number(page, "isoscore", "after") == pytest.approx(1, abs=1e-9)
    assert "eigenvectors are not unique" in (
        page.locator("tr[data-measure=i1] .ivp-after").get_attribute("title") or ""
    )
    add.select_option(label="Batch normalisation")
    expect(page.locator(".ivp-step")).to_have_count(2)
    page.get_by_role("button", name="Remove ZCA whitening").click()
    page.get_by_role("button", name="Remove Batch normalisation").click()
    expect(page.get_by_role("img", name="After the transforms")).to_be_hidden()


def test_the_page_of_the_app(server: Server, open_tab: OpenTab) -> None:
    page = open_tab(f"{server.url}/playground#d=20&n=150&shift=1.5", dark=True)
    expect(page.get_by_label("Mean shift")).to_be_visible()
    settled(page)
    expect(page.locator("tr[data-measure=participation_ratio] td").nth(1)).to_have_text("20.0")
    cosine = page.locator("tr[data-measure=mean_cosine] td").first
    before = float(cosine.inner_text())
    page.get_by_label("Mean shift").focus()
    page.keyboard.press("Home")
    becomes(page, lambda: page.url.endswith("#d=20&n=150"), True)
    settled(page)
    assert abs(float(cosine.inner_text().replace("−", "-"))) < 0.05 < before
    assert fits(page)
    colour = page.evaluate("getComputedStyle(document.querySelector('.stApp')).color")
    assert sum(float(part) for part in re.findall(r"[\d.]+", colour)[:3]) > 380  # light words


def test_a_cell_of_the_table_makes_its_change_and_marks_its_measure(opened: OpenTab, file: str) -> None:
    page = opened(f"{file}#playground")
    cell = page.get_by_role("link", name="Reciprocity, Unit length")
    cell.focus()
    cell.press("Enter")
    expect(page.get_by_role("img", name="After the transforms")).to_be_visible()
    settled(page)
    state = page.evaluate("globalThis.playground.state()")
    assert (state["d"], state["n"], state["transforms"]) == (16, 500, [{"slug": "unit_norm"}])
    marked = page.locator(".ivp-marked")
    expect(marked).to_have_attribute("data-measure", "reciprocity")
    expect(marked).to_be_in_viewport()
    shown = [text.inner_text() for text in marked.locator("td:visible").all()]
    expected = responses.table()["reciprocity"]["unit"]  # of other draws
    assert [float(text) for text in shown] == pytest.approx([expected.before, expected.after], abs=0.03)
    page.get_by_role("link", name="Clusters", exact=True).click()
    becomes(page, lambda: page.evaluate("globalThis.playground.state().separation"), 8)
    expect(marked).to_have_count(0)
    page.get_by_role("button", name="Lessons", exact=True).click()
    expect(cell).to_be_hidden()


def test_home_asks_one_question_about_three_measures(server: Server, open_tab: OpenTab) -> None:
    page = open_tab(f"{server.url}/")
    rows = page.locator("tr[data-measure]:visible")
    expect(rows).to_have_count(3)
    expect(page.locator(".ivp-group:visible")).to_have_count(2)
    comparison = page.locator(".ivp-comparison")
    expect(comparison).to_be_visible()
    assert comparison.inner_text() == metrics.get("isoscore").comparison

    question = page.get_by_text(home.QUESTION.replace("*", ""))
    expect(question).to_be_visible()
    cell = {name: page.locator(f"tr[data-measure={name}] td").first for name in home.FIRST}
    settled(page)
    before = {name: cell[name].inner_text() for name in home.FIRST}
    slider = page.get_by_label("Mean shift")
    slider.focus()
    slider.press("End")
    becomes(page, lambda: cell["mean_cosine"].inner_text() != before["mean_cosine"], True)
    settled(page)
    changed = [name for name in home.FIRST if cell[name].inner_text() != before[name]]
    assert changed == ["mean_cosine"]  # as the answer says

    page.get_by_role("button", name=f"Show all {len(MEASURES)} measures").click()
    expect(rows).to_have_count(len(MEASURES))
    page.get_by_role("button", name="Show fewer measures").click()
    expect(rows).to_have_count(3)

    page.goto("about:blank")
    page.goto(f"{server.url}/#d=30")
    page.get_by_role("button", name=f"Show all {len(MEASURES)} measures").click()
    row = page.locator("tr[data-measure=participation_ratio] td").nth(1)
    expect(row).to_have_text("30.0")
    page.get_by_role("button", name="Reset").click()
    expect(row).to_have_text("16.0")  # Home's own cloud, not the Playground's 64 dimensions

"""Every lesson, step by step in the file of `isoviz lessons --out`: its claims hold on the shown numbers, and
`isoviz.metrics` finds the same numbers on the same points."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from dashboard.export import standalone
from isoviz import lessons
from isoviz.lessons import checking
from isoviz.lessons.expressions import holds, parse_claim
from isoviz.lessons.reading import NumberGuess, Step
from isoviz.lessons.state import State
from tests import nightly
from tests.browser.conftest import OpenTab

SLUGS = [lesson.slug for lesson in lessons.catalogue()]
POINTS = """async () => {
  const text = (numbers) => {
    const bytes = new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
    let whole = "";
    for (let at = 0; at < bytes.length; at += 32768) whole += String.fromCharCode(...bytes.subarray(at, at + 32768));
    return btoa(whole);
  };
  const { playground } = globalThis.lessons;
  const after = playground.state().transforms.length > 0;
  const { points, known } = await playground.cloud({ after });
  return { points: text(points), known: text((await playground.cloud()).known) };
}"""

SLOW_WORKER = """
globalThis.Worker = class extends Worker {
  set onmessage(handler) {
    let next = 0;
    super.onmessage = (event) => {
      next = Math.max(next, performance.now()) + 50;
      setTimeout(() => handler(event), next - performance.now());
    };
  }
};
"""
"""Delivers the messages of a web worker in order, at least 50 ms apart."""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lessons") / "lessons.html"
    path.write_text(standalone.render(), encoding="utf-8")
    return path


@pytest.fixture
def tab(open_tab: OpenTab) -> Page:
    """A tab without a network."""
    return open_tab("about:blank", offline=True, reduced_motion="reduce")


def guess(page: Page, step: Step) -> None:
    send = page.get_by_role("button", name="Show the answer")
    expect(send).to_be_disabled()
    if isinstance(step.guess, NumberGuess):
        middle = (step.guess.low + step.guess.high) / 2
        slider = page.locator(".ivl-form input[type=range]")
        slider.focus()
        slider.press("ArrowRight")
        slider.evaluate(f"(field) => {{ field.value = {middle}; field.dispatchEvent(new Event('input')); }}")
    else:
        page.get_by_role("radio").first.check()
    send.click()


def shown(page: Page) -> dict[str, float]:
    """The numbers on screen, unrounded."""
    cells: dict[str, str] = page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('.ivl-numbers dd')].map((c) => [c.dataset.number, c.dataset.value]))"
    )
    return {name: float(value) for name, value in cells.items()}


def measured(page: Page, state: State) -> dict[str, float]:
    """The numbers of the very points that the browser has, by `isoviz.metrics`."""
    clouds: dict[str, Any] = page.evaluate(POINTS)
    points, known = (np.frombuffer(base64.b64decode(clouds[name])) for name in ("points", "known"))
    d = state.d
    cloud = points.reshape(-1, d)
    return checking.measured(cloud, known.reshape(d, d), state)


def walk(page: Page, slug: str, check: Callable[[int], None]) -> None:
    """Answer every question of a lesson, up to its closing sentence; `check(k)` after step k."""
    lesson = next(lesson for lesson in lessons.catalogue() if lesson.slug == slug)
    for k, step in enumerate(lesson.steps, start=1):
        expect(page.get_by_role("heading", name=f"Question {k} of {len(lesson.steps)}")).to_be_visible()
        guess(page, step)
        verdict = expect(page.locator(".ivl-verdict"))
        if isinstance(step.guess, NumberGuess):
            verdict.to_contain_text("off by")
        else:
            verdict.to_contain_text(re.compile("Right|The answer is"))
        check(k)
        page.locator(".ivl-body > button.ivl-main").click()
    expect(page.locator(".ivl-sentence")).to_be_visible()


@pytest.mark.parametrize("slug", nightly.cases(SLUGS, always=("few-points", "rotation")))
def test_a_lesson_in_a_cold_browser_from_its_first_guess_to_its_sentence(tab: Page, file: Path, slug: str) -> None:
    """In the first lesson the worker sends its numbers far apart, as in a browser without compiled code."""
    lesson = next(lesson for lesson in lessons.catalogue() if lesson.slug == slug)
    states = lesson.states()
    if slug == SLUGS[0]:
        tab.add_init_script(SLOW_WORKER)
    tab.goto(f"{file.as_uri()}#lesson={slug}&step=1")
    expect(tab.locator(".ivl-form")).to_be_visible()
    at: list[dict[str, float]] = []
    on_screen: list[dict[str, float]] = []
    words: list[str] = []

    def check(k: int) -> None:
        at.append(measured(tab, states[k]))
        on_screen.append(shown(tab))
        words.append(tab.locator(".ivl-body").inner_text())

    check(0)
    walk(tab, slug, check)
    words.append(tab.locator(".ivl-body").inner_text())
    assert not [text for text in words if "undefined" in text]
    for computed, displayed in zip(at, on_screen, strict=True):
        assert set(displayed) == set(lesson.show)
        for name, value in displayed.items():
            assert value == pytest.approx(computed[name], rel=1e-9, abs=1e-12), name
    truth = [tab.evaluate("(k) => globalThis.lessons.at[k]", k) for k in range(len(states))]

    def value_at(name: str, step: int) -> float:
        return float(truth[step][name]) if name.startswith("true.") else at[step][name]

    marks = [item.get_attribute("data-holds") for item in tab.locator(".ivl-claims li").all()]
    assert marks == ["true"] * len(lesson.claims)
    assert all(holds(parse_claim(claim.holds), value_at) for claim in lesson.claims)
    for control in lesson.controls:
        if control != "transforms":
            assert tab.locator(f"[data-control={control}]").count() == 1


def test_the_browsers_table_of_controls_is_the_engines(tab: Page, file: Path) -> None:
    tab.goto(f"{file.as_uri()}#lesson={SLUGS[0]}")
    expect(tab.locator(".ivl-form")).to_be_visible()
    defaults = tab.evaluate("globalThis.lessons.kinds.DEFAULTS")
    bounds = tab.evaluate("globalThis.lessons.kinds.BOUNDS")
    assert defaults == State().model_dump(mode="json")
    for name, (low, high) in bounds.items():
        field = State.model_fields[name]
        limits = {key: getattr(item, key) for item in field.metadata for key in ("ge", "le") if hasattr(item, key)}
        assert (limits["ge"], limits["le"]) == (low, high), name
    cases = [(2 * x, clusters) for x in (0, 0.5, 1, 2, 4) for clusters in (2, 3, 10)]
    best = tab.evaluate("(cases) => cases.map((case_) => globalThis.lessons.kinds.bestAccuracy(...case_))", cases)
    assert best == pytest.approx([checking.best_accuracy(*case) for case in cases], abs=1e-12)


def test_a_link_opens_a_lesson_in_the_middle_and_only_its_last_question_ends_it(tab: Page, file: Path) -> None:
    tab.goto(f"{file.as_uri()}#lesson=rotation&step=4")
    expect(tab.locator(".ivl-sentence")).to_be_visible()
    expect(tab.locator(".ivl-done")).to_have_count(0)
    tab.goto("about:blank")
    tab.goto(f"{file.as_uri()}#lesson=rotation&step=3&hidden=rogueScale")
    expect(tab.get_by_role("heading", name="Question 3 of 3")).to_be_visible()
    guess(tab, lessons.catalogue()[3].steps[2])
    tab.get_by_role("button", name="What can you defend now?").click()
    expect(tab.locator(".ivl-done")).to_have_count(1)
    expect(tab.locator(".ivl-claims li")).to_have_count(3)
    assert "step=4" in tab.url and "hidden=rogueScale" in tab.url
    expect(tab.locator("[data-control=rotation]")).to_be_visible()
    expect(tab.locator("[data-control=rogueScale]")).to_be_hidden()


def test_the_handout_has_questions_and_no_answers(tab: Page, file: Path) -> None:
    tab.goto(f"{file.as_uri()}#lesson=scale&step=2")
    expect(tab.locator(".ivl-form")).to_be_visible()
    tab.evaluate("globalThis.print = () => {}")
    tab.get_by_role("button", name="Print handout").click()
    expect(tab.locator(".ivl-handout img")).to_be_attached()
    tab.emulate_media(media="print")
    handout = tab.locator(".ivl-handout")
    expect(handout).to_be_visible()
    expect(tab.get_by_role("heading", name="Change the units")).to_be_visible()
    expect(tab.locator(".ivl-lesson")).to_be_hidden()
    text = handout.inner_text()
    assert "Your guess: ____" in text and "{" not in text and "0.4" not in text
    lesson = next(lesson for lesson in lessons.catalogue() if lesson.slug == "scale")
    endings = (lesson.sentence, *(claim.says for claim in lesson.claims))
    assert not [ending for ending in endings if ending.split("{")[0] in text], "the last question's answer"
    picture = handout.get_by_role("img")
    painted = "(image) => image.naturalWidth > 300 && image.src.length"
    assert picture.evaluate(painted) > 10_000  # a blank canvas of this size takes 3,000 characters


def test_the_file_opens_on_the_lessons_and_on_a_linked_cloud(tab: Page, file: Path) -> None:
    tab.goto(file.as_uri())
    expect(tab.get_by_role("heading", name=lessons.catalogue()[0].title)).to_be_visible()
    tab.goto(f"{file.as_uri()}#d=32")
    assert tab.evaluate("globalThis.playground.state().d") == 32

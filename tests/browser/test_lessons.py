"""Every lesson, step by step in the file of `isoviz lessons --out`, and once on the page: its claims hold on the shown numbers, and
`isoviz.metrics` finds the same numbers on the same points."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from dashboard.export import standalone
from isoviz import lessons
from isoviz.lessons import checking
from isoviz.lessons.expressions import holds, parse_claim
from isoviz.lessons.reading import NumberGuess, Step
from isoviz.lessons.state import State
from tests.browser.conftest import OpenTab, Server, fits

SLUGS = [lesson.slug for lesson in lessons.catalogue()]
ON_A_PHONE = ("clusters", "rotation")
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


@pytest.mark.parametrize("slug", SLUGS)
def test_a_lesson_in_a_cold_browser_from_its_first_guess_to_its_sentence(tab: Page, file: Path, slug: str) -> None:
    """The worker of a browser without compiled code sends its numbers far apart."""
    lesson = next(lesson for lesson in lessons.catalogue() if lesson.slug == slug)
    states = lesson.states()
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


def test_the_middle_of_the_slider_is_a_guess(tab: Page, file: Path) -> None:
    tab.goto(f"{file.as_uri()}#lesson=mean-shift&step=1")
    slider = tab.locator(".ivl-form input[type=range]")
    box = slider.bounding_box()
    assert box is not None and slider.input_value() == "0.5"
    tab.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert slider.input_value() == "0.5"
    expect(tab.locator(".ivl-guess output")).to_have_text("0.50")
    tab.get_by_role("button", name="Show the answer").click()
    expect(tab.locator(".ivl-verdict")).to_contain_text("You guessed 0.50.")


def test_the_file_opens_on_the_lessons_and_on_a_linked_cloud(tab: Page, file: Path) -> None:
    tab.goto(file.as_uri())
    expect(tab.get_by_role("heading", name=lessons.catalogue()[0].title)).to_be_visible()
    tab.get_by_role("button", name="Playground").click()
    expect(tab.locator("#part-playground [data-control=shift]")).to_be_visible()
    tab.reload()
    expect(tab.locator("#part-playground [data-control=shift]")).to_be_visible()
    tab.goto(f"{file.as_uri()}#d=32")
    assert tab.evaluate("globalThis.playground.state().d") == 32


def test_the_full_screen_button_says_exit(tab: Page, file: Path) -> None:
    tab.goto(f"{file.as_uri()}#lesson=scale&step=1")
    leave = tab.get_by_role("button", name="Exit full screen")
    tab.get_by_role("button", name="Full screen").click()
    expect(leave).to_be_visible()
    tab.locator(".ivl-list").get_by_role("button", name=lessons.catalogue()[0].title).click()
    expect(tab.get_by_role("heading", name=lessons.catalogue()[0].title)).to_be_visible()
    leave.click()
    expect(tab.get_by_role("button", name="Full screen", exact=True)).to_be_visible()


def drag(page: Page, slider: Locator, share: float) -> None:
    """Put a finger on a slider's thumb, and draw it to this share of the slider's length."""
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    assert box is not None
    low, high, value = (float(slider.evaluate(f"(field) => field.{name}")) for name in ("min", "max", "value"))
    inset = 8  # of the thumb's middle at both ends
    places = [box["x"] + inset + part * (box["width"] - 2 * inset) for part in ((value - low) / (high - low), share)]
    y = box["y"] + box["height"] / 2
    session = page.context.new_cdp_session(page)
    for kind, x in (("touchStart", places[0]), ("touchMove", sum(places) / 2), ("touchMove", places[1])):
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    session.detach()


def test_lessons_by_touch_on_a_phone(open_tab: OpenTab, file: Path) -> None:
    """A guess of each form: the other lessons have no other parts."""
    touch = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    page = open_tab(file.as_uri(), **touch, offline=True, reduced_motion="reduce")
    walked = [lesson for lesson in lessons.catalogue() if lesson.slug in ON_A_PHONE]
    assert {step.guess.kind for lesson in walked for step in lesson.steps} == {"number", "choice"}
    for lesson in walked:
        page.locator(".ivl-list").get_by_role("button", name=lesson.title).tap()
        expect(page.get_by_role("heading", name=lesson.title)).to_be_visible()
        for k, step in enumerate(lesson.steps, start=1):
            expect(page.get_by_role("heading", name=f"Question {k} of {len(lesson.steps)}")).to_be_visible()
            send = page.get_by_role("button", name="Show the answer")
            expect(send).to_be_disabled()
            if isinstance(step.guess, NumberGuess):
                drag(page, page.locator(".ivl-form input[type=range]"), 0.8)
                readout = page.locator(".ivl-guess output").inner_text()
                target = step.guess.low + 0.8 * (step.guess.high - step.guess.low)
                assert float(readout.replace("−", "-")) == pytest.approx(
                    target, abs=0.04 * (step.guess.high - step.guess.low)
                )
            else:
                page.locator(".ivl-option").last.tap()
            send.tap()
            expect(page.locator(".ivl-verdict")).to_be_visible()
            assert fits(page)
            page.locator(".ivl-body > button.ivl-main").tap()
        expect(page.locator(".ivl-claims li[data-holds=true]")).to_have_count(len(lesson.claims))
        slider = page.locator(".ivl-free input[type=range]:visible").first
        before = slider.input_value()
        drag(
            page,
            slider,
            0.1
            if float(slider.evaluate("(field) => (field.value - field.min) / (field.max - field.min)")) > 0.5
            else 0.9,
        )
        assert slider.input_value() != before
        assert fits(page)
    expect(page.locator(".ivl-done")).to_have_count(len(walked))


def test_the_page_runs_a_lesson_without_the_server(server: Server, open_tab: OpenTab) -> None:
    page = open_tab(f"{server.url}/lessons#lesson=clusters&step=1")
    expect(page.locator(".ivl-form")).to_be_visible()
    walk(page, "clusters", lambda k: None)
    expect(page.locator(".ivl-claims li[data-holds=true]")).to_have_count(3)
    assert page.url.endswith("#lesson=clusters&step=5")

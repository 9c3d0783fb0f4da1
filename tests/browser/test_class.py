"""A class on a running server, whose students lose their connection, join by letters on a phone, and follow the teacher."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from dashboard.server.class_routes import qr_code
from isoviz import lessons
from isoviz.operations.access import links
from isoviz.operations.access.visitors import Role
from tests.browser.conftest import OpenTab, Server, becomes
from tests.browser.test_lessons import guess

LESSON = next(lesson for lesson in lessons.catalogue() if lesson.slug == "clusters")
STEPS = len(LESSON.steps)
STILL = {"reduced_motion": "reduce"}


def count(teacher: Page, step: int) -> str | None:
    return teacher.locator(f".ivl-chart[data-step='{step}']").get_attribute("data-count")


def opened_class(server: Server, open_tab: OpenTab) -> tuple[Page, str, str]:
    """The teacher's tab with a class open at `LESSON`, the class's code and its link."""
    teacher = open_tab(links.read(server.store.folder).address(server.url, Role.RUNNER), **STILL)
    teacher.goto(f"{server.url}/lessons#lesson={LESSON.slug}&step=1")
    teacher.get_by_text("Join or open a class").click()
    teacher.get_by_role("button", name="Open a class").click()
    return teacher, teacher.locator(".ivl-code").inner_text(), teacher.locator(".ivl-address").inner_text()


def test_students_are_counted_once(guarded: Server, open_tab: OpenTab) -> None:
    server, kept_links = guarded, links.read(guarded.store.folder)
    teacher, code, address = opened_class(guarded, open_tab)
    assert address == f"{server.url}/lessons?class={code}&token={kept_links.secrets[Role.VIEWER]}"

    pages = [open_tab(link, **STILL) for link in (address, address, kept_links.address(server.url, Role.VIEWER))]
    pages[2].goto(f"{server.url}/lessons")
    pages[2].get_by_text("Join a class", exact=True).click()
    expect(pages[2].get_by_role("button", name="Open a class")).to_have_count(0)  # a viewer opens none
    pages[2].get_by_label("Class code").fill("wrong")
    pages[2].get_by_role("button", name="Join class").click()
    expect(pages[2].get_by_text("No open class has the code WRONG. Check the code.")).to_be_visible()
    pages[2].get_by_label("Class code").fill(code.lower())
    pages[2].get_by_role("button", name="Join class").click()
    for page in pages:
        expect(page.get_by_role("heading", name=LESSON.title)).to_be_visible()
        expect(page.get_by_text(f"Class {code}")).to_be_visible()

    for k, step in enumerate(LESSON.steps, start=1):
        for page in pages:
            expect(page.get_by_role("heading", name=f"Question {k} of {STEPS}")).to_be_visible()
        cut_off = {2: pages[0], 3: pages[1]}.get(k)  # guesses without a connection
        if cut_off is not None:
            cut_off.context.set_offline(True)
        for page in pages:
            guess(page, step)
            page.locator(".ivl-body > button.ivl-main").wait_for()
        if cut_off is not None:
            expect(cut_off.get_by_text("1 guess not sent yet")).to_be_visible()
            cut_off.context.set_offline(False)
            if k == 3:  # reloaded before it is sent, and asked again, which counts no second time
                cut_off.reload()
                guess(cut_off, step)
            expect(cut_off.get_by_text(f"{k} guesses sent")).to_be_visible()
        for page in pages:
            page.locator(".ivl-body > button.ivl-main").click()
    expect(teacher.get_by_text("3 students")).to_be_visible()
    for k in range(1, STEPS + 1):
        becomes(teacher, lambda k=k: count(teacher, k), "3")

    teacher.get_by_role("button", name="Show the guesses at question 1").click()
    expect(teacher.locator(".ivl-chart .ivl-bars i").first).to_be_attached()
    expect(teacher.locator(".ivl-chart")).to_have_count(STEPS)
    teacher.get_by_role("button", name="Show the answer").click()
    expect(teacher.locator(".ivl-chart[data-step='1']")).to_contain_text("answer")
    teacher.reload()
    expect(teacher.get_by_text("3 students")).to_be_visible()

    teacher.on("dialog", lambda dialog: dialog.accept())
    teacher.get_by_role("button", name="Close class").click()
    expect(teacher.get_by_text("The class is closed and its guesses are deleted.")).to_be_visible()
    pages[1].reload()
    expect(pages[1].get_by_text("This class has ended.")).to_be_visible()
    expect(pages[1].locator(".ivl-form, .ivl-sentence").first).to_be_visible()


@pytest.mark.nightly
def test_a_phone_joins_by_letters_and_follows_the_teacher(guarded: Server, open_tab: OpenTab) -> None:
    teacher, code, address = opened_class(guarded, open_tab)
    assert teacher.get_by_alt_text("QR code of the link").get_attribute("src") == qr_code(address)

    phone = open_tab(guarded.url, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True, **STILL)
    phone.get_by_label("In a class?").fill("AAAAA")
    phone.get_by_role("button", name="Join class").tap()
    expect(phone.get_by_role("alert")).to_have_text("No open class has the code AAAAA. Check the code.")
    phone.get_by_label("In a class?").fill(code.lower())
    phone.get_by_role("button", name="Join class").tap()
    expect(phone.get_by_role("heading", name=LESSON.title)).to_be_visible()
    expect(teacher.get_by_text("1 student")).to_be_visible()
    notice = phone.get_by_text("Your link only allows viewing")
    assert below(notice) > below(phone.locator(".ivl-form"))

    teacher.locator(".ivl-list").get_by_role("button", name="Too few points").click()
    expect(phone.get_by_role("heading", name="Too few points")).to_be_visible()
    phone.reload()
    expect(phone.get_by_role("heading", name="Too few points")).to_be_visible()

    teacher.on("dialog", lambda dialog: dialog.accept())
    teacher.get_by_role("button", name="Close class").click()
    expect(phone.get_by_text("This class has ended.")).to_be_visible()
    phone.reload()
    expect(phone.get_by_label("In a class?")).to_be_visible()


def below(element: Locator) -> float:
    """The lower edge of an element, from the top of the page."""
    box = element.bounding_box()
    assert box is not None
    return box["y"] + box["height"]

"""Who asks: signed cookies, and what ends them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.shared import visitor
from dashboard.shared.visitor import ByLink, Open
from isoviz.operations.access import links
from isoviz.operations.access.visitors import OPERATOR, Role, Visitor


@pytest.fixture
def door(tmp_path: Path) -> ByLink:
    return ByLink(lambda: tmp_path, "isoviz-1")


def came_in(door: ByLink, role: Role, cookies: dict[str, str] | None = None) -> dict[str, str]:
    cookie = door.admit(door.links().secrets[role], cookies or {})
    assert cookie is not None
    return {door.cookie: cookie}


def test_two_browsers_with_one_link_are_two_visitors(door: ByLink) -> None:
    first, second = (door.visitor(came_in(door, Role.RUNNER)) for _ in range(2))
    assert first is not None and second is not None
    assert first.role is second.role is Role.RUNNER and first.id != second.id


def test_a_browser_keeps_its_name_under_another_link(door: ByLink) -> None:
    cookies = came_in(door, Role.VIEWER)
    before, after = door.visitor(cookies), door.visitor(came_in(door, Role.RUNNER, cookies))
    assert before is not None and after == Visitor(before.id, Role.RUNNER)


def test_the_starter_s_link_is_the_operator(door: ByLink) -> None:
    operator = came_in(door, Role.OPERATOR)
    assert door.visitor(operator) == OPERATOR
    after = door.visitor(came_in(door, Role.RUNNER, operator))
    assert after is not None and after.role is Role.RUNNER and after.id != OPERATOR.id


def test_a_renewed_role_ends_its_cookies_and_no_others(door: ByLink) -> None:
    viewer, runner = came_in(door, Role.VIEWER), came_in(door, Role.RUNNER)
    links.renew(door.folder(), [Role.RUNNER])
    assert door.visitor(runner) is None
    assert door.visitor(viewer) is not None


def test_a_changed_cookie_admits_no_one(door: ByLink) -> None:
    value = came_in(door, Role.VIEWER)[door.cookie]
    body, _, signature = value.rpartition(".")
    for forged in (
        value.replace("viewer", "runner"),
        value.replace("viewer", "operator"),
        f"runner-{body.partition('-')[2]}.{signature}",
        body,
        value[:-1],
        "",
        "runner-",
        "viewer-é.x",
        "nobody-1." + signature,
    ):
        assert door.visitor({door.cookie: forged}) is None, forged
    assert door.visitor({"isoviz-2": value}) is None


def test_a_role_whose_link_is_not_valid_here(door: ByLink) -> None:
    operator = came_in(door, Role.OPERATOR)
    shared = ByLink(door.folder, door.cookie, (Role.VIEWER, Role.RUNNER))
    assert shared.visitor(operator) is None
    assert shared.admit(door.links().secrets[Role.OPERATOR], {}) is None


def test_a_one_time_secret_admits_once_and_soon(door: ByLink) -> None:
    secret = door.one_time_secret(Role.RUNNER)
    assert door.admit("x" * 32, {}) is None
    cookie = door.admit(secret, {})
    admitted = door.visitor({door.cookie: cookie or ""})
    assert admitted is not None and admitted.role is Role.RUNNER
    assert door.admit(secret, {}) is None
    assert door.admit(door.one_time_secret(Role.RUNNER, seconds=0), {}) is None


def test_unreadable_links_admit_no_one(door: ByLink) -> None:
    runner, secret = came_in(door, Role.RUNNER), door.links().secrets[Role.RUNNER]
    links.path_of(door.folder()).write_text('{"runner": ""}')
    assert door.visitor(runner) is None
    assert door.admit(secret, runner) is None


def test_no_link_with_that_secret(door: ByLink) -> None:
    assert door.admit("", {}) is None
    assert door.admit("x" * 32, {}) is None


def test_open_doors_ask_for_nothing() -> None:
    assert Open.READ_ONLY.visitor({}).role is Role.VIEWER
    assert Open.UNGUARDED.visitor({}) == OPERATOR


def test_without_a_server_it_is_the_operator() -> None:
    assert visitor.current() == OPERATOR

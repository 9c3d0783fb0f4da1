"""A run that has ended is played again in the browser, from its events alone, at a speed that one chooses."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from isoviz.events import Event
from tests.browser.conftest import OpenTab, Server, becomes
from tests.browser.test_live_view import traces, wait_for_points
from tests.story import Story

LASTED = 100.0
"""Seconds of the recorded run."""


class Recorded(Story):
    """A story whose events happened one after the other, not all at once."""

    def say(self, *events: Event) -> None:
        self.clock = getattr(self, "clock", 1_700_000_000.0)
        pace = LASTED / self.total
        times = [self.clock + pace * number for number, _ in enumerate(events)]
        self.clock = times[-1] + pace
        self.store.append(self.id, events, times=times)


@pytest.fixture
def recorded(server: Server) -> Story:
    return Recorded(server.store, method="istar", params={"lam": 1.0}).complete()


def losses(page: Page) -> int:
    return len(traces(page, "loss").get("total loss", []))


def test_a_recorded_run_is_played_again(server: Server, open_tab: OpenTab, recorded: Story) -> None:
    page = open_tab(f"{server.url}/live?run={recorded.id}")
    wait_for_points(page, "loss", "total loss", recorded.total)
    bar = page.locator(".ivz-replay")
    slider = bar.get_by_role("slider", name="Position in the recorded run")
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url) if "/events/" in request.url else None)
    slider.fill("500")  # half of its time
    becomes(page, lambda: 0.3 * recorded.total < losses(page) < 0.7 * recorded.total, True)
    expect(page.locator(".ivz-status").first).to_have_text("replay")
    slider.fill("0")
    becomes(page, lambda: losses(page), 0)
    expect(page.locator(".ivz-matrix-note")).to_be_visible()
    bar.get_by_label("Replay speed").select_option("60")
    bar.get_by_role("button", name="Continue").click()
    wait_for_points(page, "loss", "total loss", recorded.total)  # it moves by itself, to the end
    expect(page.locator(".ivz-status").first).to_have_text("finished")
    expect(bar.get_by_role("button", name="Replay")).to_be_visible()
    assert requests == []  # the server is not asked again for what is here


@pytest.mark.nightly
def test_a_link_plays_it_at_once_and_it_can_be_ended(server: Server, open_tab: OpenTab, recorded: Story) -> None:
    page = open_tab(f"{server.url}/live?run={recorded.id}&replay=1")
    expect(page.locator(".ivz-status").first).to_have_text("replay")
    assert losses(page) < recorded.total
    page.get_by_role("button", name="Show the full run").click()
    wait_for_points(page, "loss", "total loss", recorded.total)

    page.get_by_role("button", name="Replay a recorded run").click()
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_url("**replay=1**")
    expect(page.locator(".ivz-status").first).to_have_text("replay")

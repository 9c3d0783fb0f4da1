"""The queue in a browser, on runs that no one trains: priority, stop, retry, more seeds, and duplicates."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from isoviz.runs.store import Store
from tests.browser.conftest import PATIENCE, OpenTab, Server, becomes
from tests.dashboard.made_up import config


def waiting(store: Store) -> list[int]:
    """Seeds in the order in which they will be taken."""
    return [row.config.seed for row in store.list(status="queued", order="queue")]


def choose(page: Page, button: str, option: str) -> None:
    expect(page.locator(button)).to_have_count(1)  # a line that has moved is drawn twice for a moment
    item = page.get_by_role("menuitem", name=option)
    for attempt in range(12):  # on a busy machine the list may redraw between the two clicks, which closes the menu
        if not item.is_visible():
            page.locator(button).get_by_role("button").click()
        try:
            item.click(timeout=PATIENCE / 6)
        except PlaywrightTimeout:
            assert attempt < 11, f"the menu has no {option}"
        else:
            return


def test_runs_are_preferred_and_stopped(server: Server, open_tab: OpenTab) -> None:
    store = server.store
    for row in store.list(status="queued"):  # of other tests
        store.request_stop(row.id)
    first, second, third = store.create([config("baseline", seed) for seed in range(3)], group="ordered")
    store.create([config("isobn", seed=3)], group="urgent")
    page = open_tab(f"{server.url}/experiments")
    expect(page.get_by_text(re.compile("Queue · .*4 waiting"))).to_be_visible()
    choose(page, f".st-key-priority-{third}", "High")
    becomes(page, lambda: waiting(store), [2, 0, 1, 3])
    choose(page, f".st-key-priority-{third}", "Low")
    becomes(page, lambda: waiting(store), [0, 1, 3, 2])

    page = open_tab(f"{server.url}/experiments?experiment=urgent")
    choose(page, ".st-key-queue_priority", "High")
    becomes(page, lambda: waiting(store), [3, 0, 1, 2])
    expect(page.get_by_text("next in the queue · high priority")).to_be_visible()

    page = open_tab(f"{server.url}/experiments?experiment=ordered")
    page.locator(".st-key-queue_stop").get_by_role("button").click()
    becomes(page, lambda: {store.get(run).status for run in (first, second, third)}, {"stopped"})
    assert waiting(store) == [3]  # another experiment's

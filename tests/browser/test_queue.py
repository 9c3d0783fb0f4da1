"""The queue in a browser, on runs that no one trains: stop, retry, more seeds, and duplicates."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from isoviz.runs.store import Store
from tests.browser.conftest import OpenTab, Server, becomes
from tests.dashboard.made_up import config


def waiting(store: Store) -> list[int]:
    """Seeds in the order in which they will be taken."""
    return [row.config.seed for row in store.list(status="queued", order="queue")]


def test_runs_are_stopped(server: Server, open_tab: OpenTab) -> None:
    store = server.store
    for row in store.list(status="queued"):  # of other tests
        store.request_stop(row.id)
    first, second, third = store.create([config("baseline", seed) for seed in range(3)], group="ordered")
    store.create([config("isobn", seed=3)], group="another")
    page = open_tab(f"{server.url}/experiments")
    expect(page.get_by_text(re.compile("Queue · .*4 waiting"))).to_be_visible()
    page = open_tab(f"{server.url}/experiments?experiment=ordered")
    page.locator(".st-key-queue_stop").get_by_role("button").click()
    becomes(page, lambda: {store.get(run).status for run in (first, second, third)}, {"stopped"})
    assert waiting(store) == [3]  # another experiment's

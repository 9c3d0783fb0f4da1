"""The main job as a person does it, with real training: launch from the form, watch, stop one, share, find it in Results."""

from __future__ import annotations

from contextlib import suppress

from playwright.sync_api import Page, expect

from tests.browser.conftest import LONG, OpenTab, Server


def wait_for_more(page: Page, figure: str, name: str, than: int) -> None:
    page.wait_for_function(
        "([figure, name, than]) => (document.querySelector(`[data-figure=${figure}] .ivz-plot`)?.data"
        "?.find(t => t.name === name && t.hoverinfo !== 'skip')?.y.length ?? 0) > than",
        arg=[figure, name, than],
        timeout=LONG,
    )


def test_launch_watch_stop_share_and_compare(training: Server, open_tab: OpenTab) -> None:
    page = open_tab(training.url)
    page.get_by_role("button", name="Set up these 3 runs").click()
    page.get_by_role("button", name="Launch 3 runs").click(timeout=LONG)
    expect(page.get_by_role("heading", name="Live", exact=True)).to_be_visible()
    runs = training.store.list(order="oldest")
    assert [row.config.method for row in runs] == ["baseline", "isobn", "istar"]

    # the last one's page is open before it begins: it is stopped while it runs
    last = open_tab(f"{training.url}/live?run={runs[2].id}")
    # the first one's page by its address, in another browser session, finished or not
    first = open_tab(f"{training.url}/run?id={runs[0].id}")

    # progress and the charts of the newest run
    expect(page.locator(".ivz-run").get_by_role("progressbar")).to_be_visible()
    wait_for_more(page, "loss", "total loss", 5)
    wait_for_more(page, "metric", "accuracy", 1)
    wait_for_more(page, "isotropy", "IsoScore* (all layers' tokens, ζ = 0.2)", 1)
    expect(page.locator("canvas").first).to_be_visible()

    wait_for_more(first, "metric", "accuracy", runs[0].config.epochs)
    expect(first.locator(".ivz-status")).to_have_text("finished", timeout=LONG)

    wait_for_more(last, "loss", "total loss", 2)
    last.get_by_role("button", name="Stop", exact=True).click()
    expect(last.locator(".ivz-status")).to_have_text("stopped", timeout=LONG)

    # the whole is found in Results
    assert [training.store.get(row.id).status for row in runs] == ["finished", "finished", "stopped"]
    results = page.get_by_role("heading", name="Results", exact=True)
    page.get_by_role("link", name="Results").click()
    with suppress(AssertionError):  # on a busy machine a click while the page reruns was lost once
        expect(results).to_be_visible(timeout=20_000)
    if not results.is_visible():
        page.get_by_role("link", name="Results").click()
    expect(results).to_be_visible()
    for words in ("IsoBN", "stopped"):  # cells of a table on a canvas: there for screen readers, not visible
        expect(page.get_by_text(words).first).to_be_attached()

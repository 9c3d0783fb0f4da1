"""A watched training in the browser: its curves follow the file, mark the collapse, and are replayed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from playwright.sync_api import Page, expect

from isoviz.watch import Watch, trainings
from tests.browser.conftest import Server, becomes
from tests.browser.test_live_view import traces, wait_for_points


def test_it_follows_the_file_and_replays_it(server: Server, open_tab: Callable[..., Page]) -> None:
    generator = np.random.default_rng(0)
    watch = Watch(store=server.home / "watched", name="<b>mine</b>", warmup=8, measure_every=2, on_collapse="log")

    def train(steps: int, spread: float = 1.0) -> None:
        for _ in range(steps):
            batch = generator.standard_normal((32, 16))
            batch[:, 1:] *= spread
            watch.step(batch)

    train(10)
    page = open_tab(f"{server.url}/live?watched=newest")
    wait_for_points(page, "directions", "Directions", 5)
    status, verdict = page.locator(".ivz-status"), page.locator(".ivz-phase")
    expect(status).to_have_text("training")
    expect(verdict).to_contain_text("No collapse found up to step 10")
    expect(page.locator(".ivz-title")).to_have_text("<b>mine</b>")
    assert {"low (95 %)", "high (95 %)"} < set(traces(page, "directions"))
    expect(page.locator("[data-figure=effective_rank] .ivz-empty")).to_be_hidden()
    train(30, 1e-3)
    assert watch.alarm is not None and watch.file is not None
    expect(status).to_have_text("collapsed")
    expect(verdict).to_contain_text(f"Collapse at step {watch.alarm.step}: {watch.alarm.sentence}")
    shapes = (
        "() => document.querySelector('[data-figure=hubness] .ivz-plot').layout.shapes.map(s => [s.type, s.x0, s.x1])"
    )
    becomes(page, lambda: page.evaluate(shapes), [["rect", 0, 8], ["line", watch.alarm.step, watch.alarm.step]])
    expect(page.locator(".ivz-replay")).to_be_hidden()
    watch.end()
    count = len(trainings.read(watch.file).all_of(trainings.Measured))
    expect(page.locator(".ivz-replay")).to_be_visible()
    page.get_by_role("slider", name="Position in the recorded run").fill("0")
    becomes(page, lambda: len(traces(page, "directions").get("Directions", [])), 0)
    expect(status).to_have_text("replay")
    page.get_by_role("button", name="Show the full run").click()
    wait_for_points(page, "directions", "Directions", count)
    watch.file.unlink()  # the server is shared

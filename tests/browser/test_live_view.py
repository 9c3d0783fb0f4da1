"""The live view in a real browser: it moves, it keeps what a person did to it, it stays on this host."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect
from safetensors.numpy import load_file

from dashboard.components import HERE
from isoviz.events import Stopped
from tests.browser.conftest import PATIENCE, OpenTab, Server, becomes, hovered, stable
from tests.story import Story


def plot(page: Page, name: str) -> Any:
    return page.locator(f"[data-figure={name}] .ivz-plot")


def traces(page: Page, name: str) -> dict[str, list[float]]:
    """Name → y values of a figure's visible-by-name lines, as plotly holds them."""
    script = "plot => (plot.data ?? []).filter(t => t.hoverinfo !== 'skip').map(t => [t.name, Array.from(t.y)])"
    return dict(plot(page, name).evaluate(script))


def zoom_into(page: Page, name: str, start: float, end: float) -> None:
    """Drag a rectangle over a figure, from `start` to `end` of its width; wait until plotly has taken it."""
    drag = plot(page, name).locator(".nsewdrag").first
    drag.scroll_into_view_if_needed()
    stable(page, page.locator(f"[data-figure={name}]").bounding_box)
    box = drag.bounding_box()
    assert box is not None
    script = "plot => { plot.on('plotly_relayout', (change) => { plot.zoomed ||= 'xaxis.range[0]' in change; }); }"
    plot(page, name).evaluate(script)
    page.mouse.move(box["x"] + start * box["width"], box["y"] + 0.2 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + end * box["width"], box["y"] + 0.8 * box["height"], steps=6)
    page.mouse.up()
    becomes(page, lambda: plot(page, name).evaluate("plot => plot.zoomed"), True)


def ranges(page: Page, name: str) -> list[float]:
    """Where a figure's axes begin and end."""
    limits: list[float] = plot(page, name).evaluate(
        "plot => [...plot._fullLayout.xaxis.range, ...plot._fullLayout.yaxis.range]"
    )
    return limits


def wait_for_points(page: Page, name: str, trace: str, count: int) -> None:
    page.wait_for_function(
        "([name, trace, count]) => document.querySelector(`[data-figure=${name}] .ivz-plot`)?.data"
        "?.find(t => t.name === trace && t.hoverinfo !== 'skip')?.y.length === count",
        arg=[name, trace, count],
        timeout=PATIENCE,
    )


def test_every_figure_moves_while_the_run_reports(server: Server, open_tab: OpenTab) -> None:
    run = Story(server.store, method="istar", params={"lam": 1.0}).begin().walk(1, 5)
    page = open_tab(f"{server.url}/live?run={run.id}")
    wait_for_points(page, "loss", "total loss", 5)
    assert set(traces(page, "loss")) == {"total loss", "task loss", "istar term", "validation loss"}
    becomes(page, lambda: traces(page, "metric").get("majority"), [0.5, 0.5])
    becomes(page, lambda: list(traces(page, "spectrum")), ["epoch 0 (before training)"])
    run.walk(6, 45)  # over the end of the first epoch
    wait_for_points(page, "loss", "total loss", 45)
    wait_for_points(page, "metric", "accuracy", 2)
    star = "IsoScore* (all layers' tokens, ζ = 0.2)"  # what I-STAR acts on, and no other score beside it
    wait_for_points(page, "isotropy", star, 2)
    assert list(traces(page, "isotropy")) == [star] and traces(page, "isotropy")[star][-1] == pytest.approx(run.star)
    epochs = ["epoch 0 (before training)", "epoch 1"]  # the earlier one stays as a ghost
    becomes(page, lambda: list(traces(page, "spectrum")), epochs)
    panel = page.locator(".ivz-run")
    expect(panel.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "28")
    expect(panel).to_contain_text("45 / 160")
    spent = {name: panel.locator(".ivz-fact").filter(has_text=name) for name in ("training", "evaluating", "measuring")}
    for name, seconds in zip(spent, ("30 s", "8 s", "6 s"), strict=True):
        expect(spent[name]).to_have_text(f"{name}{seconds}")
    run.walk(46, run.total).finish()
    expect(panel.locator(".ivz-status")).to_have_text("finished")
    expect(panel.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "100")
    expect(page.get_by_role("button", name="Run again")).to_be_visible()  # the page itself noticed, too


@pytest.mark.nightly
def test_zoom_is_kept_through_new_data_and_page_reruns(server: Server, open_tab: OpenTab) -> None:
    run = Story(server.store).begin().walk(1, 30)
    page = open_tab(f"{server.url}/live?run={run.id}")
    wait_for_points(page, "loss", "total loss", 30)
    plot(page, "loss").evaluate("plot => { plot.marked = true }")
    zoom_into(page, "loss", 0.3, 0.7)
    page.wait_for_function(
        "() => document.querySelector('[data-figure=loss] .ivz-plot')._fullLayout.xaxis.range[1] < 25"
    )
    zoomed = ranges(page, "loss")
    run.walk(31, 50)
    wait_for_points(page, "loss", "total loss", 50)
    assert ranges(page, "loss") == pytest.approx(zoomed)
    run.say(Stopped(step=40))  # the whole page reruns when the run has ended
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    assert ranges(page, "loss") == pytest.approx(zoomed)
    assert plot(page, "loss").evaluate("plot => plot.marked") is True  # never remounted


@pytest.mark.nightly
def test_polling_pauses_in_a_hidden_tab_and_stops_when_the_run_ends(server: Server, open_tab: OpenTab) -> None:
    run = Story(server.store).begin().walk(1, 3)
    page = open_tab("about:blank")
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url) if "/isoviz/events/" in request.url else None)
    page.goto(f"{server.url}/live?run={run.id}")
    wait_for_points(page, "loss", "total loss", 3)
    page.evaluate(
        "() => { Object.defineProperty(document, 'hidden', { configurable: true, get: () => true });"
        " document.dispatchEvent(new Event('visibilitychange')) }"
    )
    asleep = stable(page, lambda: len(requests))
    run.walk(4, 6)
    assert stable(page, lambda: len(requests)) == asleep
    page.evaluate("() => { delete document.hidden; document.dispatchEvent(new Event('visibilitychange')) }")
    wait_for_points(page, "loss", "total loss", 6)
    run.walk(7, run.total).finish()
    expect(page.locator(".ivz-status")).to_have_text("finished")
    expect(page.get_by_role("button", name="Run again")).to_be_visible()
    stable(page, lambda: len(requests), times=15)


@pytest.mark.nightly
def test_the_matrix_shows_the_stored_values_epoch_by_epoch(server: Server, open_tab: OpenTab) -> None:
    run = Story(server.store, dimensions=32).begin().walk(1, 85)
    page = open_tab(f"{server.url}/live?run={run.id}")
    matrix = page.locator(".ivz-matrix")
    expect(matrix.locator(".ivz-matrix-label")).to_have_text("epoch 2 (newest)")
    canvas = matrix.locator("canvas")
    expect(canvas).to_have_attribute("aria-label", re.compile("32 dimensions, epoch 2"))
    becomes(page, lambda: hovered(matrix, 7, 19, 32), _stored(server, run, 2, 7, 19))
    matrix.get_by_label("Previous epoch").click()
    expect(matrix.locator(".ivz-matrix-label")).to_have_text("epoch 1")
    expect(canvas).to_have_attribute("aria-label", re.compile("epoch 1"))
    becomes(page, lambda: hovered(matrix, 7, 19, 32), _stored(server, run, 1, 7, 19))
    run.walk(86, 120)  # a new epoch does not push away the one that was chosen
    wait_for_points(page, "metric", "accuracy", 4)
    expect(matrix.locator(".ivz-matrix-label")).to_have_text("epoch 1")
    matrix.get_by_label("Epoch", exact=True).fill("3")
    expect(matrix.locator(".ivz-matrix-label")).to_have_text("epoch 3 (newest)")
    matrix.get_by_label("Zoom in").click()
    expect(canvas).to_have_attribute("aria-label", re.compile("epoch 3"))
    becomes(page, lambda: hovered(matrix, 0, 0, 16), _stored(server, run, 3, 8, 8))


@pytest.mark.nightly
def test_the_next_run_of_a_launch_begins_with_an_empty_correlation_panel(server: Server, open_tab: OpenTab) -> None:
    first = Story(server.store, group="two in a row", dimensions=32).begin().walk(1, 45)
    second = Story(server.store, group="two in a row", dimensions=24, seed=1, claim=False)
    page = open_tab(f"{server.url}/live?group=two in a row")
    panel = page.locator(".ivz-matrix")
    expect(panel.locator(".ivz-matrix-label")).to_have_text("epoch 1 (newest)")
    expect(panel.locator(".ivz-matrix-caption")).to_contain_text("d = 32")
    first.walk(46, first.total).finish()
    server.store.claim("test", "cpu", id=second.id)
    expect(page.locator(".ivz-run .ivz-title")).to_contain_text("seed 1")
    for part in ("label", "caption", "facts"):
        expect(panel.locator(f".ivz-matrix-{part}")).to_have_text("")
    expect(panel.locator(".ivz-matrix-note")).to_be_visible()
    expect(panel.get_by_label("Previous epoch")).to_be_disabled()
    second.begin()
    expect(panel.locator(".ivz-matrix-label")).to_have_text("epoch 0 (before training)")
    expect(panel.locator(".ivz-matrix-caption")).to_contain_text("d = 24")


def _stored(server: Server, run: Story, epoch: int, row: int, column: int) -> tuple[int, int, str]:
    arrays = load_file(server.store.folder_of(run.id) / "arrays" / f"epoch-{epoch:03d}.safetensors")
    i, j = arrays["order"][row], arrays["order"][column]
    value = np.rint(255 * np.float32(arrays["abs_correlation"][i, j])) / 255
    return int(i), int(j), f"{value:.2f}"


def test_user_names_are_never_html(server: Server, open_tab: OpenTab) -> None:
    nasty = '<img src=x onerror="window.hit=1"> **bold** $x$'
    run = Story(server.store, name=nasty).begin().walk(1, 3)
    server.store.tag(run.id, ["<img src=x onerror=window.hit=1>"])
    page = open_tab("about:blank")
    for address in (f"/live?run={run.id}", f"/run?id={run.id}"):
        page.goto(server.url + address)
        expect(page.locator(".ivz-title")).to_contain_text(nasty)
        expect(plot(page, "loss").locator(".main-svg").first).to_be_visible()
        assert page.locator("img[src='x']").count() == 0
        assert page.evaluate("() => window.hit") is None


def test_names_in_a_files_cells_are_no_formulas(open_tab: OpenTab) -> None:
    """As `test_csv_disarms_formulas` of the tables that Python writes."""
    unseen = (
        "",
        " ",
        "\u00a0",
        "\ufeff",
        "\u200b",
        "\u200d",
        "\u2060",
        "\u00ad",
        "\ufe0f",
        "\u3164",
        "x;",
        "x\t",
        "x\n",
    )
    names = [f"{start}{sign}1+1" for start in unseen for sign in "=+-@＝﹢"]
    function = re.search(
        r"^function csvOf.*?^}", (Path(HERE) / "live_lines.js").read_text(encoding="utf-8"), re.M | re.S
    )
    assert function
    rows = open_tab("about:blank").evaluate(
        f"names => {{ {function[0]} return names.map((name) => csvOf([{{ name, x: [1], y: [-0.5] }}])); }}", names
    )
    for name, text in zip(names, rows, strict=True):
        (_, *body) = text.split("\n", 1)
        cell = body[0].removeprefix('"')
        assert cell.startswith(f"{name[:2]}'" if name[0] == "x" else f"'{name}"), (name, text)
        assert text.endswith("1,-0.5")  # numbers stay numbers

"""The painting of a map's points in a real browser, without a server: overlapping classes mix, and a slow picture follows the view."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from dashboard.components import bundle

SCRIPT = bundle("look.js", "map_points.js", "painted_points.js")
MAKE = """() => {
  const { PaintedPoints, make } = globalThis.drawing;
  // two classes of 4,000 points on the same places, the second after the first, which has a symbol of its own
  const lots = make(4000);
  const colours = [[255, 0, 0, 255], [0, 0, 255, 255]].map((ink) => Uint8Array.from({ length: 16000 }, (_, i) => ink[i % 4]));
  const parts = ["circle", "square"].map((symbol, trace) => ({ trace, symbol, size: 9, x: lots.x, y: lots.y }));
  const canvas = document.createElement("canvas");
  document.body.append(canvas);
  globalThis.made = { canvas, layer: new PaintedPoints(canvas), parts, colours };
}"""
COUNT = """({ faint, hidden }) => {
  const { canvas, layer, parts, colours } = globalThis.made;
  const inks = colours.map((part, place) => (place === faint ? part.map((byte, i) => (i % 4 === 3 ? 30 : byte)) : part));
  layer.set(parts, inks);
  layer.draw({ left: 0, top: 0, width: 300, height: 300, x: [0, 1], y: [0, 1] }, (part) => part.trace !== hidden);
  const copy = new OffscreenCanvas(300, 300).getContext("2d");
  copy.drawImage(canvas, 0, 0);
  const { data } = copy.getImageData(0, 0, 300, 300);
  const found = [0, 0];
  for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200) found[data[i] > data[i + 2] ? 0 : 1] += 1;
  return found;
}"""


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A bare page with two classes on the same places."""
    page = chromium.new_page()
    page.goto("about:blank")
    exported = "globalThis.drawing = { PaintedPoints, make: (n) => {"
    exported += " const one = (k) => Float64Array.from({ length: n }, (_, i) => ((i + 1) * k) % 1);"
    exported += " return { x: one(0.7548776662), y: one(0.5698402910) }; } };"
    page.add_script_tag(content=f"{SCRIPT}\n{exported}", type="module")
    page.wait_for_function("globalThis.drawing")
    page.evaluate(MAKE)
    yield page
    page.close()


def test_no_class_hides_another_and_each_is_switched_off_by_itself(page: Page) -> None:
    def count(**more: Any) -> list[int]:
        pixels: list[int] = page.evaluate(COUNT, {"faint": None, "hidden": None, **more})
        return pixels

    red, blue = count()
    assert 0.35 < red / (red + blue) < 0.65  # drawn class by class the first would have almost nothing
    assert count() == [red, blue]  # always in the same way
    assert count(hidden=0)[0] == 0 and count(hidden=1)[1] == 0 and min(max(count(hidden=0)), max(count(hidden=1))) > 0
    for strong, faint in ((0, 1), (1, 0)):  # faint points are drawn first, in any class
        assert count(faint=faint)[strong] >= 0.98 * count(hidden=faint)[strong]

"""The playground in Chromium: frame time while dragging a slider, and the time until the numbers are shown.

    python benchmarks/playground.py

Opens the file of `isoviz lessons` from disk, moves a slider at every frame, and takes the times between frames from
requestAnimationFrame. A number is "closed" when its first answer is on the screen after the move, "all" when everything but the redraws is.
Bars: p95 of a frame at most 33 ms at n = 1,000, d = 64 and 100 ms at n = 2,000, d = 256; closed forms within 50 ms up to d = 1,024;
all within 300 ms of a new sample at n = 1,000, d = 256. They depend on the machine, which should be idle.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

from _browser import chromium
from playwright.sync_api import Page

from dashboard.export import standalone

FRAMES = 150
DRAG = """async ({ part, name, from, to, frames }) => {
  const start = { transforms: [], shift: 0, rotation: 0, rogueScale: 1, block: 1 };
  await globalThis.playground.set({ ...start, ...part });
  const field = document.querySelector(`[data-control=${name}]`);
  const times = [];
  const ages = [];
  let moved = 0;
  const { accept, send } = globalThis.playground.constructor.prototype;
  let asked = 0;
  globalThis.playground.send = function () {
    asked = moved;
    send.call(this);
  };
  globalThis.playground.accept = function (answer) {
    accept.call(this, answer);
    if (answer.part === "picture" && answer.which === "before") ages.push(performance.now() - asked);
  };
  let last = await new Promise(requestAnimationFrame);
  for (let k = 0; k < frames; k += 1) {
    moved = performance.now();
    field.value = k % 2 ? from + (to - from) * (k / frames) : from + (to - from) * (k / frames) + 0.0025;
    field.dispatchEvent(new Event("input"));
    const now = await new Promise(requestAnimationFrame);
    times.push(now - last);
    last = now;
  }
  delete globalThis.playground.accept;
  delete globalThis.playground.send;
  return { times, ages };
}"""
MOVE = """async ({ part, then }) => {
  const playground = globalThis.playground;
  await playground.set({ transforms: [], shift: 0, scale: 1, rotation: 0, decay: 1, block: 1, spectrum: "flat", ...part });
  const { accept } = playground.constructor.prototype;
  const began = performance.now();
  const found = {};
  await new Promise((done) => {
    playground.accept = function (answer) {
      accept.call(this, answer);
      if (answer.part === "picture") found.closed ??= performance.now() - began;
      if (answer.part === "origin") {
        found.all = performance.now() - began;
        done();
      }
    };
    playground.set(then);
  });
  delete playground.accept;
  return found;
}"""
DRAGS = (("shift", 0, 0.9), ("rotation", 0, 0.9), ("rogueScale", 0, 0.9), ("rho", 0, 0.9))
SIZES: tuple[tuple[int, int, float], ...] = ((1000, 64, 33), (2000, 256, 100))
MOVES: tuple[tuple[str, dict[str, Any], dict[str, Any], float | None, float | None], ...] = (
    ("shift at n = 1,000, d = 1,024", {"n": 1000, "d": 1024}, {"shift": 0.5}, 50, None),
    ("scale at n = 1,000, d = 1,024", {"n": 1000, "d": 1024}, {"scale": 2}, 50, None),
    ("rotation at n = 1,000, d = 1,024", {"n": 1000, "d": 1024}, {"rotation": 0.5}, 50, None),
    ("spectrum at n = 1,000, d = 1,024", {"n": 1000, "d": 1024, "spectrum": "power"}, {"decay": 0.5}, 50, None),
    ("new draw at n = 1,000, d = 256", {"n": 1000, "d": 256}, {"seed": 9}, None, 300),
)


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def verdict(value: float, bar: float | None) -> str:
    return "" if bar is None else f" (bar {bar:.0f}: {'held' if value <= bar else 'NOT held'})"


def measure(page: Page, repeats: int) -> None:
    cores = os.cpu_count() or 1
    load = os.getloadavg()[0]  # the page and its worker want a core each
    print(
        f"load before the start {load:.1f} on {cores} cores" + ("; busy: a missed bar says nothing" if load > 1 else "")
    )
    for n, d, bar in SIZES:
        for name, start, end in DRAGS:
            part = {"n": n, "d": d, "block": 8 if name == "rho" else 1}
            moves = page.evaluate(DRAG, {"part": part, "name": name, "from": start, "to": end, "frames": FRAMES})
            frame, age = quantile(moves["times"], 0.95), quantile(moves["ages"], 0.95)
            print(
                f"drag {name} at n = {n:,}, d = {d}: p95 of a frame {frame:.1f} ms{verdict(frame, bar)}, of its numbers {age:.1f} ms"
            )
    for words, part, then, closed_bar, all_bar in MOVES:
        moves = []
        for k in range(repeats):
            again = {**then, "seed": then["seed"] + k} if "seed" in then else then
            moves.append(page.evaluate(MOVE, {"part": part, "then": again}))
        closed, complete = (quantile([one[name] for one in moves], 0.5) for name in ("closed", "all"))
        print(
            f"{words}: closed forms {closed:.0f} ms{verdict(closed, closed_bar)}, all {complete:.0f} ms{verdict(complete, all_bar)}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, help="of each single move; the median counts (default: 3)")
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        file = Path(folder) / "lessons.html"
        file.write_text(standalone.render(), encoding="utf-8")
        page = browser.new_page(viewport={"width": 1280, "height": 900}, bypass_csp=True)  # wait_for_function evaluates
        page.goto(f"{file.as_uri()}#playground")
        page.wait_for_function("globalThis.playground && !document.querySelector('[aria-busy]')")
        measure(page, repeats)


if __name__ == "__main__":
    main()

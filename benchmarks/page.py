"""The page of `isoviz page` in Chromium: how soon numbers appear after a file is dropped, how long the page itself pauses, and the memory.

    python benchmarks/page.py

"first": the first measures are shown; "all": everything but the frontier; "frontier": all its points; "pause":
the longest time between two frames meanwhile. "opens": from the navigation to the first part that can be used. "memory": by how much the
tab's process grows at most until "all", in sizes of the file. Bars, on an idle machine: first at most 1.5 s, all 10 s and memory 4 files at
20,000 × 384, all 3 s at 5,000 × 1,024, frontier 20 s at 10,000 × 384, opens 1 s, pause 50 ms.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
from _browser import chromium
from playwright.sync_api import Browser

from dashboard.export import standalone

SIZES = ((20_000, 384), (5_000, 1_024), (10_000, 384))
WATCH = """() => {
  const found = (globalThis.found = { pause: 0 });
  const since = () => (performance.now() - globalThis.dropped) / 1000;
  vectors.cloud.port.addEventListener("message", ({ data }) => {
    if (data.part === "picture") found.first ??= since();
    if (data.part === "frontier" && data.ended) globalThis.done(since());
  });
  document.addEventListener("lab:settled", () => (found.all ??= since()));
  let last = performance.now();
  const frame = (now) => {
    found.pause = Math.max(found.pause, now - last);
    last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  document.querySelector(".ivv-file").addEventListener("change", () => {
    globalThis.dropped = performance.now();
    found.pause = 0;
  });
}"""
SETTLED = "() => new Promise((done) => (found.all ? done() : document.addEventListener('lab:settled', () => done())))"
FRONTIER = """() => new Promise((done) => {
  globalThis.done = done;
  globalThis.dropped = performance.now();
  [...document.querySelectorAll("button")].find((one) => one.textContent === "Compute the frontier").click();
})"""


def memory(browser: Browser, line: str) -> dict[int, float]:
    """MB of the resident memory of each tab, now (`VmRSS`) or at most so far (`VmHWM`)."""
    session = browser.new_browser_cdp_session()
    tabs = [one["id"] for one in session.send("SystemInfo.getProcessInfo")["processInfo"] if one["type"] == "renderer"]
    session.detach()
    status = {tab: Path(f"/proc/{tab}/status").read_text() for tab in tabs}
    return {tab: int(text.partition(f"{line}:")[2].split()[0]) / 1024 for tab, text in status.items()}


def main() -> None:
    print(f"load before the start {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        file = Path(folder) / "lab.html"
        file.write_text(standalone.render(start="vectors"), encoding="utf-8")
        for n, d in SIZES:
            rng = np.random.default_rng(0)
            np.save(Path(folder) / "own.npy", (rng.normal(size=(n, d)) * np.linspace(3, 0.2, d)).astype(np.float32))
            context = browser.new_context(offline=True)
            page = context.new_page()
            page.goto(file.as_uri())
            opens = page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd / 1000")
            page.evaluate(WATCH)
            before = memory(browser, "VmRSS")
            for tab in before:
                Path(f"/proc/{tab}/clear_refs").write_text("5")  # forgets the most so far
            page.set_input_files(".ivv-file", Path(folder) / "own.npy")
            page.evaluate(SETTLED)
            found = page.evaluate("found")
            after = memory(browser, "VmHWM")
            size = (Path(folder) / "own.npy").stat().st_size / 2**20
            files = max(after[tab] - before[tab] for tab in before) / size
            times = f"first {found['first']:.1f} s, all {found['all']:.1f} s, memory {files:.1f} files"
            if (n, d) == SIZES[-1]:
                times += f", frontier {page.evaluate(FRONTIER):.1f} s"
            print(f"{n:,} × {d:,}: opens {opens:.2f} s, {times}, pause {found['pause']:.0f} ms", flush=True)
            context.close()


if __name__ == "__main__":
    main()

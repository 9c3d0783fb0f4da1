"""From the end of an upload of own vectors to the first picture in Explore, against a bare Streamlit page.

    python benchmarks/own_vectors.py [--repeats 5] [--quick] [--out docs]

Needs Chromium and playwright. A .npy file of 5,000 × 384 float32 is uploaded in Chromium. The first picture is the map with all its
points, one frame after it was painted; the upload's end is when the browser has the answer to the last byte (its own clock for
both). The bare page reads the same upload with `np.load` and draws a histogram with `st.plotly_chart`. Warm: the page has been open
for three seconds, the server has served it before. Cold: a new server, and the file is chosen as soon as the field is there. Every
upload is another file, so nothing is cached. Bar: a median of at most 2 s, warm and cold; exit code 1 if one is missed.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from _browser import Line, bare, chromium, opened, table_of
from _report import finish, machine, options, parse
from playwright.sync_api import Browser

from tests.browser.conftest import start

BAR = 2.0
ROWS, WIDTH = 5_000, 384
SETTLED = 3_000
"""Milliseconds that a warm page has been open."""
PLAIN = """
import numpy as np
import plotly.graph_objects as go
import streamlit as st

st.title("Bare")
if file := st.file_uploader("File"):
    st.plotly_chart(go.Figure(go.Histogram(x=np.load(file).ravel()[:5000])))
"""
MAP = "document.querySelector('.ivz-map-points')?.layer?.area"
HISTOGRAM = "document.querySelector('.stPlotlyChart .main-svg .bars')"
WATCH = """(() => {
  const watch = () => (PICTURE) ? requestAnimationFrame((now) => (globalThis.ivzPainted = now)) : requestAnimationFrame(watch);
  watch();
})()"""
SECONDS = """() => {
  const uploads = performance.getEntriesByType("resource").filter((one) => one.name.includes("upload_file"));
  return (ivzPainted - Math.max(...uploads.map((one) => one.responseEnd))) / 1000;
}"""


def main() -> int:
    """Print the table, and write it where asked; 1 if a bar is missed."""
    chosen = parse(options(__doc__, repeats=5))
    rows, repeats = (500, 1) if chosen.quick else (ROWS, chosen.repeats)
    random = np.random.default_rng(0)
    warm, cold, plain = [], [], []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name, chromium() as browser:
        folder = Path(name)

        def file() -> Path:
            np.save(folder / "mine.npy", random.normal(size=(rows, WIDTH)).astype(np.float32))
            return folder / "mine.npy"

        with bare(PLAIN) as bare_url:
            uploaded(browser, bare_url, file(), HISTOGRAM, SETTLED)
            for number in range(repeats):
                home = folder / f"home-{number}"
                home.mkdir()
                server = start(home)
                try:
                    url = f"{server.url}/explore?explore_at=My+vectors"
                    cold.append(uploaded(browser, url, file(), MAP, 0))
                    warm.append(uploaded(browser, url, file(), MAP, SETTLED))
                finally:
                    server.end()
                plain.append(uploaded(browser, bare_url, file(), HISTOGRAM, SETTLED))
                print(
                    f"cold {cold[-1]:.2f} s, warm {warm[-1]:.2f} s, bare {plain[-1]:.2f} s", file=sys.stderr, flush=True
                )
    lines = [Line("warm", warm, "s", BAR), Line("cold", cold, "s", BAR), Line("bare Streamlit page, warm", plain, "s")]
    title = f"From the end of the upload of {rows:,} × {WIDTH} vectors to the first picture, browser"
    head = machine(("streamlit", "plotly", "numpy"), f"median of {repeats}")
    missed = [line.what for line in lines if line.missed]
    return finish(chosen, "own-vectors", "## Own vectors", head, missed, table_of(title, lines))


def uploaded(browser: Browser, url: str, file: Path, picture: str, settled: int) -> float:
    """Seconds from the end of the upload until the picture is painted, in a browser session that was never here.

    Args:
        picture: an expression that is true once it is drawn.
        settled: milliseconds between the field and the choice of the file.
    """
    with opened(browser, url) as page:
        field = page.get_by_test_id("stFileUploaderDropzoneInput").first
        field.wait_for(state="attached")
        page.wait_for_timeout(settled)
        page.evaluate(WATCH.replace("PICTURE", picture))
        field.set_input_files(file)
        page.wait_for_function("() => globalThis.ivzPainted")
        seconds: float = page.evaluate(SECONDS)
        return seconds


if __name__ == "__main__":
    sys.exit(main())

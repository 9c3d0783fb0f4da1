"""Time to first paint of each page on a new store with the examples, against a bare Streamlit page.

    python benchmarks/first_paint.py [--repeats 7] [--quick] [--out docs]

Needs Chromium and playwright. First paint is the moment when the page's title is on the screen, counted from the navigation by the
browser's own clock (Streamlit's skeleton is painted earlier, and at the same time for every page). The bare page is one `st.title`,
served by `streamlit run` of the same version. Both are opened in turn, each time in a new browser session. Also
reported: when the page's first content appears below the title (a chart, a table or a field), and the very first visit, while the
server still imports and reads. Bar: the median at most 1.5 × that of the bare page; exit code 1 if one is missed.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from _browser import PATIENCE, bare, chromium
from _report import Table, finish, machine, options, parse
from playwright.sync_api import Browser

from isoviz.runs.examples import opened
from tests.browser.conftest import start

BAR = 1.5
PAGES = (
    *("", "playground", "lessons", "methods", "explore", "whatif", "ruler", "compare"),
    *("train", "live", "experiments", "results", "tradeoffs", "papers", "run"),
)
CONTENT = ", ".join(
    (
        *(f"[data-testid=st{name}]" for name in ("Selectbox", "DataFrame", "PageLink", "ButtonGroup")),
        ".stPlotlyChart",
        "[data-testid^=stBidi]",
        "button",
    )
)
WATCH = (
    """
(() => {
  globalThis.ivzShown = {};
  const note = (name, element) => {
    if (name in ivzShown || !element || !element.getBoundingClientRect().height) return;
    ivzShown[name] = null;
    requestAnimationFrame((now) => (ivzShown[name] = now)); // the frame that puts it on the screen
  };
  const look = () => {
    const main = document.querySelector("[data-testid=stMain]");
    note("title", main?.querySelector("h1"));
    note("content", main?.querySelector("CONTENT"));
  };
  // each frame, since what a component draws in a shadow tree changes nothing that an observer of the document sees
  const watch = () => {
    look();
    if (!(ivzShown.title && ivzShown.content)) requestAnimationFrame(watch);
  };
  requestAnimationFrame(watch);
})();
"""
).replace("CONTENT", CONTENT)


def main() -> int:
    """Print the table, and write it where asked; 1 if a page misses the bar."""
    chosen = parse(options(__doc__, repeats=7))
    repeats = 1 if chosen.quick else chosen.repeats
    shipped = opened()
    if shipped is None:
        sys.exit("first_paint: needs the examples")
    table = Table(
        "First paint on a fresh store with the examples, in Chromium",
        ["page", "title, ms", "× bare", "content, ms", "first visit, ms"],
    )
    missed = []
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        bare() as bare_url,
        chromium() as browser,
    ):
        server = start(Path(folder), ISOVIZ_EXAMPLES="on")
        try:
            visit(browser, bare_url)
            for name in PAGES:
                address = f"{server.url}/{name}" + (f"?id={shipped.featured().id}" if name == "run" else "")
                first = visit(browser, address)["title"]
                plain, visits = [], []
                for _ in range(repeats):
                    plain.append(visit(browser, bare_url, content=False))
                    visits.append(visit(browser, address))
                title, content = (statistics.median(one[kind] for one in visits) for kind in ("title", "content"))
                ratio = title / statistics.median(time["title"] for time in plain)
                missed += [name or "home"] if ratio > BAR else []
                table.rows.append([name or "home", f"{title:.0f}", f"{ratio:.2f}", f"{content:.0f}", f"{first:.0f}"])
                print(table.rows[-1], file=sys.stderr, flush=True)
        finally:
            server.end()
    table.notes += [
        f"Medians of {repeats} visits, each in a new browser session, in turn with a bare page. Bar: {BAR} × the bare page.",
        "Content: the first field, table, chart or link below the title. First visit: of this page since the server started.",
    ]
    about = machine(("streamlit", "plotly", "pandas"), "one server, one browser")
    return finish(chosen, "first-paint", "## First paint", about, missed, table)


def visit(browser: Browser, address: str, *, content: bool = True) -> dict[str, float]:
    """Milliseconds from the navigation until the title, and until the first content below it, are on the screen."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, bypass_csp=True)  # to look into the page
    try:
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.add_init_script(WATCH)
        page.goto(address, wait_until="commit")
        page.wait_for_function(
            "ivzShown.title && (!CONTENT || ivzShown.content)".replace("CONTENT", str(content).lower())
        )
        times: dict[str, float] = page.evaluate("ivzShown")
        return times
    finally:
        context.close()


if __name__ == "__main__":
    sys.exit(main())

"""Takes the screenshots for the README and the docs: `python -m factory.screenshots`.

Needs Chromium and playwright. Opens the dashboard on a fresh store, so the screenshots show the bundled examples.
"""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).resolve().parent.parent / "docs" / "images"
PAGES: Final = ("playground", "live", "explore", "whatif", "results", "papers")
SETTLED_SECONDS: Final = 12.0
"""After the page's title: charts are drawn, the playground's numbers have settled."""


def main() -> None:
    """Take every picture."""
    from playwright.sync_api import sync_playwright

    start = importlib.import_module("tests.browser.conftest").start  # mypy reads no tests
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home, sync_playwright() as playwright:
        server = start(Path(home), ISOVIZ_EXAMPLES="on")
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 960}, color_scheme="light")
        for name in PAGES:
            page.goto(f"{server.url}/{name}")
            page.locator("h1").first.wait_for(timeout=60_000)
            page.wait_for_timeout(SETTLED_SECONDS * 1000)
            page.screenshot(path=FOLDER / f"{name}-light.png")
        browser.close()
        server.end()


if __name__ == "__main__":
    main()

"""Takes the screenshots for the README and the docs: `python -m factory.screenshots [NAME ...]`.

Needs Chromium and playwright. Opens the dashboard on a fresh store, so the screenshots show the bundled examples.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
from pathlib import Path
from types import MappingProxyType
from typing import Final

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "images"
SIZE: Final = {"width": 1440, "height": 960}
PAGES: Final = MappingProxyType(
    {f"{page}-light": page for page in ("playground", "live", "explore", "whatif", "results", "papers")}
)
"""Picture → the page that it shows."""
SETTLED_SECONDS: Final = 12.0
"""After the page's title: charts are drawn, the playground's numbers have settled."""


def main() -> int:
    """0 when every picture was taken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PAGES)} (default: all)")
    parser.add_argument("--browser", default="/usr/bin/chromium", metavar="PATH")
    chosen = parser.parse_args()
    if unknown := set(chosen.names) - set(PAGES):
        parser.error(f"unknown picture {', '.join(sorted(unknown))} (allowed: {', '.join(PAGES)})")
    from playwright.sync_api import sync_playwright

    start = importlib.import_module("tests.browser.conftest").start  # mypy reads no tests

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        server = start(Path(home), ISOVIZ_EXAMPLES="on")
        try:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=chosen.browser, args=["--no-sandbox"])
                for name in chosen.names or PAGES:
                    page = browser.new_page(viewport=SIZE, color_scheme="light")  # type: ignore[arg-type]
                    page.goto(f"{server.url}/{PAGES[name]}")
                    page.locator("h1").first.wait_for(timeout=60_000)
                    page.wait_for_timeout(SETTLED_SECONDS * 1000)
                    page.screenshot(path=str(FOLDER / f"{name}.png"))
                    page.close()
                    print(f"written: {FOLDER.relative_to(ROOT) / name}.png", flush=True)
                browser.close()
        finally:
            server.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())

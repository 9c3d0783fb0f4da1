"""What a page of the app shows as one HTML file, for the gallery and tests.

Streamlit's AppTest runs the page for the operator, without a browser; the page's own button makes the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

from streamlit.testing.v1 import AppTest

from dashboard.export.button import KEY
from dashboard.shared import downloads, menu, resources

APP: Final = Path(__file__).resolve().parents[1] / "app.py"
_LONGEST = 24 * 3600.0
"""Seconds that one run of a page may take."""


def content(url: str, *, with_vectors: bool = False) -> bytes:
    """The HTML file of the page at an address of the app, such as `/experiments?experiment=…`."""
    parts = urlsplit(url)
    resources.begin()
    try:
        page = AppTest.from_file(APP, default_timeout=_LONGEST)
        page.switch_page(str(Path(menu.HOME).with_stem(parts.path.strip("/"))))
        page.query_params.update(parse_qs(parts.query))
        offered: dict[str, downloads.Content] = {}
        page.session_state[downloads.OFFERED] = offered
        page.run()
        if with_vectors:
            page.toggle(f"{KEY}_vectors").set_value(True).run()
        if page.exception:
            raise RuntimeError("\n".join([page.exception[0].message, *page.exception[0].stack_trace]))
        return str(offered[KEY]()).encode()
    finally:
        resources.close()

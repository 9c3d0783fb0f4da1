"""The page of every address has our styles and title before Streamlit's program runs; other answers are the app's."""

from __future__ import annotations

import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from dashboard.server.app_page import STYLE, AppPage


@pytest.mark.parametrize("base", ["", "lab/isotropy"])
def test_pages_have_our_style_and_nothing_else_changes(base: str) -> None:
    client = TestClient(AppPage(PlainTextResponse("of the app"), base))
    below = f"/{base}" if base else ""
    for path in ("/", "/explore", "/whatif?whatif_model=x"):
        page = client.get(below + path)
        head, _, body = page.text.partition("</head>")
        assert page.headers["content-type"].startswith("text/html") and page.headers["cache-control"] == "no-cache"
        assert "<title>IsoViz</title>" in head and f"<style>{STYLE.read_text('utf-8')}</style>" in body
        assert ("/plotly-basic-" in head) == (path != "/")  # the pages that begin with figures
    for path in ("/favicon.png", "/_stcore/health", "/isoviz/health", "/oauth2callback?code=1"):
        assert client.get(below + path).text == "of the app"
    assert client.post(f"{below}/explore").text == "of the app"

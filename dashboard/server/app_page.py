"""The page that every address of the app opens: Streamlit's, with our title and styles from its first moment."""

from __future__ import annotations

import re
from pathlib import Path

import streamlit as st
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Receive, Scope, Send

STYLE = Path(__file__).resolve().parents[1] / "app.css"
PAGE = r"/(?!oauth2callback)[^/.]*"
"""Paths of pages; all other paths have a folder or an extension."""


class AppPage:
    """ASGI middleware. Streamlit would load styles with the first run of the page, when what they keep from moving has moved.

    Args:
        base_url: Streamlit's base path.
    """

    def __init__(self, app: ASGIApp, base_url: str = "") -> None:
        self.app = app
        self.path = re.compile(re.escape(f"/{base_url}" if base_url else "") + PAGE)
        page = (Path(st.__file__).parent / "static" / "index.html").read_text("utf-8")
        # in the body, after the styles that Streamlit's program adds to the head
        page = page.replace("<body>", f"<body><style>{STYLE.read_text('utf-8')}</style>")
        page = page.replace("<title>Streamlit</title>", "<title>IsoViz</title>")
        self.page = HTMLResponse(page, headers={"cache-control": "no-cache"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_page = scope["type"] == "http" and scope["method"] in ("GET", "HEAD") and self.path.fullmatch(scope["path"])
        await (self.page if is_page else self.app)(scope, receive, send)

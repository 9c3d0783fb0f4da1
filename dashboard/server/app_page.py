"""The page that every address of the app opens: Streamlit's, with our title and styles from its first moment."""

from __future__ import annotations

import re
from pathlib import Path

import streamlit as st
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from dashboard.server.routes import basic_plotly_path

STYLE = Path(__file__).resolve().parents[1] / "app.css"
PAGE = r"/(?!oauth2callback)([^/.]*)"
"""Paths of pages; all other paths have a folder or an extension."""
FIGURES = ("explore", "whatif")
"""Pages that ask for the figures' script, and for Streamlit's modules of components, before Streamlit's own scripts run, so that they have
run before the first figure is there."""
MODULES = ("BidiComponent", "serialization", "recordbatch", "_arrayReduce")
"""Streamlit's modules of components; one that a later version does not have is not asked for."""


class AppPage:
    """ASGI middleware. Streamlit would load styles with the first run of the page, when what they keep from moving has moved.

    Args:
        base_url: Streamlit's base path.
    """

    def __init__(self, app: ASGIApp, base_url: str = "") -> None:
        self.app = app
        self.path = re.compile(re.escape(f"/{base_url}" if base_url else "") + PAGE)
        static = Path(st.__file__).parent / "static"
        page = (static / "index.html").read_text("utf-8")
        # in the body, after the styles that Streamlit's program adds to the head
        page = page.replace("<body>", f"<body><style>{STYLE.read_text('utf-8')}</style>")
        page = page.replace("<title>Streamlit</title>", "<title>IsoViz</title>")
        script = f'<script async src="./{basic_plotly_path()}"></script>'
        files = [file.name for name in MODULES for file in static.glob(f"static/js/{name}.*.js")]
        script += "".join(f'<link rel="modulepreload" crossorigin href="./static/js/{file}">' for file in files)
        always_asked = {"cache-control": "no-cache"}
        self.page = HTMLResponse(page, headers=always_asked)
        self.page_with_figures = HTMLResponse(page.replace("</head>", f"{script}</head>"), headers=always_asked)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_read = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        if not is_read or (page := self.path.fullmatch(scope["path"])) is None:
            await self.app(scope, receive, send)
        else:
            await (self.page_with_figures if page[1] in FIGURES else self.page)(scope, receive, send)

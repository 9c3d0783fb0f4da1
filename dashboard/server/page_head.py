"""Additions to the head of Streamlit's HTML: the server's address, and early loading of the figures' script.

Without the address, the browser of a visitor who opens `/live` first looks for Streamlit's server below `/live` and gets two 404.

On pages that start with figures, Streamlit's scripts, the connection and the page's script must load before a figure is mounted,
and the browser is idle for half of that time. Loaded early, the figures' script has run before the first figure is mounted.
"""

from __future__ import annotations

from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dashboard.server import routes

PAGES = ("", *sorted(path.stem for path in (Path(__file__).resolve().parents[2] / "pages").glob("*.py")))
FIGURE_PAGES = ("explore", "whatif")
"""Pages whose first figures are drawn by `components.figure`."""

SERVER_ADDRESS = 'window.__streamlit={BACKEND_BASE_URL:new URL(".",location.href).href}'
"""Computed in the browser, because a proxy may serve the app below a path that the server does not know."""

ON_ERROR = "this.remove()"
"""Removes a tag that failed, so that a figure loads the script again. `doorway` allows only this handler."""


class PageHead:
    """ASGI middleware that adds these scripts to the HTML of `PAGES`. All other responses pass unchanged.

    Args:
        base_url: Streamlit's base path.
    """

    def __init__(self, app: ASGIApp, base_url: str = "") -> None:
        base = f"/{base_url.strip('/')}" if base_url.strip("/") else ""
        self.app = app
        self.pages = {f"{base}/{page}": page for page in PAGES}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or scope["path"] not in self.pages:
            await self.app(scope, receive, send)
            return
        messages: list[Message] = []

        async def collect(message: Message) -> None:
            messages.append(message)

        # Request an uncompressed response, because the HTML is modified. It is small.
        headers_without_encoding = [
            (name, value) for name, value in scope["headers"] if name.lower() != b"accept-encoding"
        ]
        await self.app({**scope, "headers": headers_without_encoding}, receive, collect)
        if messages and _is_html(messages[0]):
            messages = _with_scripts(messages, self.pages[scope["path"]])
        for message in messages:
            await send(message)


def _with_scripts(messages: list[Message], page: str) -> list[Message]:
    """A complete HTML response with the scripts at the end of its head."""
    start, *parts = messages
    tags = f"<script>{SERVER_ADDRESS}</script>"
    if page in FIGURE_PAGES:  # the address is relative, like those of Streamlit's scripts
        source = f"./{routes.basic_plotly_path()}"
        tags += f'<script async fetchpriority="high" src="{source}" onerror="{ON_ERROR}"></script>'
    html = b"".join(part.get("body", b"") for part in parts).replace(b"</head>", f"{tags}</head>".encode(), 1)
    headers = MutableHeaders(scope=start)
    headers["content-length"] = str(len(html))
    for name in ("etag", "last-modified", "accept-ranges"):  # these describe Streamlit's original response
        del headers[name]
    return [start, {"type": "http.response.body", "body": html}]


def _is_html(start: Message) -> bool:
    return start["status"] == 200 and Headers(scope=start).get("content-type", "").startswith("text/html")

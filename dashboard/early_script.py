"""Early loading of the figures' script, from the HTML of pages that start with figures.

Streamlit's scripts, the connection and the page's script must load before a figure is mounted, and the browser is idle for half
of that time. Loaded early, the figures' script has run before the first figure is mounted.
"""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dashboard import routes

PAGES = ("explore", "whatif")
"""Pages whose first figures are drawn by `components.figure`."""

ON_ERROR = "this.remove()"
"""Removes a tag that failed, so that a figure loads the script again. `doorway` allows only this handler."""


class EarlyScript:
    """ASGI middleware that adds a script tag to the HTML of `PAGES`. All other responses pass unchanged.

    Args:
        base_url: Streamlit's base path.
    """

    def __init__(self, app: ASGIApp, base_url: str = "") -> None:
        base = f"/{base_url.strip('/')}" if base_url.strip("/") else ""
        self.app = app
        self.paths = {f"{base}/{page}" for page in PAGES}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or scope["path"] not in self.paths:
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
        for message in _with_script(messages) if messages and _is_html(messages[0]) else messages:
            await send(message)


def _with_script(messages: list[Message]) -> list[Message]:
    """A complete HTML response with the script tag."""
    start, *parts = messages
    html = with_script(b"".join(part.get("body", b"") for part in parts))
    headers = MutableHeaders(scope=start)
    headers["content-length"] = str(len(html))
    for name in ("etag", "last-modified", "accept-ranges"):  # these describe Streamlit's original response
        del headers[name]
    return [start, {"type": "http.response.body", "body": html}]


def _is_html(start: Message) -> bool:
    return start["status"] == 200 and Headers(scope=start).get("content-type", "").startswith("text/html")


def with_script(html: bytes) -> bytes:
    """The HTML with the script tag at the end of its head. The URL is relative, like those of Streamlit's scripts."""
    tag = f'<script async fetchpriority="high" src="./{routes.basic_plotly_path()}" onerror="{ON_ERROR}"></script>'
    return html.replace(b"</head>", f"{tag}</head>".encode(), 1)

"""The script of the figures, asked for by the HTML of the pages that begin with some.

Streamlit's own scripts, the connection and the page's script take their time before a figure is mounted that can ask for
anything; and for half of that time the browser waits. So the script is there, and has run, before the first figure is.
"""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dashboard import routes

PAGES = ("explore", "whatif")
"""Pages whose first figures are drawn by `components.figure`."""

ON_ERROR = "this.remove()"
"""A tag that failed is taken away, so that a figure asks anew. `doorway` lets just this handler run."""


class EarlyScript:
    """ASGI middleware that adds a script tag to the HTML of `PAGES`. Everything else passes as it is.

    Args:
        base_url: the path that Streamlit itself is served from.
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

        # Not compressed further in, so that it can be added to. It is small.
        plain = [(name, value) for name, value in scope["headers"] if name.lower() != b"accept-encoding"]
        await self.app({**scope, "headers": plain}, receive, collect)
        for message in _with_script(messages) if messages and _is_html(messages[0]) else messages:
            await send(message)


def _with_script(messages: list[Message]) -> list[Message]:
    """A whole answer of HTML, with the script tag."""
    start, *parts = messages
    html = with_script(b"".join(part.get("body", b"") for part in parts))
    headers = MutableHeaders(scope=start)
    headers["content-length"] = str(len(html))
    for name in ("etag", "last-modified", "accept-ranges"):  # of what Streamlit sent
        del headers[name]
    return [start, {"type": "http.response.body", "body": html}]


def _is_html(start: Message) -> bool:
    return start["status"] == 200 and Headers(scope=start).get("content-type", "").startswith("text/html")


def with_script(html: bytes) -> bytes:
    """The HTML with the script's tag at the end of its head; the address is relative, as those of Streamlit's scripts are."""
    tag = f'<script async fetchpriority="high" src="./{routes.basic_plotly_path()}" onerror="{ON_ERROR}"></script>'
    return html.replace(b"</head>", f"{tag}</head>".encode(), 1)

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
        # Not compressed further in, so that it can be added to. It is small.
        plain = [(name, value) for name, value in scope["headers"] if name.lower() != b"accept-encoding"]
        await self.app({**scope, "headers": plain}, receive, _Sender(send))


class _Sender:
    """Holds an answer of HTML back until it is whole, and sends it with the script tag."""

    def __init__(self, send: Send) -> None:
        self.send = send
        self.start: Message | None = None
        self.body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_html(message):
            self.start = message
        elif self.start is None or message["type"] != "http.response.body":
            await self.send(message)
        else:
            self.body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._send_all(self.start)

    async def _send_all(self, start: Message) -> None:
        html = with_script(self.body)
        headers = MutableHeaders(scope=start)
        headers["content-length"] = str(len(html))
        for name in ("etag", "last-modified", "accept-ranges"):  # of what Streamlit sent
            del headers[name]
        await self.send(start)
        await self.send({"type": "http.response.body", "body": html})


def _is_html(start: Message) -> bool:
    return start["status"] == 200 and Headers(scope=start).get("content-type", "").startswith("text/html")


def with_script(html: bytes) -> bytes:
    """The HTML with the script's tag at the end of its head; the address is relative, as those of Streamlit's scripts are."""
    # A tag that failed is taken away, so that a figure asks anew.
    tag = f'<script async fetchpriority="high" src="./{routes.basic_plotly_path()}" onerror="this.remove()"></script>'
    return html.replace(b"</head>", f"{tag}</head>".encode(), 1)

"""Sessions of a real server without a browser: an address is opened over the WebSocket, as Streamlit's own script does it."""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

PATIENCE = 180.0
"""Seconds that a page may take on a busy machine."""


@dataclass(frozen=True)
class Visitor:
    """A visitor who used a link.

    Attributes:
        url: of the server.
        cookie: that the link left, as `name=value`.
    """

    url: str
    cookie: str

    def check(self, address: tuple[str, Mapping[str, str]]) -> str:
        """Open an address in a new session, wait for the end of its script, and leave; the page's name.

        Raises:
            AssertionError: an exception box.
        """
        page, query = address
        wish = BackMsg()
        wish.rerun_script.query_string = urlencode(query)
        wish.rerun_script.page_name = "" if page == "home" else page
        stream = self.url.replace("http", "ws", 1) + "/_stcore/stream"
        with connect(
            stream,
            origin=self.url,  # type: ignore[arg-type]
            subprotocols=["streamlit"],  # type: ignore[list-item]
            additional_headers={"Cookie": self.cookie},
            max_size=None,
            open_timeout=PATIENCE,
        ) as socket:
            socket.send(wish.SerializeToString())
            while True:
                content = socket.recv(timeout=PATIENCE)
                assert isinstance(content, bytes)
                message = ForwardMsg.FromString(content)
                box = message.delta.new_element.exception
                assert not (box.message or box.type), f"{page}: {box.message}\n{''.join(box.stack_trace)}"
                if message.WhichOneof("type") == "script_finished":
                    return page


def by_link(url: str, secret: str) -> Visitor:
    """Come in by the link with this secret."""
    at = urlsplit(url)
    connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=PATIENCE)
    connection.request("GET", f"/?token={secret}")
    answer = connection.getresponse()
    cookie = answer.getheader("set-cookie") or ""
    connection.close()
    assert answer.status == 303 and cookie, answer.status
    return Visitor(url, cookie.partition(";")[0])

"""Sessions of a real server without a browser: an address is opened over the WebSocket, as Streamlit's own script does it."""

from __future__ import annotations

import http.client
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit
from uuid import uuid4

import httpx
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import ClientConnection, connect

PATIENCE = 180.0
"""Seconds that a page may take on a busy machine."""


@dataclass
class OpenPage:
    """A tab.

    Attributes:
        name: of the page.
        session: its id, from the first script on.
        uploads: ids of its upload fields.
        toasts: what its toasts said.
    """

    name: str
    socket: ClientConnection
    session: str = ""
    uploads: list[str] = field(default_factory=list)
    toasts: list[str] = field(default_factory=list)

    def run(self, query: Mapping[str, str], uploaded: Mapping[str, str] | None = None) -> None:
        """Run the script with this query, and with files in upload fields (field → the file's id); return at its end.

        Raises:
            AssertionError: an exception box.
        """
        wish = BackMsg()
        wish.rerun_script.query_string = urlencode(query)
        wish.rerun_script.page_name = "" if self.name == "home" else self.name
        for widget, file in (uploaded or {}).items():
            state = wish.rerun_script.widget_states.widgets.add(id=widget)
            state.file_uploader_state_value.uploaded_file_info.add(file_id=file, name="x.csv")
        self.socket.send(wish.SerializeToString())
        self.hear()

    def hear(self) -> None:
        """Take in what the script sends, to its end. Raises like `run`."""
        while True:
            content = self.socket.recv(timeout=PATIENCE)
            assert isinstance(content, bytes)
            message = ForwardMsg.FromString(content)
            kind, element = message.WhichOneof("type"), message.delta.new_element
            box = element.exception
            assert not (box.message or box.type), f"{self.name}: {box.message}\n{''.join(box.stack_trace)}"
            if element.toast.body:
                self.toasts.append(element.toast.body)
            if element.file_uploader.id:
                self.uploads.append(element.file_uploader.id)
            if kind == "new_session":
                self.session = message.new_session.initialize.session_id
            if kind == "script_finished":
                return


@dataclass(frozen=True)
class Visitor:
    """A visitor who used a link.

    Attributes:
        url: of the server.
        cookie: that the link left, as `name=value`.
    """

    url: str
    cookie: str

    @contextmanager
    def opened(self, name: str, query: Mapping[str, str] | None = None) -> Iterator[OpenPage]:
        """A page in a new session, whose script has ended; left at the end."""
        stream = self.url.replace("http", "ws", 1) + "/_stcore/stream"
        with connect(
            stream,
            origin=self.url,  # type: ignore[arg-type]
            subprotocols=["streamlit"],  # type: ignore[list-item]
            additional_headers={"Cookie": self.cookie},
            max_size=None,
            open_timeout=PATIENCE,
        ) as socket:
            page = OpenPage(name, socket)
            page.run(query or {})
            yield page

    def check(self, address: tuple[str, Mapping[str, str]]) -> str:
        """Open an address and leave; the page's name. Raises `AssertionError` for an exception box."""
        with self.opened(*address) as page:
            return page.name

    def upload(self, page: OpenPage, content: bytes | Iterator[bytes]) -> tuple[httpx.Response, str]:
        """Send a file as an upload field does, or as a stream without its length; the answer, and the file's id."""
        token = httpx.get(f"{self.url}/_stcore/health").cookies["_streamlit_xsrf"]
        body = {"files": {"file": ("x.csv", content)}} if isinstance(content, bytes) else {"content": content}
        file = str(uuid4())
        answer = httpx.put(
            f"{self.url}/_stcore/upload_file/{page.session}/{file}",
            headers={"Cookie": f"{self.cookie}; _streamlit_xsrf={token}", "X-Xsrftoken": token},
            timeout=PATIENCE,
            **body,  # type: ignore[arg-type]
        )
        return answer, file


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

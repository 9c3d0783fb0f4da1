"""Every page below a path prefix, behind a real reverse proxy that removes it. The server of most tests has a prefix without one."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import expect

from isoviz.operations.access import links
from isoviz.operations.access.visitors import Role
from tests.browser.conftest import OpenTab, Server, drawn, start

PREFIX = "/isoviz"
"""The most difficult one: the app has routes of the same name."""


class Proxy(socketserver.ThreadingTCPServer):
    """Passes each request below `PREFIX` on, one for each connection; notes and refuses the others."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Request)
        self.upstream = 0
        self.outside: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}{PREFIX}"


class Request(socketserver.StreamRequestHandler):
    server: Proxy

    def handle(self) -> None:
        head = list(iter(self.rfile.readline, b"\r\n"))
        if not head or not head[-1]:
            return
        method, path, version = head[0].decode().split(" ")
        if not path.startswith(f"{PREFIX}/") and path.partition("?")[0] != PREFIX:
            self.server.outside.append(path)
            self.wfile.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        path = f"/{path.removeprefix(PREFIX).removeprefix('/')}"
        socket_headers = any(line.lower().startswith(b"upgrade:") for line in head)
        kept = [line for line in head[1:] if socket_headers or not line.lower().startswith(b"connection:")]
        closing = [] if socket_headers else [b"Connection: close\r\n"]
        with socket.create_connection(("127.0.0.1", self.server.upstream)) as upstream, suppress(OSError):
            upstream.sendall(b"".join([f"{method} {path} {version}".encode(), *kept, *closing, b"\r\n"]))
            threading.Thread(target=self.send_body, args=(upstream,), daemon=True).start()
            while data := upstream.recv(65536):
                self.wfile.write(data)

    def send_body(self, upstream: socket.socket) -> None:
        with suppress(OSError, ValueError):
            while data := self.rfile.read1(65536):  # type: ignore[attr-defined]
                upstream.sendall(data)


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Proxy, Server]]:
    """The app behind a proxy, started with its public URL as `isoviz app --url` starts it."""
    with Proxy() as proxy:
        home = tmp_path_factory.mktemp("home")
        server = start(home, ISOVIZ_URL=f"{proxy.url}/", ISOVIZ_NO_TOKEN="", ISOVIZ_EXAMPLES="on")
        proxy.upstream = int(server.url.rpartition(":")[2])
        thread = threading.Thread(target=proxy.serve_forever, daemon=True)
        thread.start()
        yield proxy, server
        server.end()
        proxy.shutdown()


@pytest.mark.nightly
def test_all_of_the_app_stays_below_the_prefix(proxied: tuple[Proxy, Server], open_tab: OpenTab) -> None:
    proxy, server = proxied
    printed = next(iter(server.home.glob("server-*.log"))).read_text()
    assert f"IsoViz is served at {proxy.url}\n" in printed
    link = links.read(server.store.folder).address(proxy.url, Role.OPERATOR)
    assert link.startswith(f"{proxy.url}/?token=") and link in printed

    tab = open_tab(f"{proxy.url}/train")
    expect(tab.get_by_role("heading", name="This IsoViz needs a link")).to_be_visible()
    failed: list[str] = []
    sockets: set[str] = set()
    # below a page's address, Streamlit first looks for itself there
    refused = lambda answer: answer.status >= 400 and "/_stcore/" not in answer.url  # noqa: E731
    tab.on("response", lambda answer: failed.append(f"{answer.status} {answer.url}") if refused(answer) else None)
    tab.on("websocket", lambda opened: sockets.add(opened.url))
    tab.goto(link)
    expect(tab.get_by_role("heading", name="Example runs")).to_be_visible()
    (cookie,) = [cookie for cookie in tab.context.cookies() if str(cookie["name"]).startswith("isoviz")]
    assert (cookie["path"], tab.url) == (PREFIX, f"{proxy.url}/")

    tab.goto(f"{proxy.url}/explore")
    drawn(tab)
    tab.goto(f"{proxy.url}/")
    tab.get_by_role("link", name="I-STAR on demo/acceptability, seed 0").first.click()
    expect(tab.locator(".ivz-matrix-canvas").first).to_be_visible()  # our routes: events, arrays
    tab.get_by_test_id("stSidebarNav").get_by_role("link", name="Results").click()
    expect(tab).to_have_url(f"{proxy.url}/results")
    with tab.expect_download() as waiting:
        tab.get_by_test_id("stDownloadButton").get_by_role("button").first.click()
    assert Path(waiting.value.path()).stat().st_size > 0

    tab.goto(f"{proxy.url}/lessons")
    tab.get_by_text("Join or open a class").click()
    tab.get_by_role("button", name="Open a class").click()
    address = tab.locator(".ivl-address").inner_text()
    assert address.startswith(f"{proxy.url}/lessons?class=")
    student = open_tab(f"{proxy.url}/explore")
    student.get_by_label("In a class?").fill(tab.locator(".ivl-code").inner_text())
    student.get_by_role("button", name="Join class").click()
    expect(student).to_have_url(f"{proxy.url}/lessons?class={tab.locator('.ivl-code').inner_text()}", timeout=60_000)
    expect(tab.get_by_text("1 student")).to_be_visible()

    assert sockets == {f"ws{proxy.url.removeprefix('http')}/_stcore/stream"}
    assert (proxy.outside, failed) == ([], [])

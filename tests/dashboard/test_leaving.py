"""What visitors leave behind: uploads are on disk and within the quota, and closed pages are gone in time, without the next visitor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import httpx
import psutil
import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import ClientConnection, connect

from isoviz.access import links
from isoviz.access.visitors import Role
from tests.browser.conftest import Server, start
from tests.fuzzing import sessions
from tests.runs.observing import posix, until

MEGABYTE = 1_000_000
RECONNECTION = 2
"""Seconds for which a closed page can be reconnected."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = {"STREAMLIT_SERVER_DISCONNECTED_SESSION_TTL": str(RECONNECTION), "ISOVIZ_QUOTA_UPLOAD_MB": "40"}
    started = start(tmp_path_factory.mktemp("home"), ISOVIZ_NO_TOKEN="", **settings)
    yield started
    started.end()


@pytest.fixture(scope="module")
def runner(server: Server) -> sessions.Visitor:
    return sessions.by_link(server.url, links.read(server.store.folder).secrets[Role.RUNNER])


def received(page: ClientConnection, kind: str) -> ForwardMsg:
    while True:
        content = page.recv(timeout=sessions.PATIENCE)
        assert isinstance(content, bytes)
        message = ForwardMsg.FromString(content)
        if message.WhichOneof("type") == kind:
            return message


@contextmanager
def opened(visitor: sessions.Visitor, name: str = "train") -> Iterator[tuple[ClientConnection, str]]:
    """A page whose script has ended, and its session."""
    with connect(
        visitor.url.replace("http", "ws", 1) + "/_stcore/stream",
        origin=visitor.url,  # type: ignore[arg-type]
        subprotocols=["streamlit"],  # type: ignore[list-item]
        additional_headers={"Cookie": visitor.cookie},
        max_size=None,
    ) as page:
        wish = BackMsg()
        wish.rerun_script.page_name = name
        page.send(wish.SerializeToString())
        session = received(page, "new_session").new_session.initialize.session_id
        received(page, "script_finished")
        yield page, session


def upload(visitor: sessions.Visitor, session: str, content: bytes | Iterator[bytes]) -> httpx.Response:
    """What an upload field sends; as a stream, without its length."""
    token = httpx.get(f"{visitor.url}/_stcore/health").cookies["_streamlit_xsrf"]
    body = {"files": {"file": ("x.csv", content, "text/csv")}} if isinstance(content, bytes) else {"content": content}
    return httpx.put(
        f"{visitor.url}/_stcore/upload_file/{session}/{uuid4()}",
        headers={"Cookie": f"{visitor.cookie}; _streamlit_xsrf={token}", "X-Xsrftoken": token},
        timeout=sessions.PATIENCE,
        **body,  # type: ignore[arg-type]
    )


def process(server: Server) -> psutil.Process:
    return psutil.Process(server.process.pid)


def test_uploads_are_on_disk_and_counted_when_they_arrive(server: Server, runner: sessions.Visitor) -> None:
    with opened(runner) as (_, one), opened(runner) as (_, other):
        assert upload(runner, one, bytes(8 * MEGABYTE)).status_code == 204
        before = process(server).memory_info().rss
        for session in (one, other, other):
            assert upload(runner, session, bytes(8 * MEGABYTE)).status_code == 204
        assert process(server).memory_info().rss - before < 10 * MEGABYTE, "of 24 MB"
        refused = upload(runner, other, bytes(8 * MEGABYTE))
        assert refused.status_code == 413 and "at most 40; the operator sets ISOVIZ_QUOTA_UPLOAD_MB" in refused.text
        assert upload(runner, other, iter([bytes(8 * MEGABYTE)])).status_code == 411  # a length that is not known
        for _ in range(8):
            assert upload(runner, one, b"").status_code == 204
        assert upload(runner, one, b"").status_code == 413, "each keeps a file open"
    with opened(runner) as (_, reloaded):
        assert upload(runner, reloaded, bytes(8 * MEGABYTE)).status_code == 204


@posix
def test_closed_pages_are_gone_without_the_next_visitor(server: Server, runner: sessions.Visitor) -> None:
    with opened(runner):
        pass
    until(lambda: process(server).num_fds() < 60, seconds=30)
    before = process(server).num_fds()
    for _ in range(6):
        with opened(runner) as (_, session):
            assert upload(runner, session, b"text").status_code == 204
    until(lambda: process(server).num_fds() <= before + 2, seconds=RECONNECTION + 20)


@posix
def test_the_server_may_open_as_many_files_as_the_system_allows(server: Server) -> None:
    soft, hard = process(server).rlimit(psutil.RLIMIT_NOFILE)
    assert soft == min(hard, 65_536) if hard > 0 else soft >= 65_536

"""What visitors leave behind: uploads are on disk and within the quota, and closed pages are gone in time, without the next visitor."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

from isoviz.operations.access import links
from isoviz.operations.access.visitors import Role
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


@pytest.fixture(scope="module")
def process(server: Server) -> psutil.Process:
    return psutil.Process(server.process.pid)


def test_uploads_are_on_disk_and_counted_when_they_arrive(process: psutil.Process, runner: sessions.Visitor) -> None:
    eight = bytes(8 * MEGABYTE)
    with runner.opened("train") as one, runner.opened("train") as other:
        assert runner.upload(one, eight)[0].status_code == 204
        before = process.memory_info().rss
        for page in (one, other, other):
            assert runner.upload(page, eight)[0].status_code == 204
        assert process.memory_info().rss - before < 10 * MEGABYTE, "of 24 MB"
        refused, _ = runner.upload(other, eight)
        assert refused.status_code == 413 and "at most 40; the operator sets ISOVIZ_QUOTA_UPLOAD_MB" in refused.text
        other.hear()
        assert [toast for toast in other.toasts if "at most 40" in toast], "the field itself shows a code only"
        assert runner.upload(other, iter([eight]))[0].status_code == 411, "a length that is not known"
        for _ in range(8):
            assert runner.upload(one, b"")[0].status_code == 204
        assert runner.upload(one, b"")[0].status_code == 413, "each keeps a file open"
    with runner.opened("train") as reloaded:
        assert runner.upload(reloaded, eight)[0].status_code == 204


def test_an_uploaded_table_is_read(server: Server, runner: sessions.Visitor) -> None:
    """From the disk; `test_own_sets` and others upload without a server."""
    before = set((server.home / "vectors" / "results").glob("*"))
    with runner.opened("ruler", {"ruler_set": "Your own vectors or texts"}) as page:
        _, file = runner.upload(page, b"text\nA cat sat.\nA dog ran.\n")
        page.run({"ruler_set": "Your own vectors or texts"}, {page.uploads[0]: file})
    (added,) = set((server.home / "vectors" / "results").glob("*")) - before
    assert added.is_dir()


@posix
def test_closed_pages_are_gone_without_the_next_visitor(process: psutil.Process, runner: sessions.Visitor) -> None:
    time.sleep(RECONNECTION + 6)  # for the pages of other tests
    before = process.num_fds()
    for _ in range(6):
        with runner.opened("train") as page:
            assert runner.upload(page, b"text")[0].status_code == 204
    until(lambda: process.num_fds() <= before + 2, seconds=RECONNECTION + 20)


@pytest.mark.skipif(not hasattr(psutil, "RLIMIT_NOFILE"), reason="psutil does not read it here")
def test_the_server_may_open_as_many_files_as_the_system_allows(process: psutil.Process) -> None:
    soft, hard = process.rlimit(psutil.RLIMIT_NOFILE)
    assert soft == min(hard, 65_536) if hard > 0 else soft >= 65_536


@pytest.mark.skipif(sys.platform != "linux", reason="of glibc")
def test_threads_share_the_pools_that_memory_is_taken_from() -> None:
    script = """if True:
        import concurrent.futures, ctypes, threading
        import dashboard.server.main
        together = threading.Barrier(16)
        list(concurrent.futures.ThreadPoolExecutor(16).map(lambda _: (bytearray(1000), together.wait()), range(16)))
        ctypes.CDLL(None).malloc_stats()"""
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stderr
    assert 1 <= told.count("Arena ") <= 2, "16 without"

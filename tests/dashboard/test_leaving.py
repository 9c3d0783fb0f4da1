"""What visitors leave with a real server: uploads count while their page is open."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest

from isoviz.access import links
from isoviz.access.visitors import Role
from tests.browser.conftest import Server, start
from tests.fuzzing import sessions

MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    started = start(tmp_path_factory.mktemp("home"), ISOVIZ_NO_TOKEN="", ISOVIZ_QUOTA_UPLOAD_MB="20")
    yield started
    started.end()


def test_uploads_are_read_and_count_while_their_page_is_open(server: Server) -> None:
    runner = sessions.by_link(server.url, links.read(server.store.folder).secrets[Role.RUNNER])
    eight = bytes(8 * MEGABYTE)
    with runner.opened("train") as one, runner.opened("train") as other:
        for page in (one, other):
            assert runner.upload(page, eight)[0].status_code == 204
        refused, _ = runner.upload(other, eight)
        assert refused.status_code == 413 and "at most 20; the operator sets ISOVIZ_QUOTA_UPLOAD_MB" in refused.text
        assert runner.upload(other, iter([eight]))[0].status_code == 411, "a length that is not known"
    with runner.opened("ruler", {"ruler_set": "Your own vectors or texts"}) as page:
        _, file = runner.upload(page, b"text\nA cat sat.\nA dog ran.\n")
        page.run({"ruler_set": "Your own vectors or texts"}, {page.uploads[0]: file})
    (added,) = (server.home / "vectors" / "results").glob("*")
    assert added.is_dir()


@pytest.mark.skipif(not hasattr(psutil, "RLIMIT_NOFILE"), reason="psutil does not read it here")
def test_the_server_may_open_as_many_files_as_the_system_allows(server: Server) -> None:
    soft, hard = psutil.Process(server.process.pid).rlimit(psutil.RLIMIT_NOFILE)
    assert soft == min(hard, 65_536) if hard > 0 else soft >= 65_536

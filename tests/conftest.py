"""Fixtures of the whole suite: no test reaches the user's own store, the network, or another test's files."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from threadpoolctl import threadpool_limits

from isoviz import allowed_paths
from tests import nightly, tiny
from tests.lab_package import install_package  # noqa: F401 (a fixture)

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

    from isoviz.runs.store import Store


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """In several processes (`make test`) a file's tests stay together, and all that need Chromium are two groups: two
    browsers at a time."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            # they take equally long
            return f"browser {file < 'tests/browser/test_j'}" if file.startswith("tests/browser/") else file

    return Scheduling(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Nightly tests are left out unless all are asked for. Files with a slow test or a browser come first, so that at the end no
    process works alone on a long one."""
    if nightly.ASKED != "all":
        rest = {item for item in items if (item.get_closest_marker("nightly") is None) == (nightly.ASKED == "nightly")}
        config.hook.pytest_deselected(items=[*rest])
        items[:] = [item for item in items if item not in rest]
    slow = {item.path for item in items if any(map(item.get_closest_marker, ("slow", "browser")))}
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish() -> None:
    """The objects of all imported libraries and collected tests stay: a collection of garbage need not walk over them each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _home_before_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A home for fixtures of a file or session, which are created before a test's own home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ISOVIZ_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("ISOVIZ_EXAMPLES", "off")  # an empty store is empty; tests of the examples switch them on
        yield


@pytest.fixture(autouse=True)
def _private_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("ISOVIZ_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("ISOVIZ_ROOTS", os.pathsep.join((tempfile.gettempdir(), os.getcwd())))
    yield
    allowed_paths.restrict_to(None)  # a page of this test has held the process to those
    if "isoviz.jobs.queue" in sys.modules:
        from tests.jobs.here import end_readers

        sys.modules["isoviz.jobs.queue"].close()  # no job and no process of this test stays
        end_readers()


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """`make test` gives each process one thread. A run or What-if of an earlier test takes all cores, and BLAS threads that wait for
    cores of other processes make a product of matrices a hundred times slower."""
    yield
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    if "isoviz.whatif.scheduler" in sys.modules:
        threadpool_limits(limits=1, user_api="blas")
    if len(gc.get_objects()) > 100_000:  # a library that was imported since
        pytest_collection_finish()


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> tiny.TinyModels:
    """Small random encoders of every supported family, in directories like those of a download."""
    return tiny.TinyModels(tmp_path_factory.mktemp("models"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty SQLite store."""
    from isoviz.runs.store import Store

    made = Store(tmp_path / "store")
    yield made
    made.close()


@pytest.fixture
def cola(tmp_path: Path) -> Path:
    """A folder with a small learnable task in CoLA's columns."""
    return tiny.write_cola(tmp_path / "cola")

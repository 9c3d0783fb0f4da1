from __future__ import annotations

import glob
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from isoviz.config import RunConfig
from isoviz.runs.store import Store


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server that lives for this session."""
    binaries = _postgres_binaries()
    if binaries is None:
        reason = "PostgreSQL's initdb was not found (PATH, /usr/lib/postgresql/*/bin)"
        if os.environ.get("CI", "").lower() in ("1", "true"):
            pytest.fail(reason)
        pytest.skip(reason)
    # PostgreSQL refuses to be run by root; its Debian package makes a user for it.
    user = "postgres" if hasattr(os, "geteuid") and os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="isoviz-pg-"))
    if user is not None:
        shutil.chown(folder, user)
    data, port = folder / "data", _free_port()
    done = subprocess.run(
        [binaries / "initdb", "-D", data, "-U", "isoviz", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
        user=user,
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    options = ["-p", str(port), "-k", str(folder), "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [binaries / "postgres", "-D", data, *options], user=user, cwd=folder, stdout=log, stderr=log
        )
    try:
        _wait_for(port, server)
        yield f"postgresql://isoviz@127.0.0.1:{port}/postgres"
    finally:
        server.terminate()  # open connections are told to finish; the fast way would be SIGINT
        try:
            server.wait(timeout=5)
        except subprocess.TimeoutExpired:
            server.send_signal(2)
            server.wait(timeout=5)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty store, once of each kind."""
    if request.param == "sqlite":
        yield str(tmp_path / "store")
        return
    import psycopg

    url = request.getfixturevalue("postgres")
    name = f"t{time.time_ns()}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield url.rsplit("/", 1)[0] + "/" + name
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """An empty store of each kind."""
    made = Store(store_url)
    yield made
    made.close()


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Store]:
    """An empty SQLite store."""
    made = Store(tmp_path / "store")
    yield made
    made.close()


@pytest.fixture
def config() -> Callable[..., RunConfig]:
    """A configuration; `does=` says what the fake training does with it."""

    def make(does: str = "finish", **changes: object) -> RunConfig:
        return RunConfig.checked(**{"params": {"does": does}, **changes})

    return make


def _postgres_binaries() -> Path | None:
    found = shutil.which("initdb")
    candidates = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), reverse=True)
    for path in [found, *candidates]:
        if path is not None:
            return Path(path).resolve().parent
    return None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    import psycopg

    for _ in range(100):
        assert server.poll() is None, "the PostgreSQL server ended"
        try:
            psycopg.connect(host="127.0.0.1", port=port, user="isoviz", dbname="postgres").close()
            return
        except psycopg.OperationalError:
            time.sleep(0.1)
    pytest.fail("the PostgreSQL server did not answer within 10 s")

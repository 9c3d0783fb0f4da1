from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from isoviz.config import RunConfig
from isoviz.jobs import prepared
from isoviz.runs.runner import Runner
from isoviz.runs.store import Store
from tests.runs.fake_training import SPEC
from tests.runs.faults import end_app, start_app
from tests.runs.observing import end_workers, workers
from tests.runs.postgres_server import Address, installed, served

Make = Callable[..., RunConfig]
Start = Callable[..., Runner]
App = Callable[[], subprocess.Popen[str]]
Workers = Callable[[], list[psutil.Process]]


@pytest.fixture(scope="session")
def postgres() -> Iterator[Address]:
    """Addresses on a PostgreSQL server that lives for this session."""
    programs = installed()
    with served(programs) as address:
        yield address


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty store, once of each kind."""
    if request.param == "sqlite":
        yield str(tmp_path / "store")
        return
    import psycopg

    address: Address = request.getfixturevalue("postgres")
    name = f"t{time.time_ns()}"
    with psycopg.connect(address("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield address(name)
    # It saves space until the server's folder goes; PostgreSQL gives up if a connection takes seconds to end.
    with suppress(psycopg.Error), psycopg.connect(address("postgres"), autocommit=True) as connection:
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
def config() -> Make:
    """A configuration; `does=` selects the behaviour of the fake training."""

    def make(does: str = "finish", **changes: object) -> RunConfig:
        return RunConfig.checked(**{"params": {"does": does}, **changes})

    return make


@pytest.fixture
def start_runner(local: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts runners on the store, by default of one slot for the CPU."""
    started: list[Runner] = []
    monkeypatch.setattr(prepared, "MEMORY", 0)  # however small the machine

    def start(*slots: str, train: str = SPEC) -> Runner:
        started.append(Runner(local, slots or ("cpu",), train=train))
        started[-1].start()
        return started[-1]

    yield start
    for runner in started:
        runner.close()
    end_workers(local)


@pytest.fixture
def runner(start_runner: Start) -> Runner:
    """A runner of one slot for the CPU, at work."""
    return start_runner()


@pytest.fixture
def my_workers() -> Workers:
    """Lists the living worker processes that came since the test began."""
    before = workers()
    return lambda: [process for process in workers() if process not in before]


@pytest.fixture
def app(local: Store) -> Iterator[App]:
    """Starts another process with a runner on the same store."""
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        started.append(start_app(local, SPEC))
        return started[-1]

    yield start
    for process in started:
        end_app(process)
    end_workers(local)

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from isoviz.jobs import queue, scheduling
from isoviz.jobs.kinds import JobKind
from isoviz.jobs.queue import JobState
from tests.jobs.here import end_all
from tests.runs.observing import until


def settled(kind: JobKind, key: str) -> JobState:
    """The state of a job that is neither waiting nor running any more."""
    until(lambda: scheduling.dispatch() or not queue.look(kind, key).under_way)
    return queue.look(kind, key)


@pytest.fixture(autouse=True)
def _no_process_stays() -> Iterator[None]:
    yield
    end_all()


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[Path]:
    """A job runs while this file exists."""
    path = tmp_path / "busy"
    path.touch()
    yield path
    path.unlink(missing_ok=True)

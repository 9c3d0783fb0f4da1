from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from isoviz.jobs import queue
from isoviz.jobs.kinds import JobKind
from isoviz.jobs.queue import JobState
from tests.runs.observing import until


def settled(kind: JobKind, key: str) -> JobState:
    """The state of a job that is neither waiting nor running any more."""
    until(lambda: queue.dispatch() or not queue.look(kind, key).under_way)
    return queue.look(kind, key)


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[Path]:
    """A job runs while this file exists."""
    path = tmp_path / "busy"
    path.touch()
    yield path
    path.unlink(missing_ok=True)

"""Processes that begin as a spare: taken where one waits, done without where none does, gone when nobody expects work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from isoviz.exploring import starting
from isoviz.runs.processes import Waiting, is_alive

WORK = "tests.exploring.light_work"
PATIENCE = 60.0


@pytest.fixture(autouse=True)
def _light(own_spares: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "_MODULE", "tests.exploring.light_spare")
    monkeypatch.setattr(starting, "_PAUSE", 0.0)
    monkeypatch.setattr(starting, "_ALONE", 0.0)


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[Path]:
    """Work goes on as long as this file is there."""
    path = tmp_path / "busy"
    path.touch()
    yield path
    path.unlink(missing_ok=True)


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def waiting() -> psutil.Process:
    """The spare."""
    spare = starting._SPARES.spare
    assert spare is not None
    return psutil.Process(spare.pid)


def test_work_begins_in_the_spare_and_outlives_its_pipe(tmp_path: Path, busy: Path) -> None:
    starting.expect(tmp_path / "spare.log")
    spare = waiting()
    starting.expect(tmp_path / "spare.log")
    assert waiting().pid == spare.pid, "one is enough"
    pid, started = starting.launch(WORK, [str(busy)], tmp_path / "log.txt")
    assert pid == spare.pid and is_alive(pid, started)
    until(lambda: (tmp_path / "log.txt").read_text() == f"done by {pid}\n")
    assert "done by" not in (tmp_path / "spare.log").read_text()
    busy.unlink()
    until(lambda: not is_alive(pid, started))
    until(lambda: starting._SPARES.spare is not None)  # the next one, after the work
    assert waiting().pid != pid


def test_work_that_has_just_begun_is_not_slowed_by_the_next_spare(
    tmp_path: Path, busy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "_ALONE", 60.0)
    starting.expect(tmp_path / "spare.log")
    pid, started = starting.launch(WORK, [str(busy)], tmp_path / "log.txt")
    starting.expect(tmp_path / "spare.log")  # as a page does that shows the first pictures
    assert starting._SPARES.spare is None and is_alive(pid, started)
    monkeypatch.setattr(starting, "_ALONE", 0.0)  # it goes on and on: somebody else may want one
    starting.expect(tmp_path / "spare.log")
    assert starting._SPARES.spare is not None and is_alive(pid, started)


def test_work_begins_without_a_spare(tmp_path: Path, busy: Path) -> None:
    pid, started = starting.launch(WORK, [str(busy)], tmp_path / "log.txt")
    until(lambda: (tmp_path / "log.txt").read_text() == f"done by {pid}\n")
    assert is_alive(pid, started)
    busy.unlink()
    until(lambda: not is_alive(pid, started))
    assert starting._SPARES.spare is None, "nobody expects more"


def test_spare_that_died_or_came_from_other_surroundings_is_not_taken(
    tmp_path: Path, busy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy.unlink()
    starting.expect(tmp_path / "spare.log")
    dead = waiting()
    dead.kill()
    dead.wait()
    pid, _ = starting.launch(WORK, [str(busy)], tmp_path / "first.txt")
    assert pid != dead.pid
    until(lambda: (tmp_path / "first.txt").read_text() == f"done by {pid}\n")

    starting.expect(tmp_path / "spare.log")
    stranger = waiting()
    born = stranger.create_time()
    monkeypatch.setenv("ISOVIZ_HOME", str(tmp_path / "elsewhere"))
    pid, _ = starting.launch(WORK, [str(busy)], tmp_path / "second.txt")
    assert pid != stranger.pid and not is_alive(stranger.pid, born)
    until(lambda: (tmp_path / "second.txt").read_text() == f"done by {pid}\n")


def test_work_that_needs_no_encoder_leaves_the_spare(tmp_path: Path, busy: Path) -> None:
    busy.unlink()
    starting.expect(tmp_path / "spare.log")
    spare = waiting()
    pid, _ = starting.launch(WORK, [str(busy)], tmp_path / "log.txt", prepared=False)
    assert pid != spare.pid and waiting().pid == spare.pid


def test_spare_goes_when_nobody_expects_work_and_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Waiting] = []  # by the time we look it may be gone
    monkeypatch.setattr(starting, "Waiting", lambda *given: made.append(Waiting(*given)) or made[-1])
    starting.expect(tmp_path / "spare.log", idle=0.2)
    (idle,) = made
    until(lambda: not is_alive(idle.pid, idle.started))
    starting.expect(tmp_path / "spare.log")
    last = waiting()
    born = last.create_time()
    starting.close()
    assert not is_alive(last.pid, born)


def test_no_spare_where_memory_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "MEMORY", 2**60)
    starting.expect(tmp_path / "spare.log")
    assert starting._SPARES.spare is None

"""Jobs with real processes: one per key, told and stopped at any time, missed when it is killed."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest

from isoviz.exploring import job_folder, jobs, results, starting
from isoviz.exploring.jobs import State
from isoviz.exploring.progress import ProgressFile, read
from isoviz.exploring.request import ViewRequest, key_of, rows_of
from isoviz.models import sources
from isoviz.runs.processes import is_alive
from tests.exploring.turns import all_turns_taken
from tests.tiny import TinyModels

PATIENCE = 240.0
"""Seconds for a process that imports torch on a busy machine."""


@pytest.fixture
def request_(tiny_models: TinyModels, cola: Path) -> ViewRequest:
    return ViewRequest(str(tiny_models("bert")), "glue/cola", str(cola), max_rows=12)


@pytest.fixture
def key(request_: ViewRequest) -> Iterator[str]:
    found = key_of(request_, sources.resolve(request_.model), rows_of(request_.task, request_.data))
    yield found
    jobs.stop(found)


def wait(key: str, until: Callable[[State], bool]) -> State:
    deadline = time.monotonic() + PATIENCE
    while not until(state := jobs.look(key)):
        assert time.monotonic() < deadline, state
        time.sleep(0.05)
    return state


def process_of(key: str) -> dict[str, float]:
    found: dict[str, float] = json.loads((results.root() / "jobs" / key / job_folder.PROCESS).read_text())
    return found


@pytest.fixture
def spare(tmp_path: Path, own_spares: None) -> int:
    """The process id of one that waits for work."""
    starting.expect(tmp_path / "spare.log")
    assert starting._SPARES.spare is not None
    return starting._SPARES.spare.pid


def workers_of(key: str) -> list[int]:
    """Of the processes that this one started."""
    found = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):  # ended this moment
            if str(results.root() / "jobs" / key) in child.cmdline():
                found.append(child.pid)
    return found


def test_asked_watched_and_found_again(request_: ViewRequest, key: str) -> None:
    assert jobs.look(key).kind == "none"
    assert jobs.start(request_, key).kind == "running"
    fractions = [0.0]

    def ended(state: State) -> bool:
        fractions.append(state.progress.fraction if state.kind == "running" else 1.0)
        return state.kind != "running"

    assert wait(key, ended).kind == "done"
    assert fractions == sorted(fractions)
    view = results.find(key)
    assert view is not None and view.facts["rows"] == 12 and view.poolings == ["cls", "mean", "tokens"]
    ev = view.array(2, "cls", "ev")
    assert ev is not None and ev[0] == pytest.approx(view.entry(2, "cls").curve("ev")[0], rel=1e-6)
    # asked again: nothing starts
    written = (view.folder / results.PROFILE).stat().st_mtime_ns
    assert jobs.start(request_, key).kind == "done"
    assert (view.folder / results.PROFILE).stat().st_mtime_ns == written


def test_second_request_shares_the_job(request_: ViewRequest, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    look, launch, spawned = jobs.look, starting.launch, []

    def slowly(key: str, *, at: Path | None = None) -> State:  # so that all have looked before one of them acts
        state = look(key, at=at)
        time.sleep(0.2)
        return state

    def counted(module: str, arguments: list[str], log: Path) -> tuple[int, float]:
        spawned.append(arguments)
        return launch(module, arguments, log)

    monkeypatch.setattr(jobs, "look", slowly)
    monkeypatch.setattr(starting, "launch", counted)
    with all_turns_taken():
        states: list[State] = []
        sessions = [threading.Thread(target=lambda: states.append(jobs.start(request_, key))) for _ in range(4)]
        for session in sessions:
            session.start()
        for session in sessions:
            session.join()
        assert [state.kind for state in states] == ["running"] * 4 and len(spawned) == 1
        assert workers_of(key) == [process_of(key)["pid"]]
        waiting = wait(key, lambda state: "waiting" in state.progress.text)
        assert waiting.kind == "running"


def test_killed_worker_is_noticed_and_can_be_started_again(request_: ViewRequest, key: str) -> None:
    with all_turns_taken():
        jobs.start(request_, key)
        wait(key, lambda state: "waiting" in state.progress.text)
        pid = int(process_of(key)["pid"])
        psutil.Process(pid).kill()
        lost = wait(key, lambda state: state.kind != "running")
        assert lost.kind == "lost" and "killed" in lost.advice and results.find(key) is None
        assert jobs.start(request_, key).kind == "running"
        assert process_of(key)["pid"] != pid
    assert wait(key, lambda state: state.kind != "running").kind == "done"


def test_other_process_of_the_same_number_is_not_the_worker(request_: ViewRequest, key: str) -> None:
    with all_turns_taken():
        jobs.start(request_, key)
        wait(key, lambda state: "waiting" in state.progress.text)
        path = results.root() / "jobs" / key / job_folder.PROCESS
        found = process_of(key)
        path.write_text(json.dumps({**found, "started": found["started"] - 100}))
        assert jobs.look(key).kind == "lost"
        path.write_text(json.dumps(found))
        assert jobs.look(key).kind == "running"


def test_stop_ends_the_process_and_forgets_the_job(request_: ViewRequest, key: str) -> None:
    with all_turns_taken():
        jobs.start(request_, key)
        wait(key, lambda state: "waiting" in state.progress.text)
        found = process_of(key)
        jobs.stop(key)
        assert not is_alive(int(found["pid"]), found["started"])
        assert jobs.look(key).kind == "none"


def test_failure_is_told_in_the_users_terms(request_: ViewRequest, key: str) -> None:
    short = replace(request_, max_length=1)  # no room for a word
    jobs.start(short, key)
    failed = wait(key, lambda state: state.kind != "running")
    assert (failed.kind, failed.field) == ("failed", "max_length")
    assert failed.message == "max_length: must be at least 3 for this model (got 1)"
    assert results.find(key) is None
    assert jobs.start(request_, key).kind == "running"  # mended


def test_bug_is_told_with_its_log(request_: ViewRequest, key: str, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    for path in Path(request_.model).iterdir():
        content = path.read_bytes()
        (broken / path.name).write_bytes(content[:100] if path.suffix == ".safetensors" else content)
    jobs.start(replace(request_, model=str(broken)), key)
    failed = wait(key, lambda state: state.kind != "running")
    assert failed.kind == "failed" and failed.message and failed.log is not None
    assert failed.log.read_text().strip()


def test_worker_that_never_came_is_lost(key: str) -> None:
    folder = results.root() / "jobs" / key
    folder.mkdir(parents=True)
    path = folder / job_folder.REQUEST
    path.write_text("{}")
    os.utime(path, (time.time() + 60,) * 2)
    assert jobs.look(key).kind == "running"  # it may be on its way
    os.utime(path, (1, 1))
    assert jobs.look(key).kind == "lost"


def test_progress_is_written_twice_a_second_at_most_and_never_back(tmp_path: Path) -> None:
    now = [0.0]
    tell = ProgressFile(tmp_path, clock=lambda: now[0])
    seen = []
    for step, (seconds, done) in enumerate([(0.0, 1), (0.1, 2), (0.5, 6), (0.9, 7), (1.0, 4), (1.6, 10)]):
        now[0] = seconds
        tell(done, 10, f"step {step}")
        seen.append((read(tmp_path).done, read(tmp_path).text))
    assert seen == [(1, "step 0"), (1, "step 0"), (6, "step 2"), (6, "step 2"), (6, "step 4"), (10, "step 5")]
    assert read(tmp_path).fraction == 1.0


def test_bundled_model_end_to_end_in_a_spare(tmp_path: Path, spare: int) -> None:
    request = ViewRequest("demo/tiny-bert", "demo/acceptability", max_rows=24)
    key = key_of(request, sources.resolve(request.model), rows_of(request.task, None))
    with all_turns_taken():
        jobs.start(request, key)
        wait(key, lambda state: "waiting" in state.progress.text)
        assert process_of(key)["pid"] == spare
    assert wait(key, lambda state: state.kind != "running").kind == "done"
    view = results.find(key)
    assert view is not None
    cells = view.array(view.depth, "cls", "correlation")
    assert cells is not None and (np.diag(cells) == 255).all() and cells.shape == (view.entry(0, "cls").d,) * 2
    assert 0 < results.size() < 2 * 2**20

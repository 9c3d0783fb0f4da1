"""The app's end, by signal, with real processes: exit code 0, nothing left but the run, which the next app adopts."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from isoviz.runs import planning
from isoviz.runs.store import Store
from tests.ports import answers, free_port
from tests.runs.observing import ended, gone, posix, until

ROOT = Path(__file__).resolve().parents[2]


Start = Callable[[], subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts the app as `python -m isoviz app` does; returns when it answers."""
    started: list[subprocess.Popen[bytes]] = []

    def app() -> subprocess.Popen[bytes]:
        port = free_port()
        command = [sys.executable, "-m", "isoviz", "app", "--port", str(port), "--headless"]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, start_new_session=True)
        started.append(process)
        until(lambda: process.poll() is not None or answers(f"http://127.0.0.1:{port}"))
        assert process.poll() is None
        return process

    yield app
    for process in started:
        process.kill()
        process.wait()


def ends(app: subprocess.Popen[bytes], number: signal.Signals, worker: int) -> None:
    """End the app by this signal: of all that it started only the run's worker stays."""
    family = psutil.Process(app.pid).children(recursive=True)
    app.send_signal(number)
    assert app.wait(timeout=60) == (-number if number == signal.SIGKILL else 0)
    until(lambda: all(gone(process.pid) for process in family if process.pid != worker), seconds=30)
    assert not gone(worker)


@posix
@pytest.mark.nightly
@pytest.mark.slow
def test_app_leaves_nothing_but_the_run_which_the_next_app_adopts(start: Start) -> None:
    store = Store()
    configs = planning.expand(["demo/tiny-bert"], ["demo/acceptability"], [("baseline", {})], [0], epochs=90, threads=1)
    (run_id,) = store.create(configs)
    app = start()
    until(lambda: (store.get(run_id).progress or 0) and store.get(run_id).progress.step > 1)  # type: ignore[union-attr]
    until(lambda: len(psutil.Process(app.pid).children(recursive=True)) >= 2)  # the worker, a spare
    worker = store.get(run_id).pid
    assert worker is not None
    ends(app, signal.SIGTERM, worker)
    ends(start(), signal.SIGKILL, worker)
    assert (store.get(run_id).status, store.get(run_id).pid) == ("running", worker)
    store.request_stop(run_id)
    assert ended(store, run_id).status == "stopped", "without an app, too"
    until(lambda: gone(worker))

"""The app's end, by signal, with real processes: exit code 0, nothing left but the run, which the next app adopts."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from isoviz.runs import planning
from isoviz.runs.store import Store
from tests.ports import free_port
from tests.runs.observing import ended, gone, posix, until

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def app() -> Iterator[subprocess.Popen[bytes]]:
    """The app as `python -m isoviz app` starts it, when it answers."""
    port = free_port()
    command = [sys.executable, "-m", "isoviz", "app", "--port", str(port), "--headless"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, start_new_session=True)

    def answers() -> bool:
        assert process.poll() is None
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    until(answers)
    yield process
    process.kill()
    process.wait()


@posix
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_app_leaves_nothing_but_the_run(app: subprocess.Popen[bytes], number: signal.Signals) -> None:
    store = Store()
    configs = planning.expand(["demo/tiny-bert"], ["demo/acceptability"], [("baseline", {})], [0], epochs=30, threads=1)
    (run_id,) = store.create(configs)
    until(lambda: (store.get(run_id).progress or 0) and store.get(run_id).progress.step > 1)  # type: ignore[union-attr]
    me = psutil.Process(app.pid)
    until(lambda: len(me.children(recursive=True)) >= 2)  # the run, the next run's spare
    family = me.children(recursive=True)
    worker = store.get(run_id).pid
    app.send_signal(number)
    code = app.wait(timeout=60)
    assert code == (-number if number == signal.SIGKILL else 0)
    until(lambda: [process.pid for process in family if not gone(process.pid)] in ([worker], []), seconds=30)
    assert worker is not None and not gone(worker)
    store.request_stop(run_id)
    assert ended(store, run_id).status == "stopped", "without an app, too"
    until(lambda: gone(worker))

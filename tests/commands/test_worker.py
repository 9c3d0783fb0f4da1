"""`isoviz worker` and the SLURM script: several workers drain a queue, each run once; one that is stopped gives its run back."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from isoviz.__main__ import main
from isoviz.config import RunConfig
from isoviz.runs.store import Store
from tests.runs.fake_training import SPEC
from tests.runs.observing import LONG, PATIENCE, kinds, posix, until

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "docs" / "slurm.sh"
PYTHON = f"""#!{sys.executable}
import isoviz.commands.worker as worker, isoviz.__main__, sys
worker.DEFAULT_TRAIN = "{SPEC}"
worker.work.__kwdefaults__["train"] = "{SPEC}"
assert sys.argv[1:3] == ["-m", "isoviz"]
sys.exit(isoviz.__main__.main(sys.argv[3:]))
"""
"""In place of Python: the same command, with a training that takes no time."""

Start = Callable[[int], "subprocess.Popen[str]"]


@pytest.fixture
def array(tmp_path: Path) -> Iterator[Start]:
    """Starts a task of the SLURM script, as `srun` would run it on this machine."""
    for name, text in {"srun": '#!/bin/sh\nexec "$@"\n', "python": PYTHON}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    started: list[subprocess.Popen[str]] = []

    def start(task: int) -> subprocess.Popen[str]:
        environment = {
            **os.environ,
            "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "ISOVIZ_STORE": str(tmp_path / "store"),
            "ISOVIZ_HOME": str(tmp_path / "store"),
            "ISOVIZ_IDLE": "1",
            "SLURM_ARRAY_TASK_ID": str(task),
        }
        command = ["bash", str(SCRIPT)]
        started.append(subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


@posix
@pytest.mark.skipif(shutil.which("bash") is None, reason="the script is for bash")
def test_two_array_tasks_drain_a_queue(array: Start, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    fake = {"does": "finish", "seconds": 0.5}
    ids = store.create([RunConfig(params=fake, seed=seed) for seed in range(4)])
    tasks = [array(0), array(1)]
    output = [task.communicate(timeout=PATIENCE)[1] for task in tasks]
    assert [task.returncode for task in tasks] == [0, 0], output
    rows = [store.get(run_id) for run_id in ids]
    assert [(row.status, row.attempt) for row in rows] == [("finished", 1)] * 4
    assert all(len((store.folder_of(run_id) / "ran").read_text().split()) == 1 for run_id in ids)
    assert all(sum(run_id in text for text in output) <= 1 for run_id in ids)


@posix
@pytest.mark.skipif(shutil.which("bash") is None, reason="the script is for bash")
@pytest.mark.parametrize("whole_step", [pytest.param(False, marks=pytest.mark.nightly), True])
def test_a_task_that_runs_out_of_time_gives_its_run_back(array: Start, tmp_path: Path, whole_step: bool) -> None:
    store = Store(tmp_path / "store")
    (run_id,) = store.create([RunConfig(params=LONG)])
    task = array(0)
    until(lambda: "stepped" in kinds(store, run_id))
    # `srun` signals every process of the step, so that the training may stop before its worker asks it to
    worker = psutil.Process(task.pid)
    for process in [*(worker.children(recursive=True) if whole_step else ()), worker]:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGTERM)
    assert task.wait(timeout=PATIENCE) == 0
    row = store.get(run_id)
    assert (row.status, row.resume, row.owner) == ("queued", True, None)


def test_queued_runs_are_named_and_not_queued_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "--queue", "--processes", "64", "--batch-size", "64", "--store", str(tmp_path)]
    store = Store(tmp_path)
    assert main(words) == 0
    (run_id,) = [row.id for row in store.list()]
    assert capsys.readouterr().out.split()[0] == run_id
    assert main(words) == 0
    printed = capsys.readouterr()
    assert printed.out == "" and "0 runs queued" in printed.err and run_id in printed.err
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["runs"], document["existing"]) == ([], [run_id])
    assert main([*words, "--repeat"]) == 0
    assert len(store.list()) == 2
    assert main(["train", "--repeat", "--store", str(tmp_path)]) == 2
    assert "--repeat: only with --queue" in capsys.readouterr().err

"""One run in several processes, as the command line and the app start it: what is refused, what is reported, stop and resume."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from dashboard.shared import forms
from isoviz import allowed_paths
from isoviz.allowed_paths import Roots
from isoviz.config import RunConfig
from isoviz.devices import Devices, Slot
from isoviz.errors import DivergedError, InputError, to_json
from isoviz.events import Event, Stopped
from isoviz.runs import launch
from isoviz.runs.execution import execute, explain
from isoviz.runs.launch import LostProcessError
from isoviz.runs.store import Store
from isoviz.training.batches import EpochBatches

TEST = "PYTEST_CURRENT_TEST"
CPU = Devices((Slot("cpu", "CPU", 2**33),), bf16=False, cores=4)
GPUS = Devices(tuple(Slot(f"cuda:{index}", "GPU", 2**33) for index in range(2)), bf16=True, cores=16)


# ---------------------------------------------------------------------------------------------------------------- checks


@pytest.mark.parametrize(
    ("requested", "devices", "field", "words"),
    [
        ({"processes": 5}, CPU, "processes", r"this machine has 4 cores \(got 5\)"),
        ({"processes": 3}, GPUS, "processes", r"this machine has 2 GPUs \(got 3\)"),
        ({"processes": 4, "batch_size": 3}, CPU, "batch_size", r"a row for each of the 4 processes \(got 3\)"),
        ({"accelerate_config": "/nowhere.yaml"}, CPU, "accelerate_config", "no file"),
    ],
)
def test_a_launch_that_cannot_start_is_refused(requested, devices, field, words):
    with pytest.raises(InputError, match=words) as refused:
        launch.resolve(requested, devices)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("num_processes: 0", "with num_processes 0; expected one of .* with 1 to 1024 processes"),
        ("num_processes: 8\ndistributed_type: TPU", "distributed_type 'TPU' .* expected one of MULTI_GPU"),
        ("num_processes: 8\ncompute_environment: AMAZON_SAGEMAKER", "on LOCAL_MACHINE"),
        ("distributed_type: 'NO'\nnum_processes: 2", "distributed_type 'NO' with num_processes 2"),
        ("- a list", "with num_processes 0"),
        ("a: [", "cannot be read as YAML"),
    ],
)
def test_a_file_that_describes_no_launch_is_refused(tmp_path, text, words):
    (tmp_path / "launch.yaml").write_text(text)
    with pytest.raises(InputError, match=words):
        launch.resolve({"accelerate_config": str(tmp_path / "launch.yaml")}, CPU)


def test_a_file_that_the_browser_may_not_read_is_refused(tmp_path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "launch.yaml").write_text("distributed_type: MULTI_CPU\nnum_processes: 2\n")
    allowed_paths.restrict_to(lambda: Roots((tmp_path / "shared",)))
    try:
        assert forms.check_setting("accelerate_config", str(tmp_path / "launch.yaml")).error
    finally:
        allowed_paths.restrict_to(None)
    assert forms.check_setting("accelerate_config", str(tmp_path / "launch.yaml")).error is None
    assert "No file" in str(forms.check_setting("accelerate_config", str(tmp_path / "nowhere.yaml")).error)


@pytest.mark.parametrize(("rows", "bucketed"), [(64, False), (61, True), (65, True)])
def test_the_processes_share_each_batch(rows, bucketed):
    lengths = np.arange(rows) % 17
    whole = EpochBatches(lengths, 8, 3, bucketed, (0, 3))
    batches = list(whole._batches())
    assert sorted(item for batch in batches for item in batch) == list(range(rows)) and len(batches) == len(whole) == 8
    parts = [list(EpochBatches(lengths, 8, 3, bucketed, (rank, 3))) for rank in range(3)]
    for batch, *dealt in zip(batches, *parts, strict=True):
        assert [item for part in dealt for item in part] == batch
        assert max(map(len, dealt)) - min(map(len, dealt)) <= 1 <= min(map(len, dealt))
    order = EpochBatches(lengths, 8, 3, bucketed, (1, 3))
    order.start = 2
    assert list(order.sizes()) == [len(batch) for batch in batches[2:]]


def test_one_row_that_is_left_joins_the_batch_before():
    assert list(EpochBatches(np.ones(17), 8, 3, bucketed=False).sizes()) == [8, 9]


# -------------------------------------------------------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("errors", "kind", "words"),
    [
        ([DivergedError("istar", 7, "Lower the learning rate.")], DivergedError, "'istar' became non-finite at step 7"),
        ([RuntimeError("Connection closed by peer"), NotImplementedError("no such op")], RuntimeError, "no such op"),
        ([MemoryError()], MemoryError, ""),
        ([OSError(errno.ENOSPC, "No space left on device")], OSError, "No space left"),
        ([RuntimeError("Connection closed by peer")], LostProcessError, "was killed"),
        ([], LostProcessError, "was killed"),
    ],
)
def test_the_first_failure_of_a_process_is_that_of_the_run(tmp_path, errors, kind, words):
    for rank, error in enumerate(errors):
        (tmp_path / launch.FAILURE.format(rank)).write_text(json.dumps(to_json(error)))
    failure = launch._failure(tmp_path, 1)
    assert isinstance(failure, kind) and words in str(failure)
    assert explain(failure).advice


# ---------------------------------------------------------------------------------------------------------------- launch


@pytest.fixture
def launched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[RunConfig], tuple[list[str], dict[str, str]]]:
    """The command and the environment that a configuration is launched with; nothing trains."""

    def run(config: RunConfig) -> tuple[list[str], dict[str, str]]:
        popen, started = subprocess.Popen, []

        def record(command: list[str], env: dict[str, str], **options: Any) -> subprocess.Popen[str]:
            started.append((command, env))
            return popen([sys.executable, "-c", "import time; time.sleep(600)"], **options)

        store = Store(tmp_path / "store")
        (run_id,) = store.create([config])
        store.folder_of(run_id).mkdir(parents=True)
        monkeypatch.setattr(launch.subprocess, "Popen", record)
        launch._launched(store, store.get(run_id)).kill()
        return started[0]

    return run


def test_the_ranks_of_an_outer_launch_stay_outside(launched, monkeypatch):
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
        monkeypatch.setenv(name, "0")
    _, environment = launched(RunConfig(processes=2))
    assert not {"RANK", "LOCAL_RANK", "WORLD_SIZE"} & environment.keys()


@pytest.mark.parametrize(
    ("processes", "kind", "several", "devices"),
    [(2, "MULTI_CPU", True, ""), (1, "MULTI_CPU", False, ""), (1, "NO", False, "0"), (2, "FSDP", False, "0")],
)
def test_a_file_starts_as_many_processes_as_it_says(
    launched: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    processes: int, kind: str, several: bool, devices: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    file = tmp_path / "launch.yaml"
    file.write_text(f"distributed_type: '{kind}'\nnum_processes: {processes}\n")
    command, environment = launched(RunConfig(processes=processes, accelerate_config=str(file)))
    assert ("--multi_gpu" in command) is several
    assert environment["CUDA_VISIBLE_DEVICES"] == devices


# ------------------------------------------------------------------------------------------------------------ a real run


@pytest.mark.nightly
@pytest.mark.slow
def test_two_processes_are_stopped_and_resumed_with_fsdp(tmp_path, tiny_models, cola, monkeypatch):
    monkeypatch.setenv("RANK", "0")  # as in a job of Kubeflow
    config = RunConfig.checked(
        model=str(tiny_models("bert")), task="glue/cola", data=str(cola), method="istar", batch_size=16, epochs=12,
        learning_rate=5e-3, precision="no", threads=1, processes=2, params={},
    )  # fmt: skip
    store, steps = Store(tmp_path / "store"), []

    def tell(event: Event) -> None:
        if event.kind == "stepped":
            steps.append(event.step)
            if len(steps) == 1:
                store.request_stop(run_id)

    (run_id,) = store.create([config])
    assert execute(store, run_id, tell=tell).status == "stopped"
    stopped = store.events(run_id)[-1][1]
    assert not stopped["forced"] and 1 <= steps[-1] <= stopped["step"]
    file = tmp_path / "fsdp.yaml"
    file.write_text("distributed_type: FSDP\nnum_processes: 2\nmain_process_port: 0\nfsdp_config: {fsdp_version: 2}\n")
    (split,) = store.create([config.model_copy(update={"accelerate_config": str(file)})])
    shutil.copytree(store.folder_of(run_id), store.folder_of(split))  # its checkpoints are the same
    store.append(split, [Stopped(step=0)])
    store.requeue(split)
    steps.clear()
    row = execute(store, split, tell=lambda event: steps.append(event.step) if event.kind == "stepped" else None)
    assert row.status == "finished", row.error
    assert steps[0] == stopped["step"] + 1
    assert not left_over()


@pytest.mark.nightly
@pytest.mark.slow
def test_a_killed_process_ends_the_run(tmp_path, cola, tiny_models):
    config = RunConfig.checked(
        model=str(tiny_models("bert")), task="glue/cola", data=str(cola), batch_size=16, epochs=900, precision="no",
        threads=1, processes=2,
    )  # fmt: skip
    store = Store(tmp_path / "store")
    (run_id,) = store.create([config])
    killed: list[int] = []

    def kill_one(event: Event) -> None:
        if event.kind == "stepped" and not killed:
            ranks = [pid for pid in left_over() if psutil.Process(pid).environ().get("RANK") == "1"]
            killed.append(ranks[0])
            os.kill(ranks[0], signal.SIGKILL)

    row = execute(store, run_id, tell=kill_one)
    assert killed and row.status == "failed" and row.error is not None
    assert "was killed" in row.error["message"] and "memory" in row.error["advice"]
    assert not left_over()


def left_over() -> list[int]:
    """Processes that this test started and that still run."""
    processes = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.pid != os.getpid() and process.environ().get(TEST) == os.environ[TEST]:
                processes.append(process.pid)
    return processes

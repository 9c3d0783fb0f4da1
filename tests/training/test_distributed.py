"""One run in several processes, as the command line and the app start it: what is refused, what is reported, stop and resume."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from dashboard.shared import forms
from isoviz import fence
from isoviz.config import RunConfig
from isoviz.devices import Devices, Slot
from isoviz.errors import DivergedError, InputError, is_out_of_memory, to_json
from isoviz.events import Event, Finished, Stopped
from isoviz.fence import Roots
from isoviz.runs.execution import explain
from isoviz.training import distributed
from isoviz.training.batches import EpochBatches
from isoviz.training.distributed import LostProcessError, _Members, send
from isoviz.training.loop import train
from tests.runs.observing import until
from tests.tiny import TinyModels

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
def test_a_launch_that_cannot_start_is_refused(requested: dict, devices: Devices, field: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as refused:
        distributed.resolve(requested, devices)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("num_processes: 0", r"num_processes must be 1 to 1024 \(got 0\)"),
        ("num_processes: 8\ndistributed_type: TPU", r"distributed_type 'TPU' \(allowed: MULTI_GPU"),
        ("num_processes: 8\ncompute_environment: AMAZON_SAGEMAKER", "on LOCAL_MACHINE"),
        ("distributed_type: 'NO'\nnum_processes: 2", r"'NO' starts one process \(got num_processes: 2\)"),
        ("- a list", "num_processes must be"),
        ("a: [", "cannot be read as YAML"),
    ],
)
def test_a_file_that_describes_no_launch_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "launch.yaml").write_text(text)
    with pytest.raises(InputError, match=words):
        distributed.resolve({"accelerate_config": str(tmp_path / "launch.yaml")}, CPU)


def test_a_file_says_how_many_processes(tmp_path: Path) -> None:
    file = tmp_path / "launch.yaml"
    file.write_text("distributed_type: MULTI_GPU\nnum_processes: 16\nnum_machines: 2\n")
    assert distributed.resolve({"accelerate_config": str(file)}, GPUS) == {
        "processes": 16,
        "accelerate_config": str(file.resolve()),
    }
    with pytest.raises(InputError, match=r"has 16 \(got 2\)"):
        distributed.resolve({"accelerate_config": str(file), "processes": 2}, GPUS)


def test_a_file_that_the_browser_may_not_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "launch.yaml").write_text("distributed_type: MULTI_CPU\nnum_processes: 2\n")
    fence.restrict_to(lambda: Roots((tmp_path / "shared",)))
    try:
        assert forms.check_setting("accelerate_config", str(tmp_path / "launch.yaml")).error
    finally:
        fence.restrict_to(None)
    assert forms.check_setting("accelerate_config", str(tmp_path / "launch.yaml")).error is None
    assert "No file" in str(forms.check_setting("accelerate_config", str(tmp_path / "nowhere.yaml")).error)


def test_a_single_process_is_the_setup_it_was() -> None:
    assert "processes" not in RunConfig().setup_key()
    assert RunConfig(processes=2).setup_key() != RunConfig().setup_key()


@pytest.mark.parametrize(("rows", "bucketed"), [(64, False), (61, True), (65, True)])
def test_the_processes_share_each_batch(rows: int, bucketed: bool) -> None:
    lengths = np.arange(rows) % 17
    batches = list(EpochBatches(lengths, 8, 3, bucketed))
    parts = [list(EpochBatches(lengths, 8, 3, bucketed, (rank, 3))) for rank in range(3)]
    for batch, *dealt in zip(batches, *parts, strict=True):
        together = [item for part in dealt for item in part]
        if len(batch) < 3:  # 65 rows: the last batch has one
            assert dealt == [batch] * 3
            continue
        assert together == batch
        assert max(map(len, dealt)) - min(map(len, dealt)) <= 1 <= min(map(len, dealt))
    order = EpochBatches(lengths, 8, 3, bucketed, (1, 3))
    order.start = 2
    assert list(order.sizes()) == [len(batch) for batch in batches[2:]]


# -------------------------------------------------------------------------------------------------------------- failures


class Launcher:
    """`accelerate launch` that never ends by itself."""

    gone, exit_code = False, None


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Serves the processes of a run until it is over."""
    monkeypatch.setattr(distributed, "_EXIT_SECONDS", 0.5)

    def run(*acts: Callable[[Connection], None]) -> None:
        with Listener(authkey=b"key") as listener:
            members = _Members(listener)
            lines = [Client(listener.address, authkey=b"key") for _ in acts]
            until(lambda: len(members._ranks) == len(acts))
            for rank, line in enumerate(lines):
                send(line, ("rank", rank))
            for line, act in zip(lines, acts, strict=True):
                act(line)
            try:
                members.report({}, Launcher(), lambda event: None, lambda: False)  # type: ignore[arg-type]
            finally:
                members.close()
                for line in lines:
                    line.close()

    return run


def fails(error: BaseException) -> Callable[[Connection], None]:
    return lambda line: send(line, ("failed", to_json(error)))


def test_a_failure_keeps_its_kind_and_advice(report: Callable[..., None]) -> None:
    with pytest.raises(DivergedError, match="'istar' became non-finite at step 7") as raised:
        report(fails(DivergedError("istar", 7, "Lower the learning rate.")), lambda line: None)
    assert (raised.value.term, raised.value.step, raised.value.advice) == ("istar", 7, "Lower the learning rate.")


def test_a_failure_of_a_library_keeps_its_name(report: Callable[..., None]) -> None:
    with pytest.raises(RuntimeError, match="no such op") as raised:
        report(fails(NotImplementedError("no such op")))
    assert type(raised.value).__name__ == "NotImplementedError"
    with pytest.raises(MemoryError) as raised:
        report(fails(MemoryError()))
    assert is_out_of_memory(raised.value)


def test_a_full_disk_in_a_process_keeps_its_advice(report: Callable[..., None]) -> None:
    with pytest.raises(OSError, match="No space left") as raised:
        report(fails(OSError(errno.ENOSPC, "No space left on device")))
    assert explain(raised.value).advice == explain(OSError(errno.ENOSPC, "")).advice


def test_a_killed_process_is_the_cause_of_what_the_others_fail_with(report: Callable[..., None]) -> None:
    with pytest.raises(LostProcessError, match="process 2 was killed"):
        report(fails(RuntimeError("Connection closed by peer")), lambda line: line.close())


def test_one_that_failed_is_not_killed_when_it_leaves(report: Callable[..., None]) -> None:
    def fail_and_leave(line: Connection) -> None:
        fails(ValueError("the cause"))(line)
        line.close()

    with pytest.raises(RuntimeError, match="the cause"):
        report(fail_and_leave, lambda line: None)


def test_a_caller_with_another_key_keeps_no_process_out() -> None:
    with Listener(authkey=b"key") as listener:
        members = _Members(listener)
        with pytest.raises(AuthenticationError):
            Client(listener.address, authkey=b"other")
        with Client(listener.address, authkey=b"key"):
            until(lambda: len(members._ranks) == 1)
            members.close()


class LeavingLauncher:
    """`accelerate launch` that ends by itself a little later than the processes."""

    looks, exit_code = 0, 0

    @property
    def gone(self) -> bool:
        self.looks += 1
        return self.looks > 5


def test_a_run_that_ended_leaves_its_launcher_time_to_end() -> None:
    launcher, events = LeavingLauncher(), []
    with Listener(authkey=b"key") as listener:
        members = _Members(listener)
        with Client(listener.address, authkey=b"key") as line:
            until(lambda: len(members._ranks) == 1)
            ending = Stopped(step=1).model_dump(mode="json")
            for message in (("rank", 0), ("event", ending), ("done", None)):
                send(line, message)
            members.report({}, launcher, events.append, lambda: False)  # type: ignore[arg-type]
            members.close()
    assert [event.step for event in events] == [1] and launcher.looks == 6


# ---------------------------------------------------------------------------------------------------------------- launch


@pytest.fixture
def launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[RunConfig], tuple[list[str], dict[str, str]]]:
    """The command and the environment that a configuration is launched with; nothing trains."""

    def run(config: RunConfig) -> tuple[list[str], dict[str, str]]:
        popen, started = subprocess.Popen, []

        def record(command: list[str], env: dict[str, str], **options: Any) -> subprocess.Popen[str]:
            started.append((command, env))
            return popen([sys.executable, "-c", "import time; time.sleep(600)"], **options)

        monkeypatch.setattr(distributed.subprocess, "Popen", record)
        distributed._launched(config, "an address", b"key", tmp_path).kill()
        return started[0]

    return run


def test_the_ranks_of_an_outer_launch_stay_outside(launch: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
        monkeypatch.setenv(name, "0")
    _, environment = launch(RunConfig(processes=2))
    assert not {"RANK", "LOCAL_RANK", "WORLD_SIZE"} & environment.keys()


@pytest.mark.parametrize(
    ("processes", "kind", "several", "devices"),
    [(2, "MULTI_CPU", True, ""), (1, "MULTI_CPU", False, ""), (1, "NO", False, "0"), (2, "FSDP", False, "0")],
)
def test_a_file_starts_as_many_processes_as_it_says(
    launch: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    processes: int, kind: str, several: bool, devices: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    file = tmp_path / "launch.yaml"
    file.write_text(f"distributed_type: '{kind}'\nnum_processes: {processes}\n")
    command, environment = launch(RunConfig(processes=processes, accelerate_config=str(file)))
    assert ("--multi_gpu" in command) is several
    assert environment["CUDA_VISIBLE_DEVICES"] == devices


# ------------------------------------------------------------------------------------------------------------ a real run


@pytest.mark.slow
def test_two_processes_are_stopped_and_resumed_with_fsdp(
    tmp_path: Path, tiny_models: TinyModels, cola: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "0")  # as in a job of Kubeflow
    config = RunConfig.checked(
        model=str(tiny_models("bert")), task="glue/cola", data=str(cola), method="istar", batch_size=16, epochs=1,
        learning_rate=5e-3, precision="no", threads=1, processes=2, params={},
    )  # fmt: skip
    events: list[Event] = []

    def steps() -> list[int]:
        return [event.step for event in events if event.kind == "stepped"]

    train(config, events.append, lambda: bool(steps()), tmp_path)
    stopped = events[-1]
    assert isinstance(stopped, Stopped) and not stopped.forced
    assert steps()[-1] <= stopped.step
    events.clear()
    file = tmp_path / "fsdp.yaml"
    file.write_text("distributed_type: FSDP\nnum_processes: 2\nmain_process_port: 0\nfsdp_config: {fsdp_version: 2}\n")
    split = config.model_copy(update={"accelerate_config": str(file)})
    train(split, events.append, lambda: False, tmp_path, resume=True)  # its checkpoints are the same
    assert isinstance(events[-1], Finished) and steps()[0] == stopped.step + 1
    assert not left_over()


def left_over() -> list[int]:
    """Processes that this test started and that still run."""
    processes = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.pid != os.getpid() and process.environ().get(TEST) == os.environ[TEST]:
                processes.append(process.pid)
    return processes

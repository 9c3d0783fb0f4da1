"""One run in several processes: `accelerate launch` starts them (`isoviz.runs.rank`), and this process waits for them.

The first of them writes the run's events to the store, as a worker does.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psutil

from isoviz import allowed_paths, errors, input_validation
from isoviz.config import RunConfig
from isoviz.errors import InputError, IsoVizError, shortened
from isoviz.events import ENDINGS, Event, parse_event
from isoviz.jobs.processes import Process, environment

if TYPE_CHECKING:
    from isoviz.devices import Devices
    from isoviz.runs.store import RunRow, Store

LOG: Final = "worker.log"
"""In a run's folder: the output of all its processes."""
ORDER: Final = "ISOVIZ_RANK_ORDER"
"""Environment variable with the run to train, as JSON. It may hold the password of a database, which a command line would show."""
FAILURE: Final = "failed-{}.json"
"""In a run's folder: the error that ended one of its processes, by rank."""
_CPU: Final = "MULTI_CPU"
_ALONE: Final = "NO"
_TYPES: Final = ("MULTI_GPU", _CPU, "FSDP", _ALONE)
_OUTER_LAUNCH: Final = frozenset(
    {"RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
)
"""Variables that torchrun or Kubeflow set for isoviz itself. The run's processes have ranks of their own launch."""
_POLL_SECONDS: Final = 0.2
_EXIT_SECONDS: Final = 10.0
"""How long processes may take to exit once their run has ended."""


class LostProcessError(IsoVizError):
    """One of the processes of a run was killed."""


# ---------------------------------------------------------------------------------------------------------------- checks


def resolve(asked: Mapping[str, Any], devices: Devices | None) -> dict[str, Any]:
    """`processes` and `accelerate_config` of a plan.

    Args:
        devices: of the machine that trains; None if that is not known yet.

    Raises:
        InputError: too many processes, or a file that does not describe a launch that training knows.
    """
    processes, file = asked.get("processes") or 1, asked.get("accelerate_config")
    if file is not None:
        path, _, named = checked_file(file)
        if processes not in (1, named):
            raise InputError.at("processes", f"the accelerate configuration has {named} (got {processes})")
        processes, file = named, str(path)
    elif processes > 1 and devices is not None:
        most, what = (len(devices.slots), "GPU") if devices.on_gpu else (devices.cores, "core")
        if processes > most:
            plural = "" if most == 1 else "s"
            raise InputError.at("processes", f"this machine has {most} {what}{plural} (got {processes})")
    batch = asked.get("batch_size", RunConfig.model_fields["batch_size"].default)
    if batch < processes:
        raise InputError.at("batch_size", f"needs a row for each of the {processes} processes (got {batch})")
    if processes > 1 and asked.get("micro_batch"):
        raise InputError.at("micro_batch", "works on one process; several share each batch as it is")
    return {"processes": processes, "accelerate_config": file}


def checked_file(file: str) -> tuple[Path, str, int]:
    """An accelerate configuration: its full path, its `distributed_type`, and how many processes it starts on all its machines.

    Raises:
        InputError: it is not there, this process may not read it, or it does not describe a launch that training knows.
    """
    import yaml  # not in the core installation

    path = input_validation.file(allowed_paths.resolve(file, "accelerate_config"), "accelerate_config").resolve()
    with input_validation.parsing(f"{path.name} cannot be read as YAML", "accelerate_config"):
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    found: dict[str, Any] = content if isinstance(content, dict) else {}
    kind, processes = found.get("distributed_type", "NO"), found.get("num_processes", 0)
    local = found.get("compute_environment", "LOCAL_MACHINE") == "LOCAL_MACHINE"
    counted = isinstance(processes, int) and 1 <= processes <= (1 if kind == _ALONE else 1024)
    if kind not in _TYPES or not local or not counted:
        got = f"distributed_type '{shortened(kind)}' with num_processes {shortened(processes)}"
        expected = f"one of {', '.join(_TYPES)} (one process) on LOCAL_MACHINE, with 1 to 1024 processes"
        raise InputError.at("accelerate_config", f"{got}; expected {expected}")
    return path, str(kind), int(processes)


# -------------------------------------------------------------------------------------------------------------- training


def is_shared(config: RunConfig) -> bool:
    """Whether a run trains in processes that `accelerate launch` starts."""
    return config.processes > 1 or config.accelerate_config is not None


def train(store: Store, row: RunRow, stop: Callable[[], bool], tell: Callable[[Event], None]) -> None:
    """Train a run in the processes that it asks for; all of them are gone when this returns, and the run has its ending.

    Args:
        stop: whether this process was asked to stop, in addition to the run's own requests.
        tell: called with each event, once it is in the store.

    Raises:
        Exception: what the first process that failed raised.
        LostProcessError: one was killed.
    """
    from isoviz.runs.database import StoreUnavailableError  # plans read this file without a database

    run_dir = store.path_of(row.id)
    for failure in run_dir.glob(FAILURE.format("*")):  # of an earlier attempt
        failure.unlink()
    seen = 0
    while earlier := store.events(row.id, after=seen):
        seen = earlier[-1][0]
    launcher = _launched(store, row)
    asked, deadline = False, float("inf")
    try:
        gone = False
        while not gone and time.monotonic() < deadline:
            gone = launcher.gone  # before the events: what was written until then is among them
            with suppress(StoreUnavailableError):
                if not asked and stop():
                    store.request_release(row.id, row.attempt)
                    asked = True
                for number, body in store.events(row.id, after=seen):
                    seen, event = number, parse_event(body)
                    tell(event)
                    if event.kind in ENDINGS:
                        deadline = time.monotonic() + _EXIT_SECONDS
            time.sleep(_POLL_SECONDS)
    finally:
        launcher.kill()
    if deadline == float("inf"):
        raise _failure(run_dir, launcher.exit_code)


def _launched(store: Store, row: RunRow) -> Process:
    config, run_dir = row.config, store.path_of(row.id)
    command = [sys.executable, "-m", "accelerate.commands.launch", "--num_processes", str(config.processes)]
    slot = "any"
    if config.accelerate_config is not None:
        command += ["--config_file", config.accelerate_config]
        if checked_file(config.accelerate_config)[1] == _CPU:
            slot = "cpu"
            if config.processes > 1:
                command.append("--multi_gpu")  # without it, accelerate starts one process for MULTI_CPU
    else:
        command += ["--multi_gpu", "--num_machines", "1", "--dynamo_backend", "no", "--main_process_port", "0"]
    command += ["--mixed_precision", "no", "-m", "isoviz.runs.rank"]  # the precision is the run's, see `Setup`
    order = {"store": store.url, "run": row.id, "attempt": row.attempt, "resume": row.resume}
    order |= {"config": config.model_dump_json(), "run_dir": str(run_dir.absolute())}
    variables = {name: value for name, value in environment(slot).items() if name not in _OUTER_LAUNCH}
    with (run_dir / LOG).open("ab") as log:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=variables | {ORDER: json.dumps(order), "PYTHONSAFEPATH": "1"},
            start_new_session=True,  # Ctrl-C is for this process, which asks the others to stop after their step
            text=True,
        )
    return Process(child.pid, psutil.Process(child.pid).create_time(), child)


def _failure(run_dir: Path, exit_code: int | None) -> BaseException:
    """Why the processes ended: an error that one of them raised, unless it only reports that another one was gone."""
    for file in sorted(run_dir.glob(FAILURE.format("*")), key=lambda path: path.stat().st_mtime_ns):
        error = errors.from_json(json.loads(file.read_text(encoding="utf-8")))
        if "by peer" not in str(error):
            return error
    return LostProcessError(
        f"one of the run's processes was killed (exit code {exit_code})",
        advice=f"Its memory may have run out: try a smaller batch size, or see {LOG}. Resume continues from the last checkpoint.",
    )

"""One run in several processes: `accelerate launch` starts them (`isoviz.training.member`), and this process reports for them.

The first of them sends each event here and waits until it is stored; requests to stop go the other way. So a run has one process
that writes to the store, whatever trains it.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psutil

from isoviz import boundary, errors, fence
from isoviz.config import RunConfig
from isoviz.errors import InputError, IsoVizError, shortened
from isoviz.events import ENDINGS, Event, parse_event
from isoviz.jobs.processes import Process, environment

if TYPE_CHECKING:
    from isoviz.devices import Devices

LOG: Final = "worker.log"
"""In a run's folder: the output of all its processes."""
ADDRESS: Final = "ISOVIZ_TRAINING_ADDRESS"
KEY: Final = "ISOVIZ_TRAINING_KEY"
STOP: Final = "stop"
STORED: Final = "stored"
_CPU: Final = "MULTI_CPU"
_ALONE: Final = "NO"
_TYPES: Final = ("MULTI_GPU", _CPU, "FSDP", _ALONE)
_OUTER_LAUNCH: Final = frozenset(
    {"RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
)
"""Variables that torchrun or Kubeflow set for isoviz itself. The run's processes have ranks of their own launch."""
_POLL_SECONDS: Final = 0.1
_EXIT_SECONDS: Final = 10.0
"""How long processes may take to exit once their run has ended, or one of them has failed."""


class LostProcessError(IsoVizError):
    """One of the processes of a run ended without a word."""


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
            raise InputError(
                f"processes: the accelerate configuration has {named} (got {processes})", field="processes"
            )
        processes, file = named, str(path)
    elif processes > 1 and devices is not None:
        most, what = (len(devices.slots), "GPU") if devices.on_gpu else (devices.cores, "core")
        if processes > most:
            plural = "" if most == 1 else "s"
            raise InputError(f"processes: this machine has {most} {what}{plural} (got {processes})", field="processes")
    batch = asked.get("batch_size", RunConfig.model_fields["batch_size"].default)
    if batch < processes:
        raise InputError(
            f"batch_size: needs a row for each of the {processes} processes (got {batch})", field="batch_size"
        )
    return {"processes": processes, "accelerate_config": file}


def checked_file(file: str) -> tuple[Path, str, int]:
    """An accelerate configuration: its full path, its `distributed_type`, and how many processes it starts on all its machines.

    Raises:
        InputError: it is not there, this process may not read it, or it does not describe a launch that training knows.
    """
    import yaml  # not in the core installation

    path = boundary.file(fence.resolve(file, "accelerate_config"), "accelerate_config").resolve()
    with boundary.parsing(f"{path.name} cannot be read as YAML", "accelerate_config"):
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    found = content if isinstance(content, dict) else {}
    kind, processes = found.get("distributed_type", "NO"), found.get("num_processes")
    if kind not in _TYPES or found.get("compute_environment", "LOCAL_MACHINE") != "LOCAL_MACHINE":
        raise InputError(
            f"accelerate_config: distributed_type '{shortened(kind)}' (allowed: {', '.join(_TYPES)}, on LOCAL_MACHINE)",
            field="accelerate_config",
        )
    if not isinstance(processes, int) or not 1 <= processes <= 1024:
        raise InputError(
            f"accelerate_config: num_processes must be 1 to 1024 (got {shortened(processes)})",
            field="accelerate_config",
        )
    if kind == _ALONE and processes > 1:
        raise InputError(
            f"accelerate_config: distributed_type '{_ALONE}' starts one process (got num_processes: {processes})",
            field="accelerate_config",
        )
    return path, kind, processes


# -------------------------------------------------------------------------------------------------------------- training


def train(
    config: RunConfig, emit: Callable[[Event], None], should_stop: Callable[[], bool], run_dir: Path, resume: bool
) -> None:
    """As `isoviz.training.loop.train`, in the processes that the configuration asks for. All of them are gone when it returns.

    Raises:
        Exception: what the first process that failed raised.
        LostProcessError: one was killed.
    """
    order = {"config": config.model_dump_json(), "run_dir": str(run_dir.absolute()), "resume": resume}
    key = secrets.token_bytes(32)
    # without an address: a socket file in a private folder, which no other account can reach
    with Listener(backlog=config.processes, authkey=key) as listener:
        members = _Members(listener)
        launcher = _launched(config, str(listener.address), key, run_dir)
        try:
            members.report(order, launcher, emit, should_stop)
        finally:
            launcher.kill()
            members.close()


def _launched(config: RunConfig, address: str, key: bytes, run_dir: Path) -> Process:
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
    command += ["--mixed_precision", "no", "-m", "isoviz.training.member"]  # the precision is the run's, see `Setup`
    variables = {name: value for name, value in environment(slot).items() if name not in _OUTER_LAUNCH}
    variables |= {ADDRESS: address, KEY: key.hex(), "PYTHONSAFEPATH": "1"}
    run_dir.mkdir(parents=True, exist_ok=True)
    with (run_dir / LOG).open("ab") as log:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=variables,
            start_new_session=True,  # Ctrl-C is for this process, which asks the others to stop after their step
            text=True,
        )
    return Process(child.pid, psutil.Process(child.pid).create_time(), child)


class _Members:
    """The connections of a run's processes on this machine.

    Args:
        listener: where they call.
    """

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._ranks: dict[Any, int] = {}  # by Connection, on Windows by PipeConnection
        self._first: Connection | None = None
        self._failure: BaseException | None = None
        self._fresh = True  # no failure before the messages at hand
        self._closed = False
        self._thread = threading.Thread(target=self._accept, name="members", daemon=True)
        self._thread.start()

    def report(
        self,
        order: Mapping[str, Any],
        launcher: Process,
        emit: Callable[[Event], None],
        should_stop: Callable[[], bool],
    ) -> None:
        """Until the run has ended or failed: events to `emit`, the request to stop to the first process."""
        asked, deadline, ended = False, float("inf"), False
        while time.monotonic() < deadline:
            gone = launcher.gone  # before the messages: what was sent until then is among them
            if self._first is not None and not asked and should_stop():
                asked = True
                _answer(self._first, STOP)
            waiting = wait(list(self._ranks), _POLL_SECONDS)
            ready = [connection for connection in list(self._ranks) if connection in waiting]
            killed: list[int] = []
            for connection in ready:
                event = self._received(connection, order, killed)
                if event is not None:
                    emit(event)
                    _answer(connection, STORED)
                    ended = ended or event.kind in ENDINGS
            self._judge(killed)
            if (ended or self._failure is not None) and deadline == float("inf"):
                deadline = time.monotonic() + _EXIT_SECONDS
            if gone and not ready:
                break
        if ended:
            return
        raise self._failure or LostProcessError(
            f"the processes of the run ended with exit code {launcher.exit_code}", advice=f"See {LOG} in its folder."
        )

    def close(self) -> None:
        """Let go of all connections."""
        self._closed = True
        with suppress(OSError):  # wakes the thread that waits for calls
            Client(self._listener.address).close()
        self._thread.join()
        for connection in list(self._ranks):
            connection.close()

    def _accept(self) -> None:
        while not self._closed:
            with suppress(OSError, EOFError, AuthenticationError):  # not one of ours
                connection = self._listener.accept()
                self._ranks[connection] = -1

    def _judge(self, killed: list[int]) -> None:
        """Where processes ended without a word, that is the cause of what the others, who cannot reach them, fail with just then."""
        if killed and (self._failure is None or (self._fresh and not isinstance(self._failure, IsoVizError))):
            self._failure = LostProcessError(
                f"process {killed[0] + 1} was killed",
                advice="Its memory may have run out: try a smaller batch size. Resume continues from the last checkpoint.",
            )
        self._fresh = self._failure is None

    def _received(self, connection: Connection, order: Mapping[str, Any], killed: list[int]) -> Event | None:
        """The event in a message. Another message is dealt with; a connection that ends early adds its process to `killed`."""
        try:
            what, value = receive(connection)
        except (EOFError, OSError):
            rank = self._ranks.pop(connection)
            if self._first is connection:
                self._first = None
            if rank >= 0:
                killed.append(rank)
            return None
        match what:
            case "rank":
                self._ranks[connection] = value
                if value == 0:
                    self._first = connection
                    _answer(connection, order)
            case "event":
                return parse_event(value)
            case "failed":
                self._failure = self._failure or errors.from_json(value)
                self._ranks[connection] = -1
            case "done":
                self._ranks[connection] = -1
        return None


def _answer(connection: Connection, message: object) -> None:
    with suppress(OSError):  # it is gone, which its end of the connection tells
        send(connection, message)


# ------------------------------------------------------------------------------------------------------------- messages


def send(connection: Connection, message: object) -> None:
    """Send JSON. Raises OSError where the other end is gone."""
    connection.send_bytes(json.dumps(message).encode())


def receive(connection: Connection) -> Any:
    """What `send` sent. Raises EOFError or OSError where the other end is gone."""
    return json.loads(connection.recv_bytes())

"""Background processes: starting them, checking whether they are alive, and ending them with all their children."""

from __future__ import annotations

import gc
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import nullcontext, suppress
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, Final

import psutil

from isoviz import devices
from isoviz.home import make_private

_PACKAGE_PARENT: Final = Path(__file__).resolve().parents[2]
_SIGTERM_SECONDS: Final = 0.15
_SIGKILL_SECONDS: Final = 20.0
"""Seconds to wait for a killed process to disappear on a busy machine."""
_FORK_SECONDS: Final = 10.0
"""Seconds to wait for a fork, which usually takes hundredths of a second."""


def is_alive(pid: int, started: float) -> bool:
    """Whether the process with this id and start time is running (a zombie is not)."""
    try:
        process = psutil.Process(pid)
        # Both come from the same clock ticks, but the boot time added to them may have been corrected.
        return abs(process.create_time() - started) < 1.0 and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


class Process:
    """A background process, started here or adopted, with all its children.

    Args:
        pid, started: its process id and start time.
        child: its handle, if this process started it; otherwise its exit code is unknown.
    """

    def __init__(self, pid: int, started: float, child: subprocess.Popen[str] | None = None) -> None:
        self.pid = pid
        self.started = started
        self._child = child

    @property
    def gone(self) -> bool:
        """Whether the process itself has ended."""
        if self._child is not None:
            return self._child.poll() is not None
        return not is_alive(self.pid, self.started)

    @property
    def exit_code(self) -> int | None:
        """Its exit code, negative for a signal; None if it is alive or not our child."""
        return None if self._child is None else self._child.poll()

    def kill(self) -> None:
        """End the process with all its children, first by SIGTERM, then by SIGKILL, and wait until they are gone or 20 s have passed."""
        members = self._members()
        for force in (False, True):
            for member in members:
                with suppress(psutil.NoSuchProcess):
                    member.kill() if force else member.terminate()
            _, members = psutil.wait_procs(members, timeout=_SIGKILL_SECONDS if force else _SIGTERM_SECONDS)
            # Look again for processes forked meanwhile; zombies wait for their parent and hold nothing.
            members = list({*members, *self._members()})
        if self._child is not None:
            with suppress(subprocess.TimeoutExpired):  # it waits for a device
                self._child.wait(timeout=_SIGKILL_SECONDS)

    def _members(self) -> list[psutil.Process]:
        """The live members of its process group, and its descendants, which may have left the group."""
        members: set[psutil.Process] = set()
        if is_alive(self.pid, self.started):
            with suppress(psutil.NoSuchProcess):
                leader = psutil.Process(self.pid)
                members |= {leader, *leader.children(recursive=True)}
        for process in psutil.process_iter():
            try:
                # Windows has no process groups, but a child keeps its parent's id after the parent has ended.
                if sys.platform == "win32":
                    ours = process.ppid() == self.pid and process.create_time() >= self.started
                else:
                    ours = os.getpgid(process.pid) == self.pid
                if ours and process.status() != psutil.STATUS_ZOMBIE:
                    members.add(process)
            except (psutil.Error, OSError):
                continue
        return list(members)


class Worker(Process):
    """A process that waits for orders (`isoviz.jobs.worker`). It exits if this process ends before sending one.

    Args:
        prepare: its preparation, as `MODULE` or `MODULE:FUNCTION`; empty: none.
        slot: its device slot, such as `cpu` or `cuda:1`, the only visible device; `any` for all devices.
        log: log file until it gets an order; None: this process's standard error.
        fork: on Linux, carry out each order in a fork, which starts without imports. Only if `prepare` does nothing but import: after
            parallel computations, OpenMP hangs in a fork.
        variables: further variables of its environment.
    """

    def __init__(
        self,
        prepare: str,
        slot: str,
        log: Path | None,
        *,
        fork: bool = False,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        fork = fork and sys.platform == "linux"  # on other systems, libraries break in a forked process
        # -P: the current folder must not shadow modules.
        command = [sys.executable, "-P", "-m", "isoviz.jobs.worker"]
        command += ["--prepare", prepare] * bool(prepare) + ["--fork"] * fork
        # A separate process group, so that it can be ended with its children, and a Ctrl+C in a terminal does not reach it.
        options: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            options = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
        if log is not None:
            make_private(log.parent)
        with nullcontext() if log is None else log.open("ab") as output:
            child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,  # for answers only, see `isoviz.jobs.answering`
                stderr=output,
                encoding="utf-8",
                env={**environment(slot), **variables},
                **options,
            )
        assert child.stdin is not None and child.stdout is not None
        _children.append(child)
        super().__init__(child.pid, psutil.Process(child.pid).create_time(), child)
        self.answers: IO[str] = child.stdout
        self._orders: IO[str] = child.stdin
        self._forks: bool | None = None if fork else False
        self._codes: dict[int, int | None] = {}
        self._newest: int | None = None
        self._unread = b""

    def order(self, call: str, arguments: Mapping[str, Any], log: Path) -> Process:
        """Send an order. Returns the process that carries it out, a fork or the worker itself, which outlives this one.

        Args:
            call: `MODULE:FUNCTION`, which returns the exit code.
            arguments: by name; JSON.
            log: log file from now on.

        Raises:
            OSError: the worker has died or does not respond.
        """
        forks, self._newest = self.forks, None
        self.send({"call": call, "arguments": dict(arguments), "log": str(log)})
        if not forks:
            self._orders.close()
            return self
        self._wait(lambda: self._newest is not None or self.gone)
        if self._newest is None:
            raise OSError("the prepared worker does not respond")
        return _Fork(self, self._newest)

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a line of JSON. Raises OSError if the worker has died."""
        self._orders.write(json.dumps(message) + "\n")
        self._orders.flush()

    @property
    def forks(self) -> bool | None:
        """Whether it forks; None until all imports are finished."""
        self._listen()
        return self._forks

    @property
    def in_use(self) -> bool:
        """Whether any of its forks is running."""
        self._listen()
        return None in self._codes.values()

    def code_of(self, pid: int) -> int | None:
        """The exit code of an ended fork; None if the worker ended first."""
        self._wait(lambda: self._codes[pid] is not None or self.gone)
        return self._codes[pid]

    def dismiss(self) -> None:
        """End the worker; its forks continue."""
        assert self._child is not None
        self._child.kill()
        self._child.wait()
        with suppress(OSError):  # a line that was not sent
            self._orders.close()

    def _wait(self, true: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _FORK_SECONDS
        while not true() and time.monotonic() < deadline:
            time.sleep(0.002)
            self._listen()

    def _listen(self) -> None:
        while self._forks is not False and select.select([self.answers], [], [], 0)[0]:
            received = os.read(self.answers.fileno(), 4096)
            *lines, self._unread = (self._unread + received).split(b"\n")
            for report in map(json.loads, lines):
                if "forks" in report:
                    self._forks = report["forks"]
                    continue
                self._codes[report["pid"]] = report["code"]
                if report["code"] is None:
                    self._newest = report["pid"]
            if not received:
                break


class _Fork(Process):
    def __init__(self, parent: Worker, pid: int) -> None:
        super().__init__(pid, psutil.Process(pid).create_time())
        self._parent = parent

    @property
    def exit_code(self) -> int | None:
        return self._parent.code_of(self.pid) if self.gone else None


_children: list[subprocess.Popen[str]] = []


def reap() -> None:
    """Collect the exit codes of ended children, which otherwise stay in the process table until this process ends."""
    _children[:] = [child for child in _children if child.poll() is None]


def environment(slot: str) -> dict[str, str]:
    """The environment of a process that should see only one device slot; `any` for all devices."""
    path = os.pathsep.join(filter(None, [str(_PACKAGE_PARENT), os.environ.get("PYTHONPATH", "")]))
    env = {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1"}
    share_cores(env)
    return env | devices.environment(slot)


def share_cores(environment: MutableMapping[str, str]) -> None:
    """Let a process's threads spin only briefly before they sleep while waiting. Call it before importing torch.

    By default they spin for long, which is expensive next to a browser, the server or a second run. Sleeping immediately would slow
    down small encoders, whose steps consist of thousands of short waits.
    """
    environment.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    environment.setdefault("GOMP_SPINCOUNT", "1000")


def collect_rarely() -> None:
    """Collect cyclic garbage less often than Python's default, with which importing torch and transformers takes a fifth longer."""
    gc.set_threshold(100_000)

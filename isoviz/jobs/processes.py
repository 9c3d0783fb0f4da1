"""Background processes: starting one, telling whether it lives, and ending it with everything that it started."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any, Final

import psutil

_PACKAGE_PARENT: Final = Path(__file__).resolve().parents[2]
_SIGTERM_SECONDS: Final = 0.15
_SIGKILL_SECONDS: Final = 20.0
"""Nothing survives a SIGKILL, but a crowded machine takes its time to bury the dead."""
_FORK_SECONDS: Final = 10.0
"""A fork takes hundredths of a second; a crowded machine may take longer."""


def is_alive(pid: int, started: float) -> bool:
    """Whether the process that had this id and start time still runs (a zombie does not)."""
    try:
        process = psutil.Process(pid)
        # Both come from the same clock ticks, but the boot time they are added to may be corrected meanwhile.
        return abs(process.create_time() - started) < 1.0 and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


class Process:
    """A background process, ours or adopted, with everything that it started.

    Args:
        pid, started: its process id and start time.
        child: its handle, if this process started it; without one its exit code cannot be known.
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
        """Its exit code, negative for a signal; None if it lives or is not our child."""
        return None if self._child is None else self._child.poll()

    def kill(self) -> None:
        """End the process and everything it started, and wait until all of it is gone: politely first, then by force."""
        members = self._members()
        for force in (False, True):
            for member in members:
                with suppress(psutil.NoSuchProcess):
                    member.kill() if force else member.terminate()
            _, members = psutil.wait_procs(members, timeout=_SIGKILL_SECONDS if force else _SIGTERM_SECONDS)
            # What was forked while we looked is found now; zombies wait for their parent and hold nothing.
            members = list({*members, *self._members()})
        if self._child is not None:
            self._child.wait(timeout=_SIGKILL_SECONDS)

    def _members(self) -> list[psutil.Process]:
        """The living members of its process group, and its descendants, some of which may have left the group."""
        members: set[psutil.Process] = set()
        if is_alive(self.pid, self.started):
            with suppress(psutil.NoSuchProcess):
                leader = psutil.Process(self.pid)
                members |= {leader, *leader.children(recursive=True)}
        for process in psutil.process_iter():
            try:
                # Windows has no groups, but there a child keeps its parent's number after the parent is gone.
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
    """A process that waits for an order. If this process ends before giving one, it exits.

    Args:
        pid: its process id.
        orders: its standard input.
        log: the file that takes its output until it has an order.
        child: see `Process`.
    """

    def __init__(self, pid: int, orders: IO[str], log: Path, child: subprocess.Popen[str] | None = None) -> None:
        super().__init__(pid, psutil.Process(pid).create_time(), child)
        self._orders = orders
        self.log = log

    def order(self, call: str, arguments: Mapping[str, Any], log: Path) -> None:
        """Say what to do; from now on it outlives this process.

        Args:
            call: `MODULE:FUNCTION`, which returns the exit code.
            arguments: by name; JSON.
            log: the file that takes its output from now on.

        Raises:
            OSError: it died before.
        """
        with self._orders as line:
            line.write(json.dumps({"call": call, "arguments": dict(arguments), "log": str(log)}) + "\n")


class Spare(Worker):
    """A worker that first imports what its order needs. On Linux it can then fork others, which start without imports.

    Args:
        prepare: what it does first, as `MODULE` or `MODULE:FUNCTION`; empty: nothing.
        slot: the device slot it is for, such as `cpu` or `cuda:1`, and it sees no other device; `any` for all of them.
        log: the file that takes its output until it has an order.
        fork: let it fork, on Linux; only where `prepare` does no more than import. After parallel computations OpenMP hangs in a fork.
    """

    def __init__(self, prepare: str, slot: str, log: Path, *, fork: bool = False) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        # -P: the current folder must not shadow modules.
        command = [sys.executable, "-P", "-m", "isoviz.jobs.worker", *(["--prepare", prepare] if prepare else [])]
        # A separate group, so that ending it ends what it started and a Ctrl+C in a terminal does not reach it.
        options: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            options = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
        self._channel: socket.socket | None = None
        with ExitStack() as ours:
            output = ours.enter_context(log.open("wb"))
            if fork and sys.platform == "linux":  # elsewhere libraries break in a forked process
                self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                self._channel.setblocking(False)
                options["pass_fds"] = [ours.enter_context(theirs).fileno()]
                command += ["--channel", str(theirs.fileno())]
            child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
                env=environment(slot),
                **options,
            )
        assert child.stdin is not None
        _children.append(child)
        super().__init__(child.pid, child.stdin, log, child)
        self._forks: bool | None = None if self._channel is not None else False
        self._forked: dict[int, int | None] = {}
        self._newest: int | None = None

    @property
    def forks(self) -> bool | None:
        """Whether it can fork; None until it has imported everything."""
        self._listen()
        return self._forks

    @property
    def in_use(self) -> bool:
        """Whether a process that it forked is running."""
        self._listen()
        return None in self._forked.values()

    def fork(self) -> Worker:
        """A new process that has imported what this one has.

        Raises:
            OSError: this one died, or does not answer.
        """
        assert self._channel is not None
        read, write = os.pipe()
        orders = os.fdopen(write, "w", encoding="utf-8")
        try:
            self._newest = None
            socket.send_fds(self._channel, [b"fork"], [read])
            self._wait(lambda: self._newest is not None or self.gone)
            if self._newest is None:
                raise OSError("the spare process does not answer")
            return _Fork(self, self._newest, orders)
        except (OSError, psutil.Error) as error:
            orders.close()
            raise OSError(str(error)) from error
        finally:
            os.close(read)

    def code_of(self, pid: int) -> int | None:
        """The exit code of a process that it forked and that has ended; None if this one ended before."""
        self._wait(lambda: self._forked[pid] is not None or self.gone)
        return self._forked[pid]

    def dismiss(self) -> None:
        """End it; processes that it forked run on."""
        assert self._child is not None
        self._child.kill()
        self._child.wait()
        self._orders.close()
        if self._channel is not None:
            self._channel.close()

    def _wait(self, true: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _FORK_SECONDS
        while not true() and time.monotonic() < deadline:
            time.sleep(0.002)
            self._listen()

    def _listen(self) -> None:
        """Read what it reports."""
        with suppress(OSError):  # nothing new, or it ended
            while self._channel is not None and (message := self._channel.recv(256)):
                report = json.loads(message)
                if "forks" in report:
                    self._forks = report["forks"]
                    continue
                self._forked[report["pid"]] = report["code"]
                if report["code"] is None:
                    self._newest = report["pid"]


class _Fork(Worker):
    """A process forked by a spare, which knows its exit code."""

    def __init__(self, parent: Spare, pid: int, orders: IO[str]) -> None:
        super().__init__(pid, orders, parent.log)
        self._parent = parent

    @property
    def exit_code(self) -> int | None:
        return self._parent.code_of(self.pid) if self.gone else None


_children: list[subprocess.Popen[str]] = []


def reap() -> None:
    """Take the exit codes of children that have ended: else they stay in the process table until this process ends."""
    _children[:] = [child for child in _children if child.poll() is None]


def environment(slot: str) -> dict[str, str]:
    """The environment of a process that shall see one device slot only; `any` for all devices."""
    path = os.pathsep.join(filter(None, [str(_PACKAGE_PARENT), os.environ.get("PYTHONPATH", "")]))
    env = {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1"}
    share_cores(env)
    if slot == "cpu":
        env |= {"CUDA_VISIBLE_DEVICES": "", "ACCELERATE_USE_CPU": "true"}
    elif slot.startswith("cuda:"):
        env["CUDA_VISIBLE_DEVICES"] = visible_devices([slot])
    return env


def visible_devices(slots: Iterable[str]) -> str:
    """CUDA_VISIBLE_DEVICES of a process that shall see these CUDA slots only; they count within what this process may see."""
    visible = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    indices = [int(slot.partition(":")[2]) for slot in slots]
    return ",".join(visible[index] if visible else str(index) for index in indices)


def share_cores(environment: MutableMapping[str, str]) -> None:
    """Let a process's threads spin only briefly, then sleep, while they wait for each other; call it before torch is imported.

    By default they spin for long. Beside a browser, the server or a second run that costs a great deal; sleeping at once
    costs small encoders, whose steps are made of thousands of short waits. `benchmarks/waiting.py` measures both.
    """
    environment.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    environment.setdefault("GOMP_SPINCOUNT", "1000")

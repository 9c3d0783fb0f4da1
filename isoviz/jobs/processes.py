"""Background processes: starting one, telling whether it lives, and ending it with everything that it started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import psutil

_PACKAGE_PARENT: Final = Path(__file__).resolve().parents[2]
_SIGTERM_SECONDS: Final = 0.15
_SIGKILL_SECONDS: Final = 20.0
"""Nothing survives a SIGKILL, but a crowded machine takes its time to bury the dead."""


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


class Spare(Process):
    """A process that imports what its order will need and then waits for it. Without one it exits when this process does.

    Args:
        prepare: what it does first, as `MODULE` or `MODULE:FUNCTION`; empty: nothing.
        slot: the device slot it is for, such as `cpu` or `cuda:1`, and it sees no other device; `any` for all of them.
        log: the file that takes its output until it has an order.
    """

    def __init__(self, prepare: str, slot: str, log: Path) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        self.log = log
        # -P: the folder that someone happens to be in must not shadow modules.
        command = [sys.executable, "-P", "-m", "isoviz.jobs.worker", *(["--prepare", prepare] if prepare else [])]
        # A separate group, so that ending it ends what it started and a Ctrl+C in a terminal does not reach it.
        group: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            group = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
        with log.open("wb") as output:
            child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
                env=environment(slot),
                **group,
            )
        _children.append(child)
        super().__init__(child.pid, psutil.Process(child.pid).create_time(), child)

    def order(self, call: str, arguments: Mapping[str, Any], log: Path) -> None:
        """Tell it what to do; from now on it outlives this process.

        Args:
            call: `MODULE:FUNCTION`, which returns the exit code.
            arguments: by name; JSON.
            log: the file that takes its output from now on.

        Raises:
            OSError: it died before.
        """
        assert self._child is not None and self._child.stdin is not None
        with self._child.stdin as line:
            line.write(json.dumps({"call": call, "arguments": dict(arguments), "log": str(log)}) + "\n")


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

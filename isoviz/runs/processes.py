"""Worker processes: starting one, or a spare that waits for its order; telling whether it lives, and ending all of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import psutil

from isoviz.runs.worker import DEFAULT_TRAIN
from isoviz.training.devices import share_cores

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


class Worker:
    """A worker process, ours or adopted, with everything that it started.

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
        found: set[psutil.Process] = set()
        if is_alive(self.pid, self.started):
            with suppress(psutil.NoSuchProcess):
                leader = psutil.Process(self.pid)
                found |= {leader, *leader.children(recursive=True)}
        for process in psutil.process_iter():
            try:
                # Windows has no groups, but there a child keeps its parent's number after the parent is gone.
                if sys.platform == "win32":
                    ours = process.ppid() == self.pid and process.create_time() >= self.started
                else:
                    ours = os.getpgid(process.pid) == self.pid
                if ours and process.status() != psutil.STATUS_ZOMBIE:
                    found.add(process)
            except (psutil.Error, OSError):
                continue
        return list(found)


class Waiting(Worker):
    """A process that imports what its order will need and then waits for it. Without one it exits when this process does.

    Args:
        module, arguments: what to run, as `python -m MODULE ARGUMENTS`; it reads its order with `isoviz.runs.waiting`.
        slot: the device slot it is for, such as `cpu` or `cuda:1`, and it sees no other device; `any` for all of them.
        log: the file that takes its output until it has an order.
    """

    def __init__(self, module: str, arguments: Sequence[str], slot: str, log: Path) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        self.log = log
        child = spawn(module, arguments, slot, log, stdin=subprocess.PIPE)
        super().__init__(child.pid, psutil.Process(child.pid).create_time(), child)

    def order(self, what: Mapping[str, Any]) -> subprocess.Popen[str]:
        """Tell it what to do; from now on it outlives this process.

        Returns:
            Its handle, for whoever waits for its end.

        Raises:
            OSError: it died before.
        """
        assert self._child is not None and self._child.stdin is not None
        with self._child.stdin as line:
            line.write(json.dumps(what) + "\n")
        return self._child


class Spare(Waiting):
    """A worker that has no run yet.

    Args:
        slot, log: see `Waiting`.
        train: see `isoviz.runs.worker`.
    """

    def __init__(self, slot: str, log: Path, train: str = DEFAULT_TRAIN) -> None:
        super().__init__("isoviz.runs.worker", ["--train", train], slot, log)

    def hand(self, store_url: str, run_id: str) -> None:
        """Make it the worker of a run; raises like `order`."""
        self.order({"store": store_url, "run": run_id})


def spawn(
    module: str, arguments: Sequence[str], slot: str, log: Path, stdin: int = subprocess.DEVNULL
) -> subprocess.Popen[str]:
    """Start `python -m MODULE ARGUMENTS` in a process group of its own, with its output in `log`; `slot` as for `environment`."""
    # -P: the folder that someone happens to be in must not shadow modules.
    command = [sys.executable, "-P", "-m", module, *arguments]
    groups: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        groups = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
    with log.open("wb") as output:
        return subprocess.Popen(
            command, stdin=stdin, stdout=output, stderr=subprocess.STDOUT, text=True, env=environment(slot), **groups
        )


def environment(slot: str) -> dict[str, str]:
    """The environment of a worker that shall see one device slot only; `any` for all devices."""
    path = os.pathsep.join(filter(None, [str(_PACKAGE_PARENT), os.environ.get("PYTHONPATH", "")]))
    env = {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1"}
    share_cores(env)
    kind, _, index = slot.partition(":")
    if kind == "cpu":
        env |= {"CUDA_VISIBLE_DEVICES": "", "ACCELERATE_USE_CPU": "true"}
    elif kind == "cuda":
        # A slot counts within what this process may see.
        visible = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
        env["CUDA_VISIBLE_DEVICES"] = visible[int(index)].strip() if visible else index
    return env

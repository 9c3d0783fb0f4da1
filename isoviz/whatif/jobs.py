"""Encodings and layers on their way: one process per key, whoever asks. Its files are those of a view's job, and so is its care."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock

from isoviz.exploring import jobs as views
from isoviz.exploring.jobs import State
from isoviz.exploring.progress import write_json
from isoviz.exploring.worker import LOG, PROCESS, REQUEST
from isoviz.runs.processes import environment
from isoviz.whatif.request import Request, root

__all__ = ["State", "look", "start", "stop"]


def look(key: str) -> State:
    """How the job of this key stands: `none`, `running`, `done`, `failed` or `lost`."""
    return views.look(key, at=root())


def stop(key: str) -> None:
    """End the job of this key with everything it started, and forget it; nothing if there is none."""
    views.stop(key, at=root())


def start(request: Request) -> State:
    """Start the job unless it runs or is done; a failed or lost one is started anew."""
    key, folder = request.key, root() / "jobs" / request.key
    locks = root() / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    with FileLock(locks / f"{key}.lock"):
        state = look(key)
        if state.kind in ("running", "done"):
            return state
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        write_json(folder / REQUEST, request.as_json())
        child = _spawn(folder)
        # asked for its exit code when it ends, whoever looks then: else it stays a zombie
        threading.Thread(target=child.wait, name=f"what-if {key[:8]}", daemon=True).start()
        # The worker writes the same of itself. If it is done with everything already, its folder is gone.
        with contextlib.suppress(psutil.NoSuchProcess, FileNotFoundError):
            write_json(folder / PROCESS, {"pid": child.pid, "started": psutil.Process(child.pid).create_time()})
    return look(key)


def _spawn(folder: Path) -> subprocess.Popen[bytes]:
    # -P: the folder that someone happens to be in must not shadow modules.
    command = [sys.executable, "-P", "-m", "isoviz.whatif.worker", str(folder)]
    groups: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        groups = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
    with (folder / LOG).open("wb") as log:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment("any"), **groups
        )

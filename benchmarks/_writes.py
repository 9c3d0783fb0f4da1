"""What a process writes outside the folders that are its own, by Python's own audit events."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_CHANGES = (
    "os.mkdir",
    "os.remove",
    "os.rmdir",
    "os.rename",
    "os.symlink",
    "sqlite3.connect",
    "shutil.rmtree",
    "os.chmod",
    "os.chown",
)
_FOLDER = {"os.mkdir": 2, "os.chmod": 2, "os.chown": 3}
"""Event → place of its argument for an open folder, where it is not the second."""
_DEVICES = ("/dev/null", "/dev/shm", "/proc/self")
_STARTER = """\
import sys
sys.path.append({benchmarks!r})
import _writes
_writes.log({allowed!r}, {log!r})
"""


def watch(allowed: Iterable[Path | str], tell: Callable[[str], None]) -> None:
    """From now on, call `tell` for every change of a path outside `allowed`, except bytecode."""
    inside = (*map(str, allowed), *_DEVICES)

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            if not isinstance(path, (str, bytes)) or not (flags & _WRITES or (mode and set(mode) & set("wax+"))):
                return
        elif event in _CHANGES:
            path = arguments[1 if event in ("os.rename", "os.symlink") else 0]
            if event == "sqlite3.connect" and "mode=ro" in str(path):
                return
            if any(isinstance(argument, int) and argument >= 0 for argument in arguments[_FOLDER.get(event, 1) :]):
                return  # relative to an open folder, as `shutil.rmtree` works; that folder was named before
        else:
            return
        target = os.path.abspath(os.fsdecode(path)) if isinstance(path, (str, bytes, os.PathLike)) else ""
        if target and not target.startswith(inside) and "__pycache__" not in target:
            tell(f"{event} {target}")

    sys.addaudithook(note)


def log(allowed: Iterable[str], path: str) -> None:
    """Watch this process, and write a line to a file for each such change."""
    # opened once and by number: a hook that opens a file would meet itself
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    watch(allowed, lambda line: os.write(file, f"{line}\n".encode(errors="replace")) and None)


def starter(folder: Path, allowed: Iterable[Path], path: Path) -> str:
    """A folder for PYTHONPATH: every Python process started with it, and its child processes, log their writes.

    Returns:
        The folder, which holds a `sitecustomize`.
    """
    folder.mkdir(parents=True)
    text = _STARTER.format(benchmarks=str(Path(__file__).parent), allowed=[str(one) for one in allowed], log=str(path))
    (folder / "sitecustomize.py").write_text(text)
    return str(folder)

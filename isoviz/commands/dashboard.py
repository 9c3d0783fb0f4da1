"""The dashboard's programs. The engine does not import the dashboard, so each is a process of its own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from isoviz import input_validation
from isoviz.errors import InputError, install

_INSTALLED = Path(__file__).resolve().parents[1] / "screens"  # in the wheel the dashboard lies inside the package
ROOT = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).resolve().parents[2]


def require(verb: str, part: str = "", *, package: str = "streamlit") -> Path:
    """A part of the dashboard. Raises `InputError` if the package that it needs is not there."""
    if importlib.util.find_spec(package) is None:
        raise InputError(f"{verb}: needs the package {package}, which is not installed; run `{install('app')}`")
    return ROOT / "dashboard" / part


def environment() -> dict[str, str]:
    """This process's variables, and the checkout on the import path."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path}


def render(module: str, *arguments: str, request: bytes = b"", **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run a module of the dashboard that prints or writes a file; `request` is its standard input."""
    command = [sys.executable, "-m", f"dashboard.{module}", *arguments]
    return subprocess.run(command, env={**environment(), **variables}, input=request, capture_output=True, check=False)


def check_file(out: Path) -> None:
    """Raise `InputError` where no file can be written."""
    if not os.path.isdir(out.parent):  # unlike Path.is_dir, false for names that are too long
        raise InputError(f"out: there is no folder '{out.parent}'", field="out")
    if os.path.isdir(out):
        raise InputError(f"out: '{out}' is a folder; name a file", field="out")


def save(rendering: subprocess.CompletedProcess[bytes], out: Path, *, fields: Sequence[str] = ()) -> int:
    """Write the HTML file that a module has printed, and return the exit code.

    Args:
        fields: the arguments that it may refuse, with exit code 2 and one line.
    """
    if rendering.returncode:
        told = rendering.stderr.decode(errors="replace")
        if fields and rendering.returncode == 2:
            line = told.strip().splitlines()[-1]
            raise InputError(line, field=next((name for name in fields if line.startswith(f"{name}: ")), None))
        sys.stderr.write(told)
        return 1
    try:
        out.write_bytes(rendering.stdout)
    except OSError as error:
        raise InputError(f"out: '{out}' cannot be written to: {input_validation.reason(error)}", field="out") from None
    if out.is_file():  # a device or a pipe is no file to open
        print(f"{out}: {len(rendering.stdout) / 1e6:.2f} MB; open it in any browser")
    return 0

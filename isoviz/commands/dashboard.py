"""The dashboard's programs. The engine does not import the dashboard, so each is a process of its own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from isoviz.errors import InputError

_INSTALLED = Path(__file__).resolve().parents[1] / "screens"  # in the wheel the dashboard lies inside the package
ROOT = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).resolve().parents[2]


def require(verb: str, part: str, *, package: str = "streamlit") -> Path:
    """A part of the dashboard. Raises `InputError` if the package that it needs is not there."""
    if importlib.util.find_spec(package) is None:
        raise InputError(
            f"{verb}: needs the package {package}, which is not installed; run `pip install 'isoviz[app]'`"
        )
    return ROOT / "dashboard" / part


def environment() -> dict[str, str]:
    """This process's variables, and the checkout on the import path."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path}


def render(module: str, *arguments: str, request: bytes = b"", **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run a module of the dashboard that prints or writes a file; `request` is its standard input."""
    command = [sys.executable, "-m", f"dashboard.{module}", *arguments]
    return subprocess.run(command, env={**environment(), **variables}, input=request, capture_output=True, check=False)

"""The dashboard's programs. The engine does not import the dashboard, so each is a process of its own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from isoviz.errors import InputError

ROOT = Path(__file__).resolve().parents[2]


def require(verb: str, part: str, *, streamlit: bool = True) -> Path:
    """A part of the dashboard. Raises `InputError` if it, or Streamlit, is not there."""
    path = ROOT / "dashboard" / part
    if not path.exists():
        raise InputError(f"{verb}: the dashboard is only in a source checkout; run this command from one")
    if streamlit and importlib.util.find_spec("streamlit") is None:
        raise InputError(f"{verb}: streamlit is not installed; run `make app`, or `pip install -r requirements.txt`")
    return path


def environment() -> dict[str, str]:
    """This process's variables, and the checkout on the import path."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path}


def render(module: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run a module of the dashboard that prints or writes a file."""
    command = [sys.executable, "-m", f"dashboard.{module}", *arguments]
    return subprocess.run(command, env={**environment(), **variables}, capture_output=True, check=False)

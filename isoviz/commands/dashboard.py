"""The dashboard's programs and parts, by name: the engine does not import the dashboard, which in the wheel lies inside it."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

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


def module(name: str) -> ModuleType:
    """A part of the dashboard, imported into this process."""
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    return importlib.import_module(f"dashboard.{name}")

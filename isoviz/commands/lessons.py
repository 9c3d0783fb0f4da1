"""`isoviz lessons`: the playground and the lessons as one HTML file."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from isoviz.errors import InputError

ROOT = Path(__file__).resolve().parents[2]


def run(options: argparse.Namespace) -> int:
    """Write the file; its parts lie with the dashboard, which the engine does not import."""
    out = Path(options.out)
    if not (ROOT / "dashboard" / "lessons_file.py").is_file():
        raise InputError(
            "lessons: the playground lies beside the engine in a source checkout; run this command from one"
        )
    if not out.parent.is_dir():
        raise InputError(f"out: there is no folder '{out.parent}'", field="out")
    if out.is_dir():
        raise InputError(f"out: '{out}' is a folder; name a file", field="out")
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    command = [sys.executable, "-m", "dashboard.lessons_file", str(out.resolve())]
    code = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=False).returncode
    if code == 0:
        print(f"{out}: {out.stat().st_size / 1e6:.2f} MB; open it in any browser")
    return 1 if code else 0

"""`isoviz report`: write an experiment's report as one HTML file, or as Markdown with images in a zip file."""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys

from isoviz.commands.app import ROOT
from isoviz.commands.options import add_store
from isoviz.errors import InputError
from isoviz.runs.store import Store


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    parser.add_argument("experiment", metavar="EXPERIMENT", help="its name, as on the Experiments page")
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="FILE.html: one file with interactive figures; FILE.zip: Markdown, PNG and CSV (default: EXPERIMENT.html)",
    )
    add_store(parser, json=False)


def run(options: argparse.Namespace) -> int:
    """Write the file in a separate process, because the engine does not import the dashboard, which draws the figures."""
    if not (ROOT / "dashboard" / "report").is_dir():
        raise InputError("report: the dashboard is only in a source checkout; run this command from one")
    if importlib.util.find_spec("streamlit") is None:
        raise InputError("report: streamlit is not installed; run `pip install -r requirements.txt`")
    store = Store(options.store)
    if not store.list(group=options.experiment, limit=1):
        raise InputError(f"no experiment '{options.experiment}' in the store {store}")
    out = os.path.abspath(options.out or f"{options.experiment}.html".replace(os.sep, "-"))
    if not out.endswith((".html", ".zip")):
        raise InputError(f"out: expected a name that ends in .html or .zip (got {options.out})", field="out")
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "PYTHONPATH": path, "ISOVIZ_STORE": store.url}
    command = [sys.executable, "-m", "dashboard.report", options.experiment, out]
    done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True)
    if done.returncode == 2:
        raise InputError(done.stderr.strip().splitlines()[-1])
    if done.returncode:
        sys.stderr.write(done.stderr)
        return 1
    print(out)
    return 0

"""`isoviz report`: write an experiment's report as one HTML file, or as Markdown with images in a zip file."""

from __future__ import annotations

import argparse
import os
import sys

from isoviz.commands import dashboard
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
    dashboard.require("report", "report")
    store = Store(options.store)
    if not store.list(group=options.experiment, limit=1):
        raise InputError(f"no experiment '{options.experiment}' in the store {store}")
    out = os.path.abspath(options.out or f"{options.experiment}.html".replace(os.sep, "-"))
    if not out.endswith((".html", ".zip")):
        raise InputError(f"out: expected a name that ends in .html or .zip (got {options.out})", field="out")
    done = dashboard.render("report", options.experiment, out, ISOVIZ_STORE=store.url)
    if done.returncode == 2:
        raise InputError(done.stderr.decode(errors="replace").strip().splitlines()[-1])
    if done.returncode:
        sys.stderr.write(done.stderr.decode(errors="replace"))
        return 1
    print(out)
    return 0

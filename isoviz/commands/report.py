"""`isoviz report`: write an experiment's report as one HTML file."""

from __future__ import annotations

import os
import sys
from typing import Annotated

from isoviz.commands import dashboard
from isoviz.commands.options import StoreOption
from isoviz.errors import InputError
from isoviz.operations.operation import argument
from isoviz.runs.store import Store


def run(
    experiment: Annotated[str, argument("its name, as on the Experiments page", "EXPERIMENT", positional=True)],
    out: Annotated[
        str | None,
        argument("one file with interactive figures (default: EXPERIMENT.html)", "FILE"),
    ] = None,
    store: StoreOption = None,
) -> int:
    """Write the file in a separate process, because the engine does not import the dashboard, which draws the figures."""
    dashboard.require("report", "report")
    opened = Store(store)
    if not opened.list(group=experiment, limit=1):
        raise InputError(f"no experiment '{experiment}' in the store {opened}")
    target = os.path.abspath(out or f"{experiment}.html".replace(os.sep, "-"))
    if not target.endswith(".html"):
        raise InputError(f"out: expected a name that ends in .html (got {out})", field="out")
    done = dashboard.render("report", experiment, target, ISOVIZ_STORE=opened.url)
    if done.returncode == 2:
        raise InputError(done.stderr.decode(errors="replace").strip().splitlines()[-1])
    if done.returncode:
        sys.stderr.write(done.stderr.decode(errors="replace"))
        return 1
    print(target)
    return 0

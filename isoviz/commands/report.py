"""`isoviz report`: write an experiment's page as one HTML file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

from isoviz.commands import dashboard, freeze
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
    """Write the file that `isoviz freeze` makes of the experiment's page."""
    dashboard.require("report")
    opened = Store(store)
    if not opened.list(group=experiment, limit=1):
        raise InputError(f"no experiment '{experiment}' in the store {opened}")
    target = os.path.abspath(out or f"{experiment}.html".replace(os.sep, "-"))
    if not target.endswith(".html"):
        raise InputError(f"out: expected a name that ends in .html (got {out})", field="out")
    dashboard.check_file(Path(target))
    return freeze.write(f"/experiments?experiment={quote(experiment)}", Path(target), opened.url)

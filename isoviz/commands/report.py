"""`isoviz report`: write an experiment's page as one HTML file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

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
    """Write the file that *Save as one page* makes of the experiment's page. Starts nothing."""
    dashboard.require("report")
    opened = Store(store)
    if not opened.list(group=experiment, limit=1):
        raise InputError(f"no experiment '{experiment}' in the store {opened}")
    target = os.path.abspath(out or f"{experiment}.html".replace(os.sep, "-"))
    if not target.endswith(".html"):
        raise InputError(f"out: expected a name that ends in .html (got {out})", field="out")
    dashboard.check_file(Path(target))
    done = dashboard.render(
        "export.at_address",
        f"/experiments?experiment={quote(experiment)}",
        ISOVIZ_STORE=opened.url,
        ISOVIZ_RUNNER="off",  # starts no queued runs
        ISOVIZ_SPARES="off",
        STREAMLIT_LOGGER_LEVEL="error",  # no warning that no browser is connected
    )
    return dashboard.save(done, Path(target))

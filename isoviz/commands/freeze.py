"""`isoviz freeze`: write what the app shows at an address as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from isoviz.commands import dashboard
from isoviz.commands.options import StoreOption
from isoviz.errors import InputError
from isoviz.home import store_url
from isoviz.operations.operation import argument


def run(
    address: Annotated[
        str,
        argument(
            "a link of the app, such as /explore?explore_layer=2; its host does not matter", "URL", positional=True
        ),
    ],
    out: Annotated[str, argument("where to write the HTML file", "FILE")],
    with_vectors: Annotated[
        bool, argument("put the page's vectors into the file, for trying transforms on them")
    ] = False,
    all_layers: Annotated[
        bool, argument("with the vectors, put those of the model's other layers into it, too")
    ] = False,
    without_texts: Annotated[bool, argument("leave the texts of rows out of the file")] = False,
    store: StoreOption = None,
) -> int:
    """Write the file that *Save as one page* makes there. Requests nothing from the host."""
    if all_layers and not with_vectors:
        raise InputError("all_layers: only with --with-vectors", field="all_layers")
    dashboard.require("freeze")
    dashboard.check_file(Path(out))
    choices = {"with_vectors": with_vectors, "all_layers": all_layers, "without_texts": without_texts}
    return write(address, Path(out), store_url(store), *(name for name, chosen in choices.items() if chosen))


def write(address: str, out: Path, store: str, *choices: str) -> int:
    """Write what the app shows at an address; `choices` are names of options."""
    done = dashboard.render(
        "export.at_address",
        address,
        *choices,
        ISOVIZ_STORE=store,
        ISOVIZ_RUNNER="off",  # starts no queued runs
        ISOVIZ_SPARES="off",
        STREAMLIT_LOGGER_LEVEL="error",  # no warning that no browser is connected
    )
    return dashboard.save(done, out, fields=("address", "with_vectors", "all_layers", "without_texts"))

"""A page without a server with vectors inside (`isoviz.vectors.embedded` writes them)."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from isoviz.errors import shortened
from isoviz.tables.protocol import Format, Glimpse, refused, vectors_table

if TYPE_CHECKING:
    import pyarrow as pa

START: Final = '<script type="application/json" id="inside">'
"""In the page, ahead of the vectors."""
SAVED_FROM: Final = b"saved from"
"""Metadata of the table: the address that restores a saved page."""


def _recognise(glimpse: Glimpse) -> bool | None:
    return None if glimpse.text is not None else False


def _table(path: Path, rows: int | None, as_text: Collection[str]) -> pa.Table:
    problem = "is not a page with vectors inside"
    try:
        inside = json.loads(path.read_text("utf-8", errors="replace").partition(START)[2].partition("</script>")[0])
        address = str(inside.get("address", ""))
        if address:
            problem = f"was saved without its vectors; {shortened(address, 2_000)} restores it in the app"
        points = np.load(io.BytesIO(base64.b64decode(inside["npy"], validate=True)), allow_pickle=False)
        known = {name: list(map(str, values)) for name, values in inside["columns"].items()}
        table = vectors_table(points, known)
    except (ValueError, TypeError, KeyError, EOFError, AttributeError, IndexError):
        raise refused(f"'{shortened(path.name)}' {problem}") from None
    return table.slice(0, rows).replace_schema_metadata({SAVED_FROM: address} if address else None)


FORMATS = Format(
    "page",
    "a saved page",
    (".html",),
    _recognise,
    "vectors",
    table=_table,
    vectors="a page of the app, or of `isoviz page`",
)

"""Plain text: one text per line."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from isoviz.tables.protocol import Format, Glimpse
from isoviz.tables.text_files import stripped_lines

if TYPE_CHECKING:
    import pyarrow as pa


def _recognise(glimpse: Glimpse) -> bool | None:
    return False if b"\0" in glimpse.start else None


def _table(path: Path, rows: int | None, as_text: Collection[str]) -> pa.Table:
    import pyarrow as pa

    return pa.table({"text": pa.array(islice(filter(None, stripped_lines(path)), rows), pa.string())})


FORMATS = Format(
    "lines", "plain text", (".txt",), _recognise, "texts", table=_table, texts="one text per line",
    compressible=True, whole=False,
)  # fmt: skip

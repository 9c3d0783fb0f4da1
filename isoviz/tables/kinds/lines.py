"""CSV, TSV (`isoviz.tables.text_files`), and plain text with one text per line."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from isoviz.tables import text_files
from isoviz.tables.protocol import Format, Glimpse, by_ending

if TYPE_CHECKING:
    import pyarrow as pa


def _batches(path: Path, columns: list[str] | None, rows: int) -> Iterator[pa.Table]:
    yield from text_files.csv_batches(path, text_files.csv_layout(path), columns)


def _is_text(glimpse: Glimpse) -> bool | None:
    return False if b"\0" in glimpse.start else None


def _lines(path: Path, rows: int | None, as_text: Collection[str]) -> pa.Table:
    import pyarrow as pa

    return pa.table({"text": pa.array(islice(filter(None, text_files.stripped_lines(path)), rows), pa.string())})


FORMATS = (
    *(
        Format(
            slug, slug.upper(), (f".{slug}",), by_ending, "table", table=text_files.read_csv, batches=_batches,
            vectors=vectors, texts="a column", compressible=True,
        )
        for slug, vectors in (
            ("csv", "one column per dimension, or a column of lists: `[0.1, 0.2]`, `tensor([…])`, `0.1|0.2|…`, base64 of float32"),
            ("tsv", "as CSV; without a header, as the TensorFlow projector writes it; with R's row names"),
        )
    ),
    Format(
        "lines", "plain text", (".txt",), _is_text, "texts", table=_lines, texts="one text per line", compressible=True,
    ),
)  # fmt: skip

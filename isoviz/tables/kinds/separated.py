"""CSV and TSV (`isoviz.tables.text_files`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from isoviz.tables import text_files
from isoviz.tables.protocol import Format, by_ending

if TYPE_CHECKING:
    import pyarrow as pa


def _batches(path: Path, columns: list[str] | None, rows: int) -> Iterator[pa.Table]:
    yield from text_files.csv_batches(path, text_files.csv_layout(path), columns)


FORMATS = tuple(
    Format(
        slug, slug.upper(), (f".{slug}",), by_ending, "table", table=text_files.read_csv, batches=_batches,
        vectors=vectors, texts="a column", compressible=True, whole=False,
    )
    for slug, vectors in (
        ("csv", "one column per dimension, or a column of lists: `[0.1, 0.2]`, `tensor([…])`, `0.1|0.2|…`, base64 of float32"),
        ("tsv", "as CSV; without a header, as the TensorFlow projector writes it; with R's row names"),
    )
)  # fmt: skip

"""JSON lines: one object per row, or one answer of OpenAI's embeddings per line, as its batches write them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from isoviz.tables import json_rows, text_files
from isoviz.tables.protocol import Format, by_ending

if TYPE_CHECKING:
    import pyarrow as pa


def _table(path: Path, rows: int | None, as_text: Collection[str]) -> pa.Table:
    return text_files.table_of(json_rows.rows_of(islice(text_files.json_lines(path), rows)))


def _batches(path: Path, columns: list[str] | None, rows: int) -> Iterator[pa.Table]:
    objects, before = text_files.json_lines(path), 0
    while piece := json_rows.rows_of(islice(objects, rows)):
        yield text_files.table_of(piece, before, columns)
        before += len(piece)


FORMATS = Format(
    "jsonl", "JSON lines", (".jsonl", ".ndjson"), by_ending, "table", table=_table, batches=_batches, texts="a field",
    vectors="as CSV; also OpenAI's batch output and responses (`custom_id` is the id)", compressible=True, whole=False,
)  # fmt: skip

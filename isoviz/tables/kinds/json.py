"""JSON: rows or vectors, texts with their vectors, columns, or OpenAI's answers; and JSON lines, one object or answer per line."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from isoviz.tables import json_rows
from isoviz.tables.protocol import Format, by_ending, refused

if TYPE_CHECKING:
    import pyarrow as pa


def _document(path: Path, rows: int | None, as_text: Collection[str]) -> pa.Table:
    found = json_rows.rows_in(json.loads(path.read_text(encoding="utf-8-sig")))
    if not found:
        raise refused(
            f"'{path.name}' holds no vectors or rows; expected a list of objects, "
            '{"text": [0.1, …], …}, or {"embeddings": [[0.1, …], …], …}'
        )
    return json_rows.table_of(found[:rows])


def _lines(path: Path, rows: int | None, as_text: Collection[str]) -> pa.Table:
    return json_rows.table_of(json_rows.rows_of(islice(json_rows.json_lines(path), rows)))


def _batches(path: Path, columns: list[str] | None, rows: int) -> Iterator[pa.Table]:
    objects, before = json_rows.json_lines(path), 0
    while piece := json_rows.rows_of(islice(objects, rows)):
        yield json_rows.table_of(piece, before, columns)
        before += len(piece)


FORMATS = (
    Format(
        "json", "JSON", (".json",), by_ending, "table", table=_document, texts="a field", compressible=True,
        vectors="`{text: vector, …}`, `{\"embeddings\": [vector, …], \"keys\": […]}`, a list of objects or vectors, OpenAI's response",
    ),
    Format(
        "jsonl", "JSON lines", (".jsonl", ".ndjson"), by_ending, "table", table=_lines, batches=_batches, texts="a field",
        vectors="as CSV; also OpenAI's batch output and responses (`custom_id` is the id)", compressible=True,
    ),
)  # fmt: skip

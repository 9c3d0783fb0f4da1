"""JSON: a list of rows or vectors, texts with their vectors, columns, or an answer of OpenAI's embeddings."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from isoviz.tables import json_rows, text_files
from isoviz.tables.protocol import Format, by_ending, refused

if TYPE_CHECKING:
    import pyarrow as pa


def _table(path: Path, rows: int | None, as_text: Collection[str]) -> pa.Table:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise refused(f"'{path.name}' is not UTF-8 (byte {error.start:,})") from None
    found = json_rows.rows_in(content)
    if not found:
        raise refused(
            f"'{path.name}' holds no vectors or rows; expected a list of objects, "
            '{"text": [0.1, …], …}, or {"embeddings": [[0.1, …], …], …}'
        )
    return text_files.table_of(found[:rows])


FORMATS = Format(
    "json", "JSON", (".json",), by_ending, "table", table=_table, texts="a field", compressible=True, whole=False,
    vectors="`{text: vector, …}`, `{\"embeddings\": [vector, …], \"keys\": […]}`, a list of objects or vectors, OpenAI's response",
)  # fmt: skip

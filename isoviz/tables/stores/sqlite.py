"""SQLite with sqlite-vec, through apsw, because Python's own module cannot load extensions everywhere: a database file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import quote

import numpy as np

from isoviz.metrics.cloud import draw
from isoviz.tables.stores.protocol import ROWS, Address, Store, quoted, table_of

if TYPE_CHECKING:
    import pyarrow as pa

_FLOATS: Final = re.compile(r"(\w+)\s+(?:float|f32)\s*\[\d+\]", re.IGNORECASE)


class SQLite(Store):
    """Tables of sqlite-vec, and tables and views with vectors as float32 bytes or JSON lists."""

    slug = "sqlite"
    title = "SQLite with sqlite-vec"
    packages = ("apsw", "sqlite_vec")
    extra = "sqlite-vec"
    examples: ClassVar = ("sqlite:///vectors.db?table=docs",)
    holds = "table"
    samples = "rows at places drawn from all, in one scan"
    local = "file"
    schema = "main."

    def __init__(self, address: Address, path: Path | None, closing: ExitStack) -> None:
        import apsw
        import sqlite_vec

        # without a log of changes nobody else is writing: then SQLite need not make files of its own beside it
        logged = Path(f"{path}-wal").exists() or Path(f"{path}-journal").exists()
        uri = f"file:{quote(str(path))}?mode=ro{'' if logged else '&immutable=1'}"
        self._connection: Any = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        closing.callback(self._connection.close)
        self._connection.enable_load_extension(True)
        self._connection.load_extension(sqlite_vec.loadable_path())
        self._connection.enable_load_extension(False)
        self._connection.execute("PRAGMA trusted_schema = OFF")
        tables: list[Any] = self._connection.execute(
            "SELECT t.name, t.type, coalesce(s.sql, '') FROM pragma_table_list t JOIN sqlite_master s USING (name) "
            "WHERE t.schema = 'main' AND t.type <> 'shadow'"
        ).fetchall()
        hidden = tuple(f"{name}_" for name, kind, _ in tables if kind == "virtual")  # tables that hold their rows
        self.tables = {
            name: self._found(name, kind, code) for name, kind, code in tables if not name.startswith(hidden)
        }

    def _found(self, name: str, kind: str, code: str) -> list[str]:
        """The columns of vectors of a table: by its declaration, or by its first row."""
        if kind == "virtual" and "vec0" in code.lower():
            return _FLOATS.findall(code)
        import apsw

        with suppress(apsw.Error):  # a view of what is gone, a virtual table of another extension
            first = next(self._connection.execute(f"SELECT * FROM {quoted(name)} LIMIT 1"), ())
            return [column for column, value in zip(self._columns(name), first, strict=False) if _looks_like_one(value)]
        return []

    def _columns(self, name: str) -> list[str]:
        query = "SELECT name FROM pragma_table_xinfo(?) WHERE hidden <> 1"
        return [column for (column,) in self._connection.execute(query, (name,))]

    def count(self, name: str) -> int:
        return int(self._connection.execute(f"SELECT count(*) FROM {quoted(name)}").fetchone()[0])

    def batches(self, name: str, column: str, sample: int | None, seed: int) -> Iterator[pa.Table]:
        cursor = self._connection.execute(f"SELECT * FROM {quoted(name)}")
        chosen = None if sample is None else set(draw(self.count(name), sample, seed).tolist())
        rows = (row for place, row in enumerate(cursor) if chosen is None or place in chosen)
        while piece := list(islice(rows, ROWS)):
            columns = dict(zip(self._columns(name), zip(*piece, strict=True), strict=True))
            yield table_of(columns, column, list(map(_vector, columns.pop(column))))


def _looks_like_one(value: Any) -> bool:
    return (isinstance(value, bytes) and len(value) >= 8 and len(value) % 4 == 0) or (
        isinstance(value, str) and re.match(r"\s*\[\s*-?[\d.]", value) is not None
    )


def _vector(value: Any) -> Any:
    if isinstance(value, bytes):
        return np.frombuffer(value, dtype="<f4")
    return None if value is None else np.asarray(json.loads(value), dtype=np.float32)

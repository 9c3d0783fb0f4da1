"""DuckDB, through its client: a database file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from isoviz.tables.stores.protocol import ROWS, Address, Store, quoted

if TYPE_CHECKING:
    import pyarrow as pa

_COLUMNS: Final = """
    SELECT schema_name, table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal ORDER BY ALL
"""
_SETTINGS: Final[dict[str, Any]] = {
    "enable_external_access": "false",  # a view could read other files
    "autoinstall_known_extensions": "false",
    "lock_configuration": "true",
    "threads": "1",  # otherwise a sample depends on them
}


class DuckDB(Store):
    """Tables and views; the columns of lists or arrays of floating-point numbers are vectors."""

    slug = "duckdb"
    title = "DuckDB"
    packages = ("duckdb",)
    extra = "duckdb"
    examples: ClassVar = ("duckdb:///vectors.duckdb?table=docs",)
    holds = "table"
    samples = "`USING SAMPLE reservoir REPEATABLE`"
    local = "file"
    schema = "main."

    def __init__(self, address: Address, path: Path | None, closing: ExitStack) -> None:
        import duckdb

        self._connection: Any = closing.enter_context(duckdb.connect(str(path), read_only=True, config=_SETTINGS))
        self._kinds: dict[str, dict[str, str]] = {}
        self._quoted: dict[str, str] = {}
        self.tables = {}
        for space, relation, column, kind in self._connection.execute(_COLUMNS).fetchall():
            name = relation if space == "main" else f"{space}.{relation}"
            self._kinds.setdefault(name, {})[column] = kind
            self._quoted[name] = f"{quoted(space)}.{quoted(relation)}"
            self.tables.setdefault(name, []).extend([column] if kind.startswith(("FLOAT[", "DOUBLE[")) else [])

    def count(self, name: str) -> int:
        return int(self._connection.execute(f"SELECT count(*) FROM {self._quoted[name]}").fetchall()[0][0])

    def batches(self, name: str, column: str, sample: int | None, seed: int) -> Iterator[pa.Table]:
        import pyarrow as pa

        others = [one for one, kind in self._kinds[name].items() if kind[-1] not in "])" and kind != "BLOB"]
        query = f"SELECT {', '.join(map(quoted, (*others, column)))} FROM {self._quoted[name]}"
        if sample is not None:
            query += f" USING SAMPLE reservoir({sample} ROWS) REPEATABLE ({seed})"
        for batch in self._connection.sql(query).to_arrow_reader(ROWS):
            yield pa.Table.from_batches([batch])

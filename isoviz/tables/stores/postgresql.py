"""PostgreSQL with pgvector, through psycopg: tables, views and foreign tables with a column of vectors or of lists of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from isoviz.tables.stores.protocol import PATIENCE, ROWS, Address, Store, table_of

if TYPE_CHECKING:
    import pyarrow as pa

_VECTORS: Final = ("vector", "halfvec", "sparsevec", "_float4", "_float8")
_COLUMNS: Final = """
    SELECT n.nspname, c.relname, c.oid::regclass::text, a.attname, t.typname
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_type t ON t.oid = a.atttypid
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND a.attnum > 0 AND NOT a.attisdropped AND n.nspname <> 'information_schema'
    AND n.nspname !~ '^pg_' AND has_table_privilege(c.oid, 'SELECT') ORDER BY 1, 2, a.attnum
"""


class PostgreSQL(Store):
    """A database. Reads in one read-only transaction, with a cursor of the server."""

    slug = "postgresql"
    title = "PostgreSQL with pgvector"
    packages = ("psycopg", "pgvector")
    extra = "pgvector"
    examples: ClassVar = ("postgresql://host:5432/database?table=docs&column=embedding",)
    holds = "table"
    samples = "`ORDER BY random()` after `setseed`, in one scan"
    port = 5432
    path_names = "database"
    secret = "PGPASSWORD"
    options: ClassVar = ("sslmode",)
    schema = "public."

    def __init__(self, address: Address, path: Path | None, closing: ExitStack) -> None:
        import psycopg
        from pgvector.psycopg import register_vector

        settings: dict[str, Any] = {"host": address.host, "port": address.port, "user": address.user}
        settings |= {"dbname": address.options.get("database", address.path.strip("/"))}
        settings |= {"password": address.secret(self.secret), "sslmode": address.options.get("sslmode")}
        given = {name: value for name, value in settings.items() if value}
        self._connection: Any = closing.enter_context(psycopg.connect(**given, connect_timeout=PATIENCE))
        self._connection.read_only = True
        self._connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        self._kinds: dict[str, dict[str, str]] = {}
        self._quoted: dict[str, str] = {}
        self.tables = {}
        for space, relation, quoted, column, kind in self._connection.execute(_COLUMNS):
            name = relation if space == "public" else f"{space}.{relation}"
            self._kinds.setdefault(name, {})[column] = kind
            self._quoted[name] = quoted
            self.tables.setdefault(name, []).extend([column] if kind in _VECTORS else [])
        if any(kind in _VECTORS[:3] for kinds in self._kinds.values() for kind in kinds.values()):
            register_vector(self._connection)

    def count(self, name: str) -> int:
        return int(self._connection.execute(f"SELECT count(*) FROM {self._quoted[name]}").fetchone()[0])

    def batches(self, name: str, column: str, sample: int | None, seed: int) -> Iterator[pa.Table]:
        from psycopg import sql

        columns = [column, *(one for one, kind in self._kinds[name].items() if kind not in (*_VECTORS, "bytea"))]
        query = sql.SQL("SELECT {} FROM {}").format(
            sql.SQL(", ").join(map(sql.Identifier, columns)), sql.SQL(self._quoted[name])
        )
        if sample is not None:
            self._connection.execute("SET LOCAL max_parallel_workers_per_gather = 0")  # the order of a scan is the same
            self._connection.execute("SET LOCAL synchronize_seqscans = off")
            self._connection.execute("SELECT setseed(%s)", [seed / 1e9])
            query += sql.SQL(" ORDER BY random() LIMIT {}").format(sql.Literal(sample))
        with self._connection.cursor(name="isoviz") as cursor:
            cursor.execute(query)
            while rows := cursor.fetchmany(ROWS):
                values, *others = zip(*rows, strict=True)
                points = [one.to_numpy() if hasattr(one, "to_numpy") else one for one in values]
                double = self._kinds[name][column] == "_float8"
                yield table_of(dict(zip(columns[1:], others, strict=True)), column, points, double=double)

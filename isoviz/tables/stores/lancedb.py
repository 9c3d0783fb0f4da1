"""LanceDB, through its client: the folder of a database."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from isoviz.tables.stores.protocol import Address, Store

if TYPE_CHECKING:
    import pyarrow as pa


class LanceDB(Store):
    """Tables; the columns of lists of numbers with a fixed length are vectors."""

    slug = "lancedb"
    title = "LanceDB"
    packages = ("lancedb",)
    extra = "lancedb"
    examples: ClassVar = ("lancedb:///folder?table=docs",)
    holds = "table"
    samples = "`take_offsets` of places drawn from all"
    local = "folder"

    def __init__(self, address: Address, path: Path | None, closing: ExitStack) -> None:
        import lancedb

        self._database = lancedb.connect(str(path))

    def names(self) -> list[str]:
        page = self._database.list_tables(limit=1_000)
        names = list(page.tables)
        while page.page_token:
            page = self._database.list_tables(page_token=page.page_token, limit=1_000)
            names += page.tables
        return names

    def _columns(self, name: str) -> tuple[list[str], list[str]]:
        import pyarrow.types as kinds

        schema = self._database.open_table(name).schema
        vectors = [
            one.name for one in schema if kinds.is_fixed_size_list(one.type) and kinds.is_floating(one.type.value_type)
        ]
        others = [one.name for one in schema if not kinds.is_nested(one.type) and not kinds.is_large_binary(one.type)]
        return vectors, others

    def vectors(self, name: str) -> list[str]:
        return self._columns(name)[0]

    def count(self, name: str) -> int:
        return int(self._database.open_table(name).count_rows())

    def keys(self, name: str) -> Sequence[int]:
        return range(self.count(name))

    def take(self, name: str, column: str, keys: Sequence[int]) -> pa.Table:
        table = self._database.open_table(name)
        return table.take_offsets(list(keys)).select([*self._columns(name)[1], column]).to_arrow()

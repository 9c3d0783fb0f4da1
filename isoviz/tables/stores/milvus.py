"""Milvus, through its client: a server, or a file of Milvus Lite."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from isoviz.tables.stores.protocol import PATIENCE, ROWS, Address, Store, columns_of, copied, table_of

if TYPE_CHECKING:
    import pyarrow as pa


class Milvus(Store):
    """Collections with fields of float vectors. One of a server must be loaded: this would change the server."""

    slug = "milvus"
    title = "Milvus"
    packages = ("pymilvus", "milvus_lite")
    extra = "milvus"
    examples: ClassVar = ("milvus://host:19530/collection", "milvus:///milvus.db?collection=docs")
    holds = "collection"
    samples = "primary keys drawn from all"
    port = 19530
    local = "folder"
    path_names = "collection"
    secret = "MILVUS_TOKEN"
    options: ClassVar = ("database", "tls")

    def __init__(self, address: Address, path: Path | None, closing: ExitStack) -> None:
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it writes to stderr after a server has ended
        from pymilvus import MilvusClient

        self._of_copy = path is not None
        if path is not None:
            from milvus_lite.server_manager import server_manager_instance

            copy = str(copied(path, closing))  # it writes indexes
            closing.callback(server_manager_instance.release_server, copy)
            self._client = MilvusClient(copy)
        else:
            secret = address.secret(self.secret) or ""
            token = f"{address.user}:{secret}" if address.user and secret else secret
            database = address.options.get("database", "")
            self._client = MilvusClient(address.url(self.port), token=token, db_name=database, timeout=PATIENCE)
        closing.callback(self._client.close)

    def names(self) -> list[str]:
        return list(self._client.list_collections())

    def _fields(self, name: str) -> list[dict[str, Any]]:
        return list(self._client.describe_collection(name)["fields"])

    def vectors(self, name: str) -> list[str]:
        return [one["name"] for one in self._fields(name) if one["type"].name == "FLOAT_VECTOR"]

    def count(self, name: str) -> int:
        if self._of_copy:
            self._client.load_collection(name)
        elif self._client.get_load_state(name)["state"].name != "Loaded":
            raise ValueError(f"the collection {name} is not loaded; load it first")
        return int(self._client.query(name, filter="", output_fields=["count(*)"])[0]["count(*)"])

    def keys(self, name: str) -> Sequence[Any]:
        key = next(one["name"] for one in self._fields(name) if one.get("is_primary"))
        pages = self._client.query_iterator(name, filter="", output_fields=[key], batch_size=ROWS)
        keys: list[Any] = []
        while page := pages.next():
            keys += [row[key] for row in page]
        pages.close()
        return sorted(keys)

    def take(self, name: str, column: str, keys: Sequence[Any]) -> pa.Table:
        rows = [dict(row) for row in self._client.get(name, ids=list(keys), output_fields=["*"])]
        vectors = [row.pop(column, None) for row in rows]
        return table_of(columns_of(rows, (column,)), column, vectors)

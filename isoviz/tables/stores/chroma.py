"""Chroma, through its client: a server, or the folder of a persistent client."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from isoviz.tables.stores.protocol import ROWS, Address, Store, columns_of, copied, table_of

if TYPE_CHECKING:
    import pyarrow as pa


class Chroma(Store):
    """Collections. The client writes in the folder that it opens, so a copy is opened."""

    slug = "chroma"
    title = "Chroma"
    packages = ("chromadb",)
    extra = "chroma"
    examples: ClassVar = ("chroma://host:8000/collection", "chroma:///folder?collection=docs")
    holds = "collection"
    samples = "ids drawn from all ids"
    port = 8000
    local = "folder"
    path_names = "collection"
    secret = "CHROMA_TOKEN"
    options: ClassVar = ("tenant", "database", "tls")

    def __init__(self, address: Address, path: Path | None, closing: ExitStack) -> None:
        import chromadb
        from chromadb.config import Settings

        place = {name: value for name, value in address.options.items() if name in ("tenant", "database")}
        settings = Settings(anonymized_telemetry=False)
        self._client: Any
        if path is not None:
            if not (path / "chroma.sqlite3").is_file():
                raise ValueError("the folder holds no chroma.sqlite3")
            self._client = chromadb.PersistentClient(str(copied(path, closing)), settings, **place)
        else:
            key = address.secret(self.secret)
            self._client = chromadb.HttpClient(
                address.host,
                address.port or self.port,
                ssl=bool(address.options.get("tls")),
                headers={"Authorization": f"Bearer {key}"} if key else None,
                settings=settings,
                **place,
            )
        closing.callback(self._client.close)
        self.tables = {collection.name: ["embedding"] for collection in self._client.list_collections()}

    def _collection(self, name: str) -> Any:
        return self._client.get_collection(name, embedding_function=None)  # its default would load a model

    def count(self, name: str) -> int:
        return int(self._collection(name).count())

    def keys(self, name: str) -> Sequence[str]:
        collection, ids = self._collection(name), list[str]()
        while page := collection.get(include=[], limit=10 * ROWS, offset=len(ids))["ids"]:
            ids += page
        return sorted(ids)

    def take(self, name: str, column: str, keys: Sequence[str]) -> pa.Table:
        rows = self._collection(name).get(ids=list(keys), include=["embeddings", "documents", "metadatas"])
        columns = columns_of([row or {} for row in rows["metadatas"]], ("id", "text", column))
        return table_of({"id": rows["ids"], "text": rows["documents"], **columns}, column, list(rows["embeddings"]))

"""Qdrant, through its client: a server, or the folder of its local mode."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from isoviz.tables.stores.protocol import PATIENCE, ROWS, Address, Store, columns_of, copied, table_of

if TYPE_CHECKING:
    import pyarrow as pa


class Qdrant(Store):
    """Collections; each of their named dense vectors is a column, and so is each field of the payload."""

    slug = "qdrant"
    title = "Qdrant"
    packages = ("qdrant_client",)
    extra = "qdrant"
    examples: ClassVar = ("qdrant://host:6333/collection", "qdrant:///folder?collection=docs")
    holds = "collection"
    samples = "ids drawn from all ids"
    port = 6333
    local = "folder"
    path_names = "collection"
    secret = "QDRANT_API_KEY"
    options: ClassVar = ("tls",)

    def __init__(self, address: Address, path: Path | None, closing: ExitStack) -> None:
        from qdrant_client import QdrantClient

        if path is not None:
            if not (path / "meta.json").is_file():
                raise ValueError("the folder holds no meta.json")
            self._client = QdrantClient(path=str(copied(path, closing)))  # it locks the folder
        else:
            self._client = QdrantClient(
                url=address.url(self.port),
                api_key=address.secret(self.secret),
                timeout=PATIENCE,
                check_compatibility=False,
            )
        closing.callback(self._client.close)

    def names(self) -> list[str]:
        return [collection.name for collection in self._client.get_collections().collections]

    def vectors(self, name: str) -> list[str]:
        vectors: Any = self._client.get_collection(name).config.params.vectors
        named = vectors if isinstance(vectors, dict) else {"vector": vectors} if vectors else {}
        return [one for one, settings in named.items() if settings.multivector_config is None]

    def count(self, name: str) -> int:
        return int(self._client.count(name).count)

    def keys(self, name: str) -> Sequence[Any]:
        ids: list[Any] = []
        place: Any = None
        while True:
            points, place = self._client.scroll(
                name, limit=10 * ROWS, offset=place, with_payload=False, with_vectors=False
            )
            ids += [point.id for point in points]
            if place is None:
                return ids

    def take(self, name: str, column: str, keys: Sequence[Any]) -> pa.Table:
        points = self._client.retrieve(name, ids=list(keys), with_payload=True, with_vectors=True)
        columns = columns_of([point.payload or {} for point in points], ("id", column))
        vectors = [point.vector.get(column) if isinstance(point.vector, dict) else point.vector for point in points]
        return table_of({"id": [str(point.id) for point in points], **columns}, column, vectors)

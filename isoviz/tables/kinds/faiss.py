"""FAISS indexes that keep the vectors themselves: flat ones, and inverted lists or graphs of flat ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from isoviz.tables.protocol import Format, Glimpse, refused

_ENDINGS = (".faiss", ".index")
_KEPT = {b"IxFI", b"IxF2", b"IxFl", b"IwFl", b"IvFl", b"IHNf", b"IxMp", b"IxM2", b"IxPT"}
"""The first four bytes of indexes that keep vectors, or that wrap such a one."""


def _recognise(glimpse: Glimpse) -> bool | None:
    if glimpse.start[:4] in _KEPT and glimpse.text is None:
        return True
    return None if glimpse.text is None and glimpse.ending in _ENDINGS else False


def _array(path: Path, _: str) -> NDArray[Any]:
    import faiss

    outer: Any = faiss.read_index(str(path))  # which owns the index inside
    index = outer
    if isinstance(index, faiss.IndexIDMap):
        index = faiss.downcast_index(outer.index)  # the vectors in the order in which they were added
    if not isinstance(index, (faiss.IndexFlat, faiss.IndexIVFFlat, faiss.IndexHNSWFlat)):
        kind = type(index).__name__
        raise refused(
            f"'{path.name}' is a FAISS {kind}, which does not keep the vectors as they are; save them yourself"
        )
    if isinstance(index, faiss.IndexIVFFlat):
        index.make_direct_map()
    points: NDArray[Any] = index.reconstruct_n(0, outer.ntotal)
    return points


FORMATS = Format(
    "faiss", "a FAISS index", _ENDINGS, _recognise, array=_array, packages=("faiss",),
    vectors="the vectors of a flat, IVF-flat or HNSW-flat index",
)  # fmt: skip

"""Sets of vectors or texts with annotations, and the store that keeps them by content."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from isoviz.demo import EXAMPLE
from isoviz.errors import InputError
from isoviz.jobs.results import ARRAYS, ResultStore
from isoviz.metrics.cloud import blocks
from isoviz.tables import arrays

if TYPE_CHECKING:
    import pandas as pd

Relation = Literal["similarity", "relevance"]

COLUMNS: Final = ("id", "text", "label", "group")
"""Possible columns of a set."""
STORE: Final = ResultStore("vectors")
MOST_KEPT: Final = 512 * 2**20
"""Most bytes of points copied into the store; of a larger array file, only the path is stored."""
_BLOCK: Final = 16 * 2**20
_MAPPED: Final = 64 * 2**20
_FORMAT: Final = 1


@dataclass(frozen=True, eq=False)
class VectorSet:
    """n vectors with annotations.

    Attributes:
        points: (n, d) float32 or float64, finite, n and d at least 2; possibly a read-only map of a file.
        columns: n rows with any of `id`, `text`, `label` and `group`, and no other columns.
        pairs: None, or `left`, `right` and `score`: ids and their similarity (relation "similarity"), or queries, documents and
            their relevance (relation "relevance").
        relation: what `pairs` holds.
        name: title on pages.
        facts: origin of the vectors: for encoded texts, the model, pooling and prompt.
        notes: what was left out when the files were read, in sentences.
    """

    points: NDArray[Any]
    columns: pd.DataFrame
    pairs: pd.DataFrame | None = None
    relation: Relation | None = None
    name: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """Vectors."""
        return int(self.points.shape[0])

    @property
    def d(self) -> int:
        """Dimensions."""
        return int(self.points.shape[1])

    @cached_property
    def key(self) -> str:
        """Thirty-two hex digits of the content, without name and facts."""
        digest = hashlib.sha256(f"vectors {_FORMAT} {self.points.dtype.str} {self.points.shape}".encode())
        rows = max(1, _BLOCK // (self.d * self.points.dtype.itemsize))
        for _, block in blocks(self.points, rows):
            digest.update(block.tobytes())
        for table in (self.columns, self.pairs):
            digest.update(b"none" if table is None else _fingerprint(table))
        digest.update(str(self.relation).encode())
        return digest.hexdigest()[:32]


@dataclass(frozen=True, eq=False)
class TextSet:
    """n texts with annotations, for an encoder.

    Attributes:
        columns: n rows with `text`, and any of `id`, `label` and `group`.
        name: title on pages.
        pairs, relation, notes: as in a `VectorSet`.
    """

    columns: pd.DataFrame
    name: str = ""
    pairs: pd.DataFrame | None = None
    relation: Relation | None = None
    notes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """Texts."""
        return len(self.columns)

    def without_empty(self) -> TextSet:
        """Without texts that are empty or white space, and without the pairs of these."""
        filled = self.columns["text"].str.strip() != ""
        if filled.all():
            return self
        columns, pairs = self.columns[filled].reset_index(drop=True), self.pairs
        if pairs is not None:
            known = pairs["left"].isin(columns["id"]) & pairs["right"].isin(columns["id"])
            pairs = pairs[known].reset_index(drop=True)
        return replace(self, columns=columns, pairs=pairs)

    @cached_property
    def key(self) -> str:
        """Thirty-two hex digits of the content, without the name."""
        digest = hashlib.sha256(f"texts {_FORMAT} ".encode() + _fingerprint(self.columns))
        if self.pairs is not None:
            digest.update(_fingerprint(self.pairs) + str(self.relation).encode())
        return digest.hexdigest()[:32]


def keep(vectors: VectorSet | TextSet) -> str:
    """Store a set by its content and return its key. The least recently used sets are removed when space is needed.

    Raises:
        InputError: its points take more than `MOST_KEPT` bytes and do not come from an array file.
    """
    facts, content = stored(vectors)
    kept = facts_of(vectors.key)
    # stored in another format, or its file was moved or rewritten
    if kept is None or kept.get("file") != facts.get("file"):
        STORE.forget(vectors.key)
    STORE.publish(vectors.key, facts, content)
    return vectors.key


def stored(vectors: VectorSet | TextSet) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The facts and arrays that store a set; also for a job that publishes it under another key."""
    facts: dict[str, Any] = {"format": _FORMAT, "name": vectors.name, "n": vectors.n, "columns": list(vectors.columns)}
    facts |= {"relation": vectors.relation, "notes": list(vectors.notes)}
    content = {"columns": packed(vectors.columns)}
    if vectors.pairs is not None:
        content["pairs"] = packed(vectors.pairs)
    if isinstance(vectors, TextSet):
        return {**facts, "what": "texts"}, content
    facts |= {"what": "vectors", "d": vectors.d, "facts": dict(vectors.facts)}
    if vectors.points.nbytes <= MOST_KEPT:
        return facts, {**content, "points": vectors.points}
    file = getattr(vectors.points, "filename", None)
    if file is None:
        size = f"{vectors.points.nbytes / 2**30:.1f} GiB"
        raise InputError.at(
            "vectors",
            f"{vectors.name or 'these vectors'} take {size}; tables are stored up to {MOST_KEPT / 2**30:.1f} GiB",
            "Save them as float32 in an uncompressed .npy or .safetensors file on this server and give its path.",
        )
    stat = Path(file).stat()
    return {**facts, "file": [str(file), stat.st_size, stat.st_mtime_ns], "array": vectors.facts.get("array")}, content


def load(key: str) -> VectorSet:
    """The stored vectors of a key. Raises `KeyError` if they no longer exist, or if the key belongs to texts."""
    vectors = load_any(key)
    if not isinstance(vectors, VectorSet):
        raise KeyError(key)
    return vectors


def load_any(key: str) -> VectorSet | TextSet:
    """The stored set of a key, marked as recently used. Raises `KeyError` if it no longer exists or its file has changed."""
    if facts_of(key) is None or (result := STORE.find(key)) is None:
        raise KeyError(key)
    from safetensors import SafetensorError, safe_open

    facts, path = result.facts, result.folder / ARRAYS
    notes = tuple(facts.get("notes", ()))
    try:
        with safe_open(path, framework="np") as file:
            names = set(file.keys())
            tables = {name: unpacked(file.get_tensor(name)) for name in ("columns", "pairs") if name in names}
            points = None
            if "points" in names:
                small = path.stat().st_size <= _MAPPED
                points = file.get_tensor("points") if small else arrays.mapped_tensor(path, "points")
                if points.dtype == np.float16:  # bundled demo sets are float16
                    points = points.astype(np.float32)
    except (OSError, SafetensorError):  # just removed
        raise KeyError(key) from None
    if facts["what"] == "texts":
        return TextSet(tables["columns"], facts["name"], tables.get("pairs"), facts.get("relation"), notes)
    if points is None:
        points = _reread(key, facts)
    return VectorSet(
        points,
        tables["columns"],
        tables.get("pairs"),
        facts["relation"],
        facts["name"],
        facts.get("facts", {}),
        notes,
    )


def facts_of(key: str) -> Mapping[str, Any] | None:
    """Facts of a stored set without reading it: `what`, `name`, `n`, `d`, `columns`, `relation`; None if it no longer exists."""
    result = STORE.find(key) if is_key(key) else None
    return None if result is None or result.facts.get("format") != _FORMAT else result.facts


def forget(key: str) -> None:
    """Delete a stored set, if it exists."""
    if is_key(key):
        STORE.forget(key)


def is_key(text: str) -> bool:
    """Whether a text has the form of a key."""
    return re.fullmatch(rf"[0-9a-f]{{32}}|{EXAMPLE}[a-z-]+", text, re.ASCII) is not None


def _reread(key: str, facts: Mapping[str, Any]) -> NDArray[Any]:
    """The points of a large array file, unless it has changed."""
    name, size, changed = facts["file"]
    try:
        stat = Path(name).stat()
        if (stat.st_size, stat.st_mtime_ns) != (size, changed):
            raise KeyError(key)
        return arrays.read(name, facts.get("array"), "vectors")
    except (OSError, InputError):
        raise KeyError(key) from None


def _fingerprint(table: pd.DataFrame) -> bytes:
    """Equal for equal tables, unlike Parquet files, which contain their writer's version."""
    digest = hashlib.sha256()
    for name in sorted(map(str, table)):
        digest.update(f"\0\0{name}\0{len(table)}".encode())
        for value in table[name]:
            digest.update(f"\0{type(value).__name__}\0{value}".encode("utf-8", "surrogatepass"))
    return digest.digest()


def packed(table: pd.DataFrame) -> NDArray[np.uint8]:
    """The table as the bytes of a Parquet file."""
    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False)
    return np.frombuffer(buffer.getvalue(), dtype=np.uint8)


def unpacked(content: NDArray[Any]) -> pd.DataFrame:
    """The inverse of `packed`."""
    import pandas as pd

    return pd.read_parquet(io.BytesIO(content.tobytes()))

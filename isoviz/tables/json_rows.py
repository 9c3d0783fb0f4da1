"""Rows from the shapes in which people keep vectors in JSON, and from lines of objects. A row is an object: column → value."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from isoviz.errors import shortened
from isoviz.tables.protocol import refused
from isoviz.tables.text_files import stripped_lines

if TYPE_CHECKING:
    import pyarrow as pa

_CALLED: Final = {"keys": "id", "custom_id": "id", "words": "text", "tokens": "text", "documents": "text"}
"""Names that sets use elsewhere → the column's name here."""
_VECTORS: Final = ("embedding", "vector", "embeddings", "vectors")


def rows_in(content: Any) -> list[dict[str, Any]]:
    """The rows of a JSON document; empty if it has none."""
    if isinstance(content, list):
        if content and all(map(_is_vector, content)):
            return [{"vector": vector} for vector in content]
        return rows_of(content) if all(isinstance(one, dict) for one in content) else []
    if not isinstance(content, dict):
        return []
    if _is_answer(content):
        return rows_of([content])
    values = list(content.values())
    if values and all(map(_is_vector, values)):
        return [{"text": text, "vector": vector} for text, vector in content.items()]
    if values and all(isinstance(value, dict) for value in values):
        return rows_of({"id": name, **value} for name, value in content.items())
    return _of_columns(content)


def _of_columns(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Lists of equal length, one of which holds vectors; what is no such list belongs to no row."""
    names = [name for name in (*_VECTORS, *content) if isinstance(content.get(name), list) and content[name]]
    first = next((name for name in names if all(one is None or _is_vector(one) for one in content[name])), None)
    if first is None:
        return []
    n = len(content[first])
    columns = {
        _CALLED.get(name, name): values
        for name, values in content.items()
        if name == first or (isinstance(values, list) and len(values) == n and not any(map(_is_vector, values)))
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def rows_of(objects: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The objects themselves, or the rows of OpenAI's answers: the id of a request, and a vector for each of its inputs."""
    rows: list[dict[str, Any]] = []
    for one in objects:
        if "custom_id" in one and "response" in one:
            answer = one["response"]
            rows += _answered(answer.get("body") if isinstance(answer, dict) else None, str(one["custom_id"]))
        else:
            rows += _answered(one) if _is_answer(one) else [one]
    return rows


def _answered(body: Any, name: str = "") -> list[dict[str, Any]]:
    data = body.get("data") if isinstance(body, dict) else None
    vectors = [one for one in data if isinstance(one, dict)] if isinstance(data, list) else []
    vectors.sort(key=lambda one: one["index"] if isinstance(one.get("index"), int) else 0)
    decoded = [_decoded(one.get("embedding")) for one in vectors]
    if not name:
        return [{"vector": one} for one in decoded]
    if len(decoded) < 2:  # a request that failed has no vector
        return [{"id": name, "vector": decoded[0] if decoded else None}]
    return [{"id": f"{name}/{place}", "vector": one} for place, one in enumerate(decoded)]


def _is_answer(content: Mapping[str, Any]) -> bool:
    data = content.get("data")
    return isinstance(data, list) and bool(data) and isinstance(data[0], dict) and "embedding" in data[0]


def _decoded(vector: Any) -> Any:
    if not isinstance(vector, str):
        return vector
    try:
        return np.frombuffer(base64.b64decode(vector, validate=True), "<f4").tolist()
    except (binascii.Error, ValueError):
        return None


def _is_vector(value: Any) -> bool:
    return isinstance(value, Sequence) and len(value) > 1 and all(type(one) in (int, float) for one in value)


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON lines file. Raises `DataError` with the number of an invalid line."""
    for number, line in enumerate(stripped_lines(path), start=1):
        if not line:
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise refused(f"{path.name} cannot be read as JSON lines: line {number} is not a JSON object")
        yield value


def table_of(objects: Sequence[dict[str, Any]], before: int = 0, columns: Sequence[str] | None = None) -> pa.Table:
    """JSON objects as a table.

    Args:
        before: rows of the file before these.
        columns: the table's columns; None for all that occur.

    Raises:
        DataError: the first value of another type than the earlier ones of its column.
    """
    import pyarrow as pa

    arrays = {}
    for name in columns or dict.fromkeys(key for line in objects for key in line):
        values = [line.get(name) for line in objects]
        try:
            arrays[name] = pa.array(values, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            if all(value is None or type(value) in (int, float) for value in values):
                arrays[name] = pa.array([value and float(value) for value in values], from_pandas=True)
                continue
            kinds = [(row, type(value).__name__) for row, value in enumerate(values, before + 1) if value is not None]
            row, kind = next((place for place in kinds if place[1] != kinds[0][1]), kinds[0])
            raise refused(
                f"row {row}, column '{shortened(name)}': a {kind} where earlier rows have another type"
            ) from None
    return pa.table(arrays)

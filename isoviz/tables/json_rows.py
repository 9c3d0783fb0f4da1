"""Rows from the shapes in which people keep vectors in JSON. A row is an object: column → value."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

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
            body = answer.get("body") if isinstance(answer, dict) else None
            rows += _answered(body if isinstance(body, dict) else {}, str(one["custom_id"]))
        else:
            rows += _answered(one, None) if _is_answer(one) else [one]
    return rows


def _answered(body: Mapping[str, Any], name: str | None) -> list[dict[str, Any]]:
    data = body.get("data")
    vectors = [one for one in data if isinstance(one, dict)] if isinstance(data, list) else []
    vectors.sort(key=lambda one: one["index"] if isinstance(one.get("index"), int) else 0)
    if name is None:
        return [{"vector": _decoded(one.get("embedding"))} for one in vectors]
    if len(vectors) < 2:  # a request that failed has no vector
        return [{"id": name, "vector": _decoded(vectors[0].get("embedding")) if vectors else None}]
    return [{"id": f"{name}/{place}", "vector": _decoded(one.get("embedding"))} for place, one in enumerate(vectors)]


def _is_answer(content: Mapping[str, Any]) -> bool:
    data = content.get("data")
    return isinstance(data, list) and bool(data) and isinstance(data[0], dict) and "embedding" in data[0]


def _decoded(vector: Any) -> Any:
    """A vector that may be written as float32 in base64."""
    if not isinstance(vector, str):
        return vector
    try:
        return np.frombuffer(base64.b64decode(vector, validate=True), "<f4").tolist()
    except (binascii.Error, ValueError):
        return None


def _is_vector(value: Any) -> bool:
    return isinstance(value, Sequence) and len(value) > 1 and all(type(one) in (int, float) for one in value)

"""The route for the figures of Explore: arrays of a finished view as bytes."""

from __future__ import annotations

import functools
import gzip
import json
import re
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from dashboard.shared import wording

PATH = "views/{key}/{layer:int}/{pooling}/{name}"
_KEY = re.compile(r"[0-9a-f]{32}|example-[a-z0-9-]{1,40}")
_FOREVER = "private, max-age=31536000, immutable"
_clustering = threading.Lock()
DAMAGED = (SafetensorError, OSError, ValueError, IndexError)
"""Exceptions from reading a file of arrays that is truncated, incomplete or being removed."""


def arrays(request: Request) -> Response:
    """One array of one cloud of a view as raw little-endian bytes.

    `matrix` is |ρ| in clustered order, one byte per cell (255 = 1), rows 1 … d−1 of the triangle below the diagonal;
    `order` (int32) is the dimension at each index; `sigma` (float32) are the standard deviations by dimension. `texts`: texts of
    the stored points, as compressed JSON.
    """
    key = request.path_params["key"]
    if not _KEY.fullmatch(key):
        raise HTTPException(404, "no such view")
    convert = _ARRAYS.get(request.path_params["name"])
    if convert is None:
        raise HTTPException(404, f"no such array (allowed: {', '.join(_ARRAYS)})")
    try:
        content = convert(key, request.path_params["layer"], request.path_params["pooling"])
    except KeyError:
        raise HTTPException(404, "this cloud is no longer cached: press Analyse again") from None
    except DAMAGED:
        raise HTTPException(404, "the file of this view's arrays is damaged: press Analyse again") from None
    # The key is derived from the content, so responses can be cached forever.
    encoding = {"Content-Encoding": "gzip"} if request.path_params["name"] == "texts" else {}
    headers = {"Cache-Control": _FOREVER, **encoding}
    return Response(content, media_type="application/octet-stream", headers=headers)


def array(key: str, layer: int, pooling: str, name: str) -> bytes:
    """The same outside a request. Raises `KeyError` if the cloud is no longer stored."""
    return _ARRAYS[name](key, layer, pooling)


def _sigma(key: str, layer: int, pooling: str) -> bytes:
    values = _view(key).array(layer, pooling, "sigma")
    if values is None:
        raise KeyError((layer, pooling))
    return values.astype("<f4").tobytes()


def _texts(key: str, layer: int, pooling: str) -> bytes:
    from isoviz.exploring import user_sets
    from isoviz.exploring.points import texts

    view = _view(key)
    point_texts = texts(view.table(pooling), user_sets.task_of(view.facts["request"]["task"]))
    return gzip.compress(json.dumps([wording.cut(text) for text in point_texts]).encode(), 1)


def _clustered(key: str, layer: int, pooling: str) -> tuple[bytes, bytes]:
    """The matrix and its order as bytes; cached, because computing the order of a layer takes a second."""
    with _clustering:  # the matrix and its order are requested at the same time, but computed once
        return _computed(key, layer, pooling)


@functools.lru_cache(maxsize=32)
def _computed(key: str, layer: int, pooling: str) -> tuple[bytes, bytes]:
    cells, order = _view(key).matrix(layer, pooling)
    return triangle(cells), order.astype("<i4").tobytes()


def triangle(cells: NDArray[np.uint8]) -> bytes:
    """The cells below the diagonal of (d, d), row by row."""
    return cells[np.tril_indices(len(cells), k=-1)].tobytes()


def _view(key: str) -> Any:
    from isoviz.exploring import results

    return results.get(key)


_ARRAYS: dict[str, Callable[[str, int, str], bytes]] = {
    "matrix": lambda *cloud: _clustered(*cloud)[0],
    "order": lambda *cloud: _clustered(*cloud)[1],
    "sigma": _sigma,
    "texts": _texts,
}

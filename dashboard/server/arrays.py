"""The routes of arrays as raw little-endian bytes: of an epoch of a run, and of a view of Explore.

`matrix` is |ρ| in clustered order, one byte per cell (255 = 1), rows 1 … d−1 of the triangle below the diagonal; `order` (int32)
is the dimension at each index; `std`, `sigma` and `ev` are float32. `texts`: texts of a view's stored points, as compressed JSON.
"""

from __future__ import annotations

import functools
import gzip
import json
import re
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from dashboard.shared import resources, wording
from isoviz.runs.rows import RunRow

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_KEY = re.compile(r"[0-9a-f]{32}|example-[a-z0-9-]{1,40}")
_DAMAGED = (SafetensorError, OSError, ValueError, LookupError)
"""Exceptions from reading a file of arrays that is truncated, incomplete or being removed."""
_clustering = threading.Lock()


def of_run(request: Request) -> Response:
    """One array of an epoch's artifact. The request contains its version (`?v=seq of the event`)."""
    convert = _named(request, _OF_RUN)
    folder = resources.library().folder_of(run_of(request).id) / "arrays"
    path = folder / f"epoch-{request.path_params['epoch']:03d}.safetensors"
    if not path.is_file():
        raise HTTPException(404, "this epoch has not been measured")
    try:
        return _forever(convert(load_file(path)))
    except _DAMAGED:
        raise HTTPException(404, "the file of this epoch's arrays is damaged") from None


def of_view(request: Request) -> Response:
    """One array of one cloud of a view. Its key is derived from the content."""
    convert = _named(request, _OF_VIEW)
    key = request.path_params["key"]
    if not _KEY.fullmatch(key):
        raise HTTPException(404, "no such view")
    encoding = {"Content-Encoding": "gzip"} if request.path_params["name"] == "texts" else {}
    try:
        return _forever(convert(key, request.path_params["layer"], request.path_params["pooling"]), **encoding)
    except KeyError:
        raise HTTPException(404, "this cloud is no longer cached: press Analyse again") from None
    except _DAMAGED:
        raise HTTPException(404, "the file of this view's arrays is damaged: press Analyse again") from None


def run_of(request: Request) -> RunRow:
    """The run in the path."""
    run = request.path_params["run"]
    if not _RUN_ID.fullmatch(run):
        raise HTTPException(404, "no such run")
    return resources.library().get(run)


def array(key: str, layer: int, pooling: str, name: str) -> bytes:
    """An array of a view outside a request. Raises `KeyError` if the cloud is no longer stored."""
    return _OF_VIEW[name](key, layer, pooling)


def _named(request: Request, converters: Mapping[str, Any]) -> Any:
    convert = converters.get(request.path_params["name"])
    if convert is None:
        raise HTTPException(404, f"no such array (allowed: {', '.join(converters)})")
    return convert


def _forever(content: bytes, **headers: str) -> Response:
    """An answer that browsers cache forever."""
    headers["Cache-Control"] = "private, max-age=31536000, immutable"
    return Response(content, media_type="application/octet-stream", headers=headers)


def triangle(cells: NDArray[Any]) -> bytes:
    """The cells below the diagonal of (d, d), row by row."""
    return cells[np.tril_indices(len(cells), k=-1)].tobytes()


def in_order(correlation: NDArray[Any], order: NDArray[Any]) -> bytes:
    """|ρ| (d, d) as `matrix`, with its dimensions in this order."""
    matrix = np.asarray(correlation, np.float32)[np.ix_(order, order)]
    return triangle(np.rint(255 * np.nan_to_num(matrix).clip(0, 1)).astype(np.uint8))


_OF_RUN: dict[str, Callable[[Mapping[str, Any]], bytes]] = {
    "matrix": lambda stored: in_order(stored["abs_correlation"], stored["order"]),
    "order": lambda stored: stored["order"].astype("<i4").tobytes(),
    "std": lambda stored: stored["std"].astype("<f4").tobytes(),
    "ev": lambda stored: stored["ev"].astype("<f4").tobytes(),
}


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


def _view(key: str) -> Any:
    from isoviz.exploring import results

    return results.get(key)


_OF_VIEW: dict[str, Callable[[str, int, str], bytes]] = {
    "matrix": lambda *cloud: _clustered(*cloud)[0],
    "order": lambda *cloud: _clustered(*cloud)[1],
    "sigma": _sigma,
    "texts": _texts,
}

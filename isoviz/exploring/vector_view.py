"""The view of a user's vectors: one cloud, with the same content as an encoder's layer."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import isoviz
from isoviz.exploring import measuring, points, shrinkage
from isoviz.exploring.request import FORMAT, ViewRequest
from isoviz.exploring.results import STORE, array_name
from isoviz.exploring.user_sets import POOLING, VECTORS, load_set, rows_of
from isoviz.metrics.cloud import blocks, draw
from isoviz.metrics.copies import nonzero_rows, zeros_left_out
from isoviz.metrics.protocol import COSTS, QUICK
from isoviz.metrics.record import Reading
from isoviz.models.profile import measure
from isoviz.vectors import VectorSet

_BLOCK_ROWS: Final = 16_384
MAP_POINTS: Final = 200_000
"""Most vectors on the map; larger sets are sampled with the seed. Fewer if they would take more than `CLOUD_BYTES`."""
Show = Callable[[dict[str, Any], dict[str, NDArray[Any]]], None]


def compute(
    request: ViewRequest, tell: Callable[[int, int, str], None], show: Show | None = None, *, complete: bool = True
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The view of a user's vectors: one cloud, called layer 0; see `isoviz.exploring.measuring.compute`.

    Args:
        complete: False leaves the slow measures pending.
    """
    began = time.monotonic()
    tell(0, 100, "reading the vectors")
    vector_set = load_set(VECTORS, request.data)
    assert isinstance(vector_set, VectorSet)
    cloud = vector_set.points
    read = time.monotonic()
    tell(5, 100, "measuring")
    record = measure(cloud, name=POOLING, seed=request.seed, costs=QUICK)
    record = record.model_copy(update={"layer": 0, "pooling": POOLING})
    tell(30, 100, "drawing up figures")
    kept = nonzero_rows(cloud)
    map_rows = kept[draw(len(kept), min(MAP_POINTS, measuring.CLOUD_BYTES // (2 * vector_set.d)), request.seed)]
    figure_rows = map_rows[draw(len(map_rows), measuring.CLOUD_POINTS, request.seed)]
    some = _picked(cloud, figure_rows)
    figures = measuring.figures_of(some, with_matrix=True, seed=request.seed)
    arrays = {array_name(0, POOLING, what): array for what, array in figures.items()}
    arrays[array_name(0, POOLING, "cloud")] = _picked(cloud, map_rows, measuring.small)
    table = rows_of(vector_set)
    table.insert(0, "row", np.arange(vector_set.n))
    arrays[points.ROWS] = points.packed(table.iloc[map_rows].reset_index(drop=True))
    arrays[points.TOKENS] = arrays[points.ROWS]
    facts = {
        "format": FORMAT,
        "isoviz": isoviz.__version__,
        "request": request.as_json(),
        "name": vector_set.name,
        "of": dict(vector_set.facts),
        "model_fingerprint": vector_set.key,
        "data_fingerprint": request.data,
        "rows": vector_set.n,
        "rows_in_split": vector_set.n,
        "depth": 0,
        "max_length": 0,
        "truncated": 0,
        "device": "cpu",
        "warnings": _warnings(vector_set.n, kept, len(figure_rows), len(map_rows)),
        "figure_points": len(figure_rows),
        "cosine_points": measuring.COSINE_POINTS,
        "token_sample": 0,
        "reading_seconds": round(read - began, 3),
    }

    def with_readings(readings: dict[str, Reading], pending: list[str]) -> dict[str, Any]:
        reason = "it needs an encoder's tokens, and these are your own vectors"
        records = shrinkage.without([record.with_readings(readings)], reason)
        output = {"reason": "vectors have no output matrix"}
        return measuring.with_records(facts, records, output, {"reason": reason}, read, pending)

    slow = measuring.slow_metrics()
    early = with_readings(dict.fromkeys(slow, measuring.TO_COME), slow)
    if not complete:
        return early, arrays
    if show:
        show(early, arrays)
    tell(50, 100, "comparing pairs of points")
    rest = tuple(cost for cost in COSTS if cost not in QUICK)
    return with_readings(measure(cloud, name=POOLING, seed=request.seed, costs=rest).readings, []), arrays


def ready() -> bool:
    """Run slow first calls once, for `isoviz.jobs.guarded.warm`."""
    few = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
    measure(few, costs=QUICK)
    measuring.figures_of(few, with_matrix=True)
    return True


def _picked(
    cloud: NDArray[Any], places: NDArray[np.int64], convert: Callable[[NDArray[Any]], NDArray[Any]] = np.asarray
) -> NDArray[Any]:
    """The points at these ascending indices, converted; from a mapped file without loading the points between them."""
    parts = []
    for start, block in blocks(cloud, _BLOCK_ROWS):
        inside = slice(*np.searchsorted(places, [start, start + len(block)]))
        if inside.start < inside.stop:
            parts.append(convert(block[places[inside] - start]))
    return np.concatenate(parts)


def _warnings(n: int, kept: NDArray[np.int64], in_figures: int, on_map: int) -> list[str]:
    warnings = []
    if len(kept) < n:
        first = int(np.setdiff1d(np.arange(n), kept)[0]) + 1
        warnings.append(f"{zeros_left_out(n, len(kept))} (the first is row {first})")
    if in_figures < len(kept):
        warnings.append(
            f"the figures use {in_figures:,} of {len(kept):,} vectors and the map up to {on_map:,}, drawn at random with seed 0; the "
            "closed-form measures use all"
        )
    return warnings


def publish_first(request: ViewRequest, key: str) -> bool:
    """Publish the view without its slow measures, which a job adds later, because starting its process takes seconds.

    For `isoviz.jobs.guarded`, whose process is still running after a page has read the vectors.
    """
    STORE.publish(key, *compute(request, lambda *_: None, complete=False))
    return True

"""The view of a person's own vectors: one cloud, with all that an encoder's layer has."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import isoviz
from isoviz.exploring import measuring, points, shrinkage
from isoviz.exploring.own import POOLING, VECTORS, found, rows_of
from isoviz.exploring.request import FORMAT, ViewRequest
from isoviz.exploring.results import STORE, array_name
from isoviz.metrics.cloud import blocks
from isoviz.metrics.protocol import COSTS, QUICK
from isoviz.metrics.record import PENDING, Reading
from isoviz.models.profile import measure
from isoviz.vectors import VectorSet

_BLOCK_ROWS: Final = 16_384
MAP_POINTS: Final = 200_000
"""Vectors that the map can show; of more, as many are drawn by the seed. Fewer where they would take more than `CLOUD_BYTES`."""
Show = Callable[[dict[str, Any], dict[str, NDArray[Any]]], None]


def compute(
    request: ViewRequest, tell: Callable[[int, int, str], None], show: Show | None = None, *, whole: bool = True
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The view of own vectors: one cloud, called layer 0; see `isoviz.exploring.measuring.compute`.

    Args:
        whole: False leaves the slow measures pending.
    """
    began = time.monotonic()
    tell(0, 100, "reading the vectors")
    kept = found(VECTORS, request.data)
    assert isinstance(kept, VectorSet)
    cloud = kept.points
    read = time.monotonic()
    tell(5, 100, "measuring")
    record = measure(cloud, name=POOLING, seed=request.seed, costs=QUICK)
    record = record.model_copy(update={"layer": 0, "pooling": POOLING})
    tell(30, 100, "drawing up figures")
    chosen = measuring.drawn(kept.n, min(MAP_POINTS, measuring.CLOUD_BYTES // (2 * kept.d)), request.seed)
    few = chosen[measuring.drawn(len(chosen), measuring.CLOUD_POINTS, request.seed)]
    some = _picked(cloud, few)
    figures = measuring.figures_of(some, with_matrix=True, seed=request.seed)
    arrays = {array_name(0, POOLING, what): array for what, array in figures.items()}
    arrays[array_name(0, POOLING, "cloud")] = _picked(cloud, chosen, measuring.small)
    table = rows_of(kept)
    table.insert(0, "row", np.arange(kept.n))
    arrays[points.ROWS] = points.packed(table.iloc[chosen].reset_index(drop=True))
    arrays[points.TOKENS] = arrays[points.ROWS]
    why = "it needs an encoder's tokens, and these are your own vectors"
    facts = {
        "format": FORMAT,
        "isoviz": isoviz.__version__,
        "request": request.as_json(),
        "name": kept.name,
        "of": dict(kept.facts),
        "model_fingerprint": kept.key,
        "data_fingerprint": request.data,
        "rows": kept.n,
        "rows_in_split": kept.n,
        "depth": 0,
        "max_length": 0,
        "truncated": 0,
        "device": "cpu",
        "warnings": _warnings(kept, len(few), len(chosen)),
        "figure_points": len(few),
        "cosine_points": measuring.COSINE_POINTS,
        "token_sample": 0,
        "reading_seconds": round(read - began, 3),
        "output": {"reason": "vectors have no output matrix"},
        "shrinkage": {"reason": why},
        "layers": None,
    }

    def entries(readings: dict[str, Reading]) -> list[dict[str, Any]]:
        whole = shrinkage.without([record.with_readings(readings)], why)
        return [one.model_dump(mode="json") for one in whole]

    slow = measuring.slow_metrics()
    soon = entries(dict.fromkeys(slow, Reading(undefined=PENDING)))
    seconds = round(time.monotonic() - read, 3)
    early = {**facts, "entries": soon, "pending": slow, "measuring_seconds": seconds}
    if not whole:
        return early, arrays
    if show:
        show(early, arrays)
    tell(50, 100, "comparing pairs of points")
    more = measure(cloud, name=POOLING, seed=request.seed, costs=tuple(cost for cost in COSTS if cost not in QUICK))
    seconds = round(time.monotonic() - read, 3)
    return {**facts, "entries": entries(more.readings), "measuring_seconds": seconds}, arrays


def ready() -> bool:
    """Do once what is slow the first time in a process, for `isoviz.jobs.guarded.warm`."""
    few = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
    measure(few, costs=QUICK)
    measuring.figures_of(few, with_matrix=True)
    return True


def _picked(
    cloud: NDArray[Any], places: NDArray[np.int64], convert: Callable[[NDArray[Any]], NDArray[Any]] = np.asarray
) -> NDArray[Any]:
    """The points at these places, ascending, converted; of a mapped file without holding what lies between them."""
    parts = []
    for start, block in blocks(cloud, _BLOCK_ROWS):
        inside = slice(*np.searchsorted(places, [start, start + len(block)]))
        if inside.start < inside.stop:
            parts.append(convert(block[places[inside] - start]))
    return np.concatenate(parts)


def _warnings(kept: VectorSet, in_figures: int, on_map: int) -> list[str]:
    told = []
    zeros = kept.zero_rows
    if len(zeros):
        first = f"row {zeros[0] + 1}" if len(zeros) == 1 else f"the first is row {zeros[0] + 1}"
        many = "1 vector is" if len(zeros) == 1 else f"{len(zeros):,} vectors are"
        told.append(f"{many} all zeros ({first}); cosines leave them out")
    if in_figures < kept.n:
        told.append(
            f"the figures use {in_figures:,} of {kept.n:,} vectors and the map up to {on_map:,}, drawn at random with seed 0; the "
            "closed-form measures use all"
        )
    return told


def publish_first(request: ViewRequest, key: str) -> bool:
    """Publish the view without its slow measures, which a job adds: seconds before a process for it has started.

    For `isoviz.jobs.guarded`: a page that has just had the vectors read has such a process at hand.
    """
    STORE.publish(key, *compute(request, lambda *_: None, whole=False))
    return True

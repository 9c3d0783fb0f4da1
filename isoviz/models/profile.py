"""Every metric of every cloud of a pass: one record per layer and pooling."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from isoviz.metrics.cloud import blocks, check_shape, draw
from isoviz.metrics.copies import nonzero_rows, zeros_left_out
from isoviz.metrics.measuring import measure_cloud, readings_of
from isoviz.metrics.moments import prefers_gram
from isoviz.metrics.protocol import COSTS, QUICK, CloudKind, Cost
from isoviz.metrics.record import CloudRecord, Reading
from isoviz.metrics.sample import Sample
from isoviz.metrics.streaming import CovarianceAccumulator
from isoviz.models.views import POOLINGS, Pooling, Views
from isoviz.statistics import intervals

MOST_PAIRED = 5_000
"""Points that metrics over pairs are taken on at most: their time grows with the square."""
STREAM_ABOVE = 2**27
"""Bytes, as float64, above which a cloud is not held as a whole."""
_BLOCK_ROWS = 4_096


def profile(
    views: Views,
    *,
    split: str = "",
    most: int = MOST_PAIRED,
    seed: int = 0,
    costs: Collection[Cost] = COSTS,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[CloudRecord]:
    """One record per layer × pooling, in the order of `POOLINGS` and, within each, of the layers.

    Clouds are called `layer_k`, or `head`. For `tokens`, n counts every token; metrics that are right for independent points only
    are taken on one random token per row.

    Args:
        split: of the rows, repeated in each record.
        most: metrics over pairs are taken on a seeded subsample of a cloud with more points.
        costs: what is measured; `completed` adds the rest.
        progress: called after each cloud.
    """
    keys: list[tuple[int, Pooling]] = [*views.clouds, *((layer, "tokens") for layer in views.tokens)]
    keys.sort(key=lambda key: (POOLINGS.index(key[1]), key[0]))
    records = []
    for done, (layer, pooling) in enumerate(keys, start=1):
        records.append(record(views, layer, pooling, split=split, most=most, seed=seed, costs=costs))
        if progress:
            progress(done, len(keys), "measuring")
    return records


def completed(record: CloudRecord, views: Views, *, most: int = MOST_PAIRED, seed: int = 0) -> CloudRecord:
    """A record that was made with `costs=QUICK`, with the rest."""
    assert record.layer is not None
    slow = tuple(cost for cost in COSTS if cost not in QUICK)
    pooling = cast(Pooling, record.pooling)
    sample, kind, options = _cloud(views, record.layer, pooling)
    return record.with_readings(readings_of(sample, kind, costs=slow, most=most, seed=seed, **options))


def record(
    views: Views,
    layer: int,
    pooling: Pooling,
    *,
    split: str = "",
    most: int = MOST_PAIRED,
    seed: int = 0,
    costs: Collection[Cost] = COSTS,
) -> CloudRecord:
    """The record of one cloud; see `profile`."""
    notes = views.warnings if pooling == "head" else ()
    context = {"layer": layer, "pooling": pooling, "truncated": views.truncated, "notes": notes}
    sample, kind, options = _cloud(views, layer, pooling)
    name = "head" if pooling == "head" else f"layer_{layer}"
    made = measure_cloud(sample, name, kind, split=split, where=context, costs=costs, most=most, seed=seed, **options)
    if pooling == "tokens" and layer in views.tokens and len(views.tokens[layer].entropies):
        return made.with_readings({"prompt_entropy": _of_prompts(views.tokens[layer].entropies, views.rows)})
    return made


def _of_prompts(entropies: NDArray[np.float64], rows: int) -> Reading:
    defined = entropies[~np.isnan(entropies)]
    if not len(defined):
        return Reading(undefined="no text has 2 tokens that are not zero")
    return Reading(
        value=float(defined.mean()),
        interval=intervals.of_mean(defined.tolist()),
        note=f"is the mean over {len(defined):,} of {rows:,} texts",
    )


def measure(
    points: NDArray[Any], *, name: str = "", most: int = MOST_PAIRED, seed: int = 0, costs: Collection[Cost] = COSTS
) -> CloudRecord:
    """Every metric of a cloud (n, d) of independent points.

    Above `STREAM_ABOVE` the points (which may lie in a memory-mapped file) are read in blocks; the values are the same. Rows of zeros are
    left out, and the notes say how many.

    Raises:
        InputError: not (points, dimensions), not real numbers, or non-finite.
    """
    check_shape(np.shape(points), "points")
    kept = nonzero_rows(points)
    note = zeros_left_out(len(points), len(kept))
    where = {"notes": (note,) if note else ()}
    if points.size * 8 <= STREAM_ABOVE:
        cloud = Sample(points[kept] if note else points)
        return measure_cloud(cloud, name, where=where, costs=costs, most=most, seed=seed)
    stream = CovarianceAccumulator(points.shape[1])
    rows = kept[draw(len(kept), most, seed)]
    pair_points = np.empty((len(rows), points.shape[1]), dtype=points.dtype)
    for start, block in blocks(points, _BLOCK_ROWS):
        stream.update(block[block.any(axis=1)] if note else block)
        block_rows = slice(*np.searchsorted(rows, [start, start + len(block)]))
        pair_points[block_rows] = block[rows[block_rows] - start]
    drawn = Sample(pair_points)
    return measure_cloud(stream.sample(), name, where=where, costs=costs, drawn=drawn, most=most, seed=seed)


def _cloud(views: Views, layer: int, pooling: Pooling) -> tuple[Sample, CloudKind, dict[str, Any]]:
    if pooling == "tokens" and layer in views.tokens:
        tokens, drawn = views.tokens[layer], Sample(views.tokens[layer].sample)
        # few tokens, all of them drawn: their (n, n) matrix has the same eigenvalues as the sums' (d, d)
        few = drawn.n == tokens.stream.count and prefers_gram(drawn.n, drawn.d)
        sample = drawn if few else tokens.stream.sample()
        return sample, "tokens", {"independent": Sample(tokens.one_per_row), "drawn": drawn}
    return Sample(views.points(layer, pooling)), "rows", {}

"""Every measure of every cloud of a pass, ready for JSON: one entry per layer and pooling."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz import metrics
from isoviz.metrics.cloud import check_shape, resolution
from isoviz.metrics.cloud_stream import CloudStream
from isoviz.metrics.neighbours import twonn_estimate
from isoviz.models.views import POOLINGS, Pooling, TokenView, Views

MAX_NEIGHBOURS = 5_000
"""Points that TwoNN is taken on at most: its time grows with their square."""
STREAM_ABOVE = 2**30
"""Bytes, as float64, above which a cloud is not held as a whole."""
_BLOCK_ROWS = 16_384


def profile(
    views: Views,
    *,
    split: str | None = None,
    max_neighbours: int = MAX_NEIGHBOURS,
    seed: int = 0,
    twonn: bool = True,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[dict[str, Any]]:
    """One entry per layer × pooling, in the order of `POOLINGS` and, within each, of the layers.

    Each entry has `cloud` (`layer_k`, or `head`), `layer`, `pooling`, `split`, all that `isoviz.metrics.describe` gives
    (n, d, measures, warnings), `dropped` (zero vectors and duplicates that a measure leaves out, by name), `twonn_points`
    (points that TwoNN was taken on), `abs_correlation` (see `of_dimensions`) and `truncated` (rows that were cut). For `tokens`, n counts
    every token; `isoscore_unbiased` is taken on one random token per row (`unbiased_points` of them), because tokens of one
    text are not independent.

    Args:
        split: name of the rows' split, repeated in each entry.
        max_neighbours: TwoNN is taken on a seeded subsample of a cloud with more points.
        twonn: False leaves it out, which takes most of the time; `with_twonn` adds it.
        progress: called after each cloud.
    """
    keys: list[tuple[int, Pooling]] = [*views.clouds, *((layer, "tokens") for layer in views.tokens)]
    keys.sort(key=lambda key: (POOLINGS.index(key[1]), key[0]))
    entries = []
    for done, (layer, pooling) in enumerate(keys):
        entries.append(entry(views, layer, pooling, split=split, max_neighbours=max_neighbours, seed=seed, twonn=twonn))
        if progress:
            progress(done + 1, len(keys), "measuring")
    return entries


def with_twonn(
    found: dict[str, Any], views: Views, *, max_neighbours: int = MAX_NEIGHBOURS, seed: int = 0
) -> dict[str, Any]:
    """An entry that was made without TwoNN, as it is with it."""
    layer, pooling = found["layer"], found["pooling"]
    of_tokens = pooling == "tokens" and layer in views.tokens
    points = views.tokens[layer].sample if of_tokens else views.points(layer, pooling)
    whole = {**found, "warnings": list(found["warnings"]), "dropped": dict(found["dropped"])}
    _add_twonn(whole, points, max_neighbours, seed)
    return whole


def entry(
    views: Views,
    layer: int,
    pooling: Pooling,
    *,
    split: str | None = None,
    max_neighbours: int = MAX_NEIGHBOURS,
    seed: int = 0,
    twonn: bool = True,
) -> dict[str, Any]:
    """The entry of one cloud; see `profile`."""
    if pooling == "tokens" and layer in views.tokens:
        values = _of_tokens(views.tokens[layer], max_neighbours, seed, twonn)
    else:
        values = measure(views.points(layer, pooling), max_neighbours=max_neighbours, seed=seed, twonn=twonn)
    cloud = "head" if pooling == "head" else f"layer_{layer}"
    values["warnings"] = [*views.warnings, *values["warnings"]] if pooling == "head" else values["warnings"]
    return {
        "cloud": cloud,
        "layer": layer,
        "pooling": pooling,
        "split": split,
        **values,
        "truncated": views.truncated,
    }


def measure(
    points: NDArray[Any], *, max_neighbours: int = MAX_NEIGHBOURS, seed: int = 0, twonn: bool = True
) -> dict[str, Any]:
    """All that `isoviz.metrics.describe` gives of (n, d), with `dropped`, `twonn_points` and `abs_correlation`; see `profile`.

    Above `STREAM_ABOVE` the points (which may lie in a memory-mapped file) are read in blocks; the values are the same.

    Raises:
        InputError: not (points, dimensions), not real numbers, or non-finite.
    """
    check_shape(np.shape(points), "points")
    values: dict[str, Any] = {}
    if points.size * 8 <= STREAM_ABOVE:
        values = {**metrics.describe(points, twonn=False)}
    stream = CloudStream(points.shape[1], resolution(points))
    for start in range(0, len(points), _BLOCK_ROWS):
        stream.update(points[start : start + _BLOCK_ROWS])
    if not values:
        with warnings.catch_warnings():  # undefined only where isoscore is, which gives the reason
            warnings.simplefilter("ignore", metrics.UndefinedWarning)
            unbiased = stream.sums.isoscore_unbiased()
        values = {
            **stream.describe(),
            "isoscore_unbiased": unbiased if np.isfinite(unbiased) else None,
            "isoscore_unbiased_interval": None,
        }
        values["warnings"].append("isoscore_unbiased_interval is left out: it needs the whole cloud in memory")
    values["dropped"] = {"zero_vectors": stream.zeros}
    if twonn:
        _add_twonn(values, points, max_neighbours, seed)
    return {**values, **{name: value for name, value in of_dimensions(stream).items() if name not in values}}


def of_dimensions(stream: CloudStream) -> dict[str, Any]:
    """What is said of single dimensions, under the names that `isoviz.metrics.describe` has for it, and one more.

    `sigma` (min, median and max of the population standard deviations), `outlier_dimensions`, `mean_norm`, and
    `abs_correlation`: the mean |ρ| of distinct dimensions that vary, None where fewer than two do.
    """
    if stream.count < 2:
        return {"sigma": None, "outlier_dimensions": [], "mean_norm": None, "abs_correlation": None}
    mean = stream.mean()
    std = stream.std()
    return {
        "sigma": {"min": float(std.min()), "median": float(np.median(std)), "max": float(std.max())},
        # The rule looks at the mean activation alone, so the mean as a cloud of one point has the same outliers.
        "outlier_dimensions": np.asarray(metrics.outlier_dimensions(mean[None])).tolist()[:20],
        "mean_norm": float(np.linalg.norm(mean)),
        "abs_correlation": stream.mean_abs_correlation(),
    }


def _of_tokens(tokens: TokenView, max_neighbours: int, seed: int, twonn: bool) -> dict[str, Any]:
    exact = tokens.stream.describe()
    independent = metrics.describe(tokens.one_per_row, twonn=False)
    notes = [f"isoscore_unbiased takes one token of each row, {independent['n']} of {exact['n']}"]
    notes += [note for note in independent["warnings"] if note.startswith("isoscore_unbiased")]
    unbiased = {name: value for name, value in independent.items() if name.startswith("isoscore_unbiased")}
    values: dict[str, Any] = {**exact, **unbiased, "warnings": [*exact["warnings"], *notes]}
    values["dropped"] = {"zero_vectors": tokens.stream.zeros}
    if twonn:
        _add_twonn(values, tokens.sample, max_neighbours, seed)
    values["unbiased_points"] = independent["n"]
    return {**values, **of_dimensions(tokens.stream)}


def _add_twonn(values: dict[str, Any], points: NDArray[Any], max_neighbours: int, seed: int) -> None:
    """`twonn`, `twonn_points` and the duplicates it drops into the entry, with a note where it is a subsample or undefined."""
    if len(points) > max_neighbours:
        rows = np.random.default_rng(seed).choice(len(points), max_neighbours, replace=False, shuffle=False)
        points = points[np.sort(rows)]
    estimate, duplicates = twonn_estimate(np.asarray(points, dtype=np.float64))
    values["twonn"] = None if estimate.problem else float(estimate.value)
    values["twonn_points"] = len(points)
    values["dropped"]["duplicates"] = duplicates
    if estimate.problem:
        values["warnings"].append(f"twonn is undefined: {estimate.problem}")
    if duplicates:
        values["warnings"].append(f"twonn leaves out {duplicates} duplicate points")
    if len(points) < values["n"]:
        values["warnings"].append(f"twonn is taken on a sample of {len(points)} of {values['n']} points")

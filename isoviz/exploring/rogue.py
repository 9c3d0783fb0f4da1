"""Rogue dimensions of a cloud: which they are, and how much of the cloud they determine."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz.metrics.cloud import draw, resolution
from isoviz.metrics.copies import comparable_rows
from isoviz.metrics.dimensions import dead_dimensions, outliers_of
from isoviz.readouts import cosines
from isoviz.readouts.image import Image
from isoviz.statistics import paired_bootstrap
from isoviz.statistics.paired_bootstrap import Difference

MOST_POINTS: Final = 2_000
"""Most points for cosines and neighbours, drawn with seed 0."""
CROWDED: Final = 0.05
"""Shares of a mean cosine below this are undefined, because its parts cancel."""


@dataclass(frozen=True)
class RogueDimensions:
    """The dimensions whose mean or spread is more than three standard deviations from the average over the dimensions.

    Attributes:
        numbers: (k,) indices, the most extreme first.
        of_mean, of_spread: whether the mean, or the spread, is that far out; (k,) each.
        mean_distance, spread_distance: (k,) distances from the median of all dimensions, in robust standard deviations
            (1.4826 MAD); nan if the MAD is 0.
        variance: (k,) shares of the total variance.
        cosine: (k,) shares of the mean cosine of two points; nan if that is below `CROWDED`.
        mean_cosine, mean_cosine_without: with all dimensions, and without the rogue ones; None if undefined.
        points: number of points for cosines and neighbours.
        overlap: share of the 10 nearest points that stay without the rogue dimensions.
        dead: dimensions that do not vary.
    """

    numbers: NDArray[np.int64]
    of_mean: NDArray[np.bool_]
    of_spread: NDArray[np.bool_]
    mean_distance: NDArray[np.float64]
    spread_distance: NDArray[np.float64]
    variance: NDArray[np.float64]
    cosine: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    mean_cosine: float | None = None
    mean_cosine_without: float | None = None
    points: int = 0
    overlap: Difference | None = None
    dead: tuple[int, ...] = ()


def rogue_dimensions(mean: NDArray[Any], spread: NDArray[Any], points: NDArray[np.floating]) -> RogueDimensions:
    """The rogue dimensions of a cloud of points (n, d), from the mean and standard deviation (d,) of each dimension."""
    mean, spread = np.asarray(mean, np.float64), np.asarray(spread, np.float64)
    by_mean, by_spread = outliers_of(mean, std=spread), outliers_of(spread)
    numbers = np.union1d(by_mean, by_spread)
    extreme = np.maximum(
        np.abs(mean - mean.mean()) / (mean.std() or 1.0), np.abs(spread - spread.mean()) / (spread.std() or 1.0)
    )
    numbers = numbers[np.argsort(-extreme[numbers], kind="stable")].astype(np.int64)
    total = float(spread @ spread)
    chosen = RogueDimensions(
        numbers,
        np.isin(numbers, by_mean),
        np.isin(numbers, by_spread),
        _robust_distance(mean)[numbers],
        _robust_distance(spread)[numbers],
        spread[numbers] ** 2 / total if total > 0 else np.full(len(numbers), np.nan),
        dead=tuple(dead_dimensions(spread, mean, resolution(points)).tolist()),
    )
    return _measured(chosen, points) if len(numbers) else chosen


def _measured(chosen: RogueDimensions, points: NDArray[np.floating]) -> RogueDimensions:
    """Add the effect on cosines and neighbours."""
    rows = draw(len(points), MOST_POINTS)
    rows = rows[comparable_rows(points[rows])[0]]
    cloud = np.asarray(points[rows], np.float64)
    without = cloud.copy()
    without[:, chosen.numbers] = 0.0
    before, after = Image(cloud), Image(without)
    parts = _cosine_parts(before.unit)
    crowded = parts is not None and parts.sum() >= CROWDED
    of_rest = _cosine_parts(after.unit)
    return replace(
        chosen,
        cosine=parts[chosen.numbers] / parts.sum()
        if crowded and parts is not None
        else np.full(len(chosen.numbers), np.nan),
        mean_cosine=None if parts is None else float(parts.sum()),
        mean_cosine_without=None if of_rest is None else float(of_rest.sum()),
        points=len(rows),
        overlap=paired_bootstrap.interval(cosines.overlap(before, after)),
    )


def _robust_distance(values: NDArray[np.float64]) -> NDArray[np.float64]:
    distance: NDArray[np.float64] = values - np.median(values)
    scale = 1.4826 * float(np.median(np.abs(distance)))
    return distance / scale if scale > 0 else np.full(len(values), np.nan)


def _cosine_parts(unit: NDArray[np.floating]) -> NDArray[np.float64] | None:
    """(d,): the part of each dimension in the mean cosine of two distinct points with a direction; None if there are too few."""
    x = unit[np.any(unit != 0, axis=1)].astype(np.float64)
    n = len(x)
    if n < 2:
        return None
    parts: NDArray[np.float64] = (x.sum(axis=0) ** 2 - np.einsum("ij,ij->j", x, x)) / (n * (n - 1))
    return parts

"""The intrinsic dimension from the two nearest neighbours (Facco et al. 2017)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import InputError
from isoviz.metrics.cloud import Estimate, like, warn_undefined
from isoviz.metrics.moments import centre
from isoviz.metrics.protocol import COVARIANCE_ONLY, AtIsotropy, Citation, EnoughPoints, Metric, Range, constant
from isoviz.metrics.sample import Sample

if TYPE_CHECKING:
    from isoviz.metrics.cloud import Points, Value

_BLOCK = 1_000_000  # distances held at a time: 8 MB, within the cache
_TWIN = 64 * np.finfo(np.float64).eps


def twonn(
    points: Points,
    discard_fraction: float = 0.1,
    convention: Literal["current", "pre-2024"] = "current",
) -> Value:
    """TwoNN intrinsic dimension of a cloud (n, d).

    The slope through the origin of −log(1 − F(μ)) on log μ, where μ is the ratio of a point's second to its first
    nearest-neighbour distance and F its empirical distribution.

    Duplicate points (also up to float64 round-off) count once. It saturates: a 100-dimensional Gaussian of
    800 points gives 47. Invariant to shift, scale and rotation, not to scaling single dimensions. Time grows
    with n²: subsample beyond ~20,000.

    Args:
        discard_fraction: share of the largest ratios to leave out, in [0, 1).
        convention: "pre-2024" starts the empirical distribution at 0 instead of 1/n, as scikit-dimension did
            before 0.4 and thus as published values do: lower by 0.4 % at n = 800, 8 % at n = 40.
    """
    if not 0 <= discard_fraction < 1:
        raise InputError(f"discard_fraction must lie in [0, 1), got {discard_fraction}")
    if convention not in ("current", "pre-2024"):
        raise InputError(f"convention must be 'current' or 'pre-2024', got {convention!r}")
    estimate = twonn_estimate(Sample(points), discard_fraction, convention)
    if estimate.problem:
        warn_undefined("twonn", estimate.problem)
    return like(points, estimate.value)


def twonn_estimate(sample: Sample, discard_fraction: float = 0.1, convention: str = "current") -> Estimate:
    """The same of a sample's points; its note says how many duplicates were left out."""
    assert sample.points is not None
    n = sample.n
    x = _distinct(sample.points)
    usable = len(x)
    near = None
    while usable >= 3:
        near = sample.neighbours if usable == n else nearest(x, 2)  # searched once for all metrics that want them
        twin = near.distances[:, 0] ** 2 <= _TWIN * (near.lengths + near.lengths[near.indices[:, 0]])
        if not twin.any():
            break
        # of two twins the later one goes; its own nearest neighbour may have been a third
        keep = np.ones(usable, dtype=bool)
        mine = np.flatnonzero(twin)
        keep[np.maximum(mine, near.indices[mine, 0])] = False
        x = x[keep]
        usable = len(x)
    note = f"leaves out {n - usable} duplicate points" if usable < n else ""
    if usable < 3 or near is None:
        return Estimate(float("nan"), f"it needs at least 3 distinct points, got {usable}", note)
    ratios = near.distances[:, 1] / near.distances[:, 0]
    log_ratio = np.log(np.sort(ratios)[: int(usable * (1 - discard_fraction))])
    start = 1 if convention == "current" else 0
    share = np.arange(start, start + len(log_ratio)) / usable
    inside = share < 1  # without discarding, the last one has no finite −log(1 − F)
    log_ratio, survival = log_ratio[inside], -np.log1p(-share[inside])
    spread = float(log_ratio @ log_ratio)
    if not spread > 0:
        return Estimate(float("nan"), "no point's second neighbour is farther than its first", note)
    return Estimate(float(log_ratio @ survival) / spread, note=note)


def _distinct(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Without repeated rows, in the order of first appearance. Hashing beats sorting rows of hundreds of numbers."""
    rows = np.ascontiguousarray(x)
    first_seen = {row.tobytes(): index for index, row in reversed(list(enumerate(rows)))}
    return rows if len(first_seen) == len(rows) else rows[sorted(first_seen.values())]


class Neighbours(NamedTuple):
    """The nearest other points of each of n points, ascending: `distances` and `indices` (n, k); `lengths` (n,) are squared
    lengths of the centred points, all in one unit."""

    distances: NDArray[np.float64]
    indices: NDArray[np.int64]
    lengths: NDArray[np.float64]


def nearest(points: NDArray[np.float64], k: int) -> Neighbours:
    """The k nearest of n >= 2 points, fewer where there are no more. Among equal distances the choice is arbitrary.

    The Gram identity only finds the candidates; their distances are computed from differences, free of its
    cancellation.
    """
    x = centre(points)[0]
    x /= np.abs(x).max() or 1.0
    n = len(x)
    k = min(k, n - 1)
    near = min(k + 2, n - 1)
    lengths = np.einsum("ij,ij->i", x, x)
    distances, indices = np.empty((n, k)), np.empty((n, k), dtype=np.int64)
    step = max(1, _BLOCK // n)
    minus_twice = -2.0 * x.T
    for start in range(0, n, step):
        rows = np.arange(start, min(start + step, n))
        squared = x[rows] @ minus_twice
        squared += lengths  # the row's own length does not change the order
        squared[np.arange(len(rows)), rows] = np.inf
        candidates = np.sort(_smallest(squared, near), axis=1)
        exact = np.stack([_squared_distance(x[rows], x[candidates[:, j]]) for j in range(near)], axis=1)
        order = np.argsort(exact, axis=1, kind="stable")[:, :k]
        distances[rows] = np.sqrt(np.take_along_axis(exact, order, axis=1))
        indices[rows] = np.take_along_axis(candidates, order, axis=1)
    return Neighbours(distances, indices, lengths)


def _smallest(values: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """(m, count) where the smallest of each row stand, in any order; overwrites."""
    if count > 4:
        return np.argpartition(values, count - 1, axis=1)[:, :count]
    here, found = np.arange(len(values)), np.empty((len(values), count), dtype=np.int64)
    for j in range(count):  # so few passes over the block take less time than argpartition's one
        found[:, j] = values.argmin(axis=1)
        values[here, found[:, j]] = np.inf
    return found


def _squared_distance(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    difference = a - b
    return np.einsum("ij,ij->i", difference, difference)


# ------------------------------------------------------------------------------------------------- catalogue

METRICS = Metric(
    slug="twonn",
    place=80,
    title="Intrinsic dimension (TwoNN)",
    label="TwoNN",
    symbol="ID",
    unit="directions",
    sees="How many directions a point's nearest neighbours spread into, also on a curved surface.",
    blind_to="Cannot see how much wider the cloud is in one direction than in another, nor tell high dimensions apart.",
    range=Range("above 0, scatters around the true value", constant(0.0)),
    at_isotropy=AtIsotropy("d, while d is small", lambda n, d: d, "population"),
    unchanged_by=COVARIANCE_ONLY,
    enough=EnoughPoints(
        "160 up to d = 10, within 20 %; it saturates beyond: 800 points of a 100-d Gaussian give about 47",
        "saturates",
        lambda d: 160,
        0.2,
    ),
    paper=Citation("Facco et al. 2017", "facco2017twonn", 2017, "arXiv:1803.06992"),
    equation=r"-\log(1 - F(\mu)) = \mathrm{ID} \cdot \log\mu, \quad \mu = r_2 / r_1",
    function=twonn,
    estimate=twonn_estimate,
    minimum=3,
    cost="pairs",
    from_sums=False,
    most=20_000,
    decimals=1,
)

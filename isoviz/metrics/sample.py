"""A cloud as input of estimators: its points, or running sums if there are too many points for memory. Quantities that several
estimators share are computed once, on first use.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import InputError
from isoviz.metrics.cloud import Points, draw, float64_matrix, is_tensor, resolution
from isoviz.metrics.copies import distinct_rows
from isoviz.metrics.moments import Moments, centre, cloud_moments, eigenvalues, prefers_gram, std_of
from isoviz.metrics.nearest import Graph, Neighbours, graph, nearest

NEAREST = 10
"""Number of neighbours found in one search for all metrics; the distances dominate the time, not the number."""
HUBNESS_POINTS = 2_000
"""Hubness subsamples larger clouds to this many points; metrics that need fewer neighbours then search for those only."""
Matrix = NDArray[np.float64]


class Directions(NamedTuple):
    """Σ x/‖x‖ over the non-zero vectors, shape (d,), and the number of zero vectors."""

    total: Matrix
    zeros: int


class Sample:
    """The points of a cloud.

    Attributes:
        points: (n, d) float64; None if only sums are known.
        n, d: points and dimensions.
        inputs: additional inputs of some metrics, by name (`Metric.inputs`).
        eps: machine epsilon of the points' number type.
    """

    points: Matrix | None

    def __init__(self, points: Points, *, inputs: Mapping[str, Any] | None = None) -> None:
        """A sample of `points`, validated as for every metric; raises `InputError` likewise."""
        self.points = float64_matrix(points)
        self.n, self.d = self.points.shape
        self.eps = resolution(points)
        self.inputs = dict(inputs or {})
        self._subsets: dict[tuple[int, int], Sample] = {}
        self._neighbours: dict[int, Neighbours] = {}
        self._graphs: dict[int, Graph] = {}

    def subset(self, most: int | None, seed: int) -> Sample:
        """At most `most` points, drawn with the seed without replacement, in their original order; itself if it has no
        more. Metrics of equally many points share it, and what it caches."""
        if self.points is None or most is None or self.n <= most:
            return self
        if (most, seed) not in self._subsets:
            self._subsets[most, seed] = self._of_rows(draw(self.n, most, seed))
        return self._subsets[most, seed]

    def _of_rows(self, rows: NDArray[np.int64]) -> Sample:
        assert self.points is not None
        part = Sample(self.points[rows], inputs=self.inputs)
        part.eps = self.eps
        return part

    @cached_property
    def moments(self) -> Moments | None:
        """T, F, Q, the covariance or Gram matrix and the centred points; None for fewer than two points."""
        if self.n < 2 or self.points is None:
            return None
        return cloud_moments(self.points, self.eps)

    @cached_property
    def eigenvalues(self) -> Matrix | None:
        """The covariance's eigenvalues in some unit, in decreasing order; None without a covariance or if all points are
        equal."""
        moments = self.moments
        return None if moments is None or moments.collapsed or moments.matrix is None else eigenvalues(moments.matrix)

    @cached_property
    def _centred(self) -> tuple[Matrix, Matrix]:
        assert self.points is not None
        return centre(self.points)

    @cached_property
    def mean(self) -> Matrix:
        """(d,) mean activation, n >= 1."""
        return self._centred[1]

    @cached_property
    def std(self) -> Matrix:
        """(d,) population standard deviation (divisor n), n >= 1."""
        return std_of(self._centred[0])

    @cached_property
    def collapsed(self) -> bool:
        """Whether all points are equal up to the resolution of their number type, n >= 1."""
        return bool(np.all(self.std <= self.eps * np.abs(self.mean)))

    @cached_property
    def true_covariance(self) -> Matrix:
        """(d, d), divisor n − 1, in the points' own unit, n >= 2."""
        centred = self._centred[0]
        return centred.T @ centred / (self.n - 1)

    @cached_property
    def covariance(self) -> Matrix:
        """(d, d) in some unit, n >= 2 and not few."""
        assert self.moments is not None and self.moments.matrix is not None
        return self.moments.matrix

    @cached_property
    def varies(self) -> NDArray[np.bool_]:
        """(d,) whether each dimension varies: σ above 1e-12 of the largest."""
        return self.std > 1e-12 * self.std.max()

    @cached_property
    def abs_correlation(self) -> Matrix:
        """(d, d) |ρ|, n >= 2. A dimension without variance correlates 1 with itself and 0 with others."""
        if self.points is not None and prefers_gram(self.n, self.d):
            scale = np.where(self.varies, 1.0 / (np.where(self.varies, self.std, 1.0) * np.sqrt(self.n)), 0.0)
            unit = self._centred[0] * scale
            correlation = np.abs(unit.T @ unit)
        else:
            scale = np.sqrt(self.covariance.diagonal())
            scale = np.where(self.varies, 1.0 / np.where(self.varies, scale, 1.0), 0.0)
            correlation = np.abs(self.covariance * scale[:, None])
            correlation *= scale
        np.minimum(correlation, 1.0, out=correlation)
        np.fill_diagonal(correlation, 1.0)
        return correlation

    @cached_property
    def second_moment(self) -> Matrix:
        """XᵀX (d, d), or XXᵀ (n, n) if smaller, of the uncentred points, in some unit."""
        assert self.points is not None
        biggest = float(np.abs(self.points).max(initial=0.0)) or 1.0
        x = self.points / biggest
        return x @ x.T if prefers_gram(self.n, self.d) else x.T @ x

    @cached_property
    def distinct(self) -> Sample:
        """The points without copies of earlier ones (`isoviz.metrics.copies`), for neighbour measures; itself if there are none."""
        assert self.points is not None
        rows = distinct_rows(self.points)
        return self if len(rows) == self.n else self._of_rows(rows)

    def neighbours(self, k: int) -> Neighbours:
        """The k nearest neighbours of each point or more, n >= 2; searched once for all metrics of a cloud that is not large."""
        assert self.points is not None
        k = max(k, NEAREST + 1) if self.n <= HUBNESS_POINTS else k
        if k not in self._neighbours:
            self._neighbours[k] = nearest(self.points, k)
        return self._neighbours[k]

    def graph(self, k: int) -> Graph:
        """See `nearest.graph`; n >= k + 2."""
        assert self.points is not None
        if k not in self._graphs:
            self._graphs[k] = graph(self.points, k, self.neighbours(k + 1))
        return self._graphs[k]

    @cached_property
    def directions(self) -> Directions:
        """See `Directions`."""
        assert self.points is not None
        return directions_of(self.points)


def directions_of(x: Matrix) -> Directions:
    """See `Directions`; of points (n, d)."""
    squares = np.einsum("ij,ij->i", x, x)
    if squares.size and squares.min() > 1e-280 and squares.max() < 1e280:  # no overflow or underflow: no copy needed
        return Directions((1.0 / np.sqrt(squares)) @ x, 0)
    biggest = np.abs(x).max(axis=1)
    nonzero = biggest > 0
    unit = x[nonzero] / biggest[nonzero][:, None]
    return Directions((1.0 / np.sqrt(np.einsum("ij,ij->i", unit, unit))) @ unit, int(len(x) - nonzero.sum()))


def as_float64(value: Any) -> Matrix:
    """A numpy array or a tensor on any device, as a numpy array."""
    return value.double().cpu().numpy() if is_tensor(value) else np.asarray(value, dtype=np.float64)


def codes_of(groups: Any, n: int, name: str = "groups") -> NDArray[np.int64]:
    """(n,) the groups, numbers or strings, numbered from 0; `InputError` unless there is one for each point."""
    labels = groups.detach().cpu().numpy() if is_tensor(groups) else np.asarray(groups)
    if labels.shape != (n,):
        raise InputError(f"{name} must name the group of each of the {n} points, got shape {labels.shape}", field=name)
    labels = labels.astype(str) if labels.dtype.kind == "O" else labels
    return np.unique(labels, return_inverse=True)[1].reshape(-1).astype(np.int64)

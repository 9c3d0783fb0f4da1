"""The nearest neighbours of every point of a cloud."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoviz.metrics.moments import centre

_BLOCK = 1_000_000  # numbers held at a time while differences are taken: 8 MB
_SMALL = 1_000  # points; searching fewer takes less time than importing scikit-learn


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
    n, d = x.shape
    k = min(k, n - 1)
    near = min(k + 2, n - 1)
    candidates = np.sort(_candidates(x, near), axis=1)
    distances, indices = np.empty((n, k)), np.empty((n, k), dtype=np.int64)
    step = max(1, _BLOCK // d)
    for rows in (slice(start, start + step) for start in range(0, n, step)):
        exact = np.stack([_squared_distance(x[rows], x[candidates[rows, j]]) for j in range(near)], axis=1)
        order = np.argsort(exact, axis=1, kind="stable")[:, :k]
        distances[rows] = np.sqrt(np.take_along_axis(exact, order, axis=1))
        indices[rows] = np.take_along_axis(candidates[rows], order, axis=1)
    return Neighbours(distances, indices, np.einsum("ij,ij->i", x, x))


def _candidates(x: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """(n, count) the points that are nearest by the Gram identity, in any order."""
    if len(x) <= _SMALL:
        squared = x @ (-2.0 * x.T)
        squared += np.einsum("ij,ij->i", x, x)  # the row's own length does not change the order
        np.fill_diagonal(squared, np.inf)
        return np.argpartition(squared, count - 1, axis=1)[:, :count]
    from sklearn.neighbors import NearestNeighbors

    return NearestNeighbors(n_neighbors=count, algorithm="brute").fit(x).kneighbors(return_distance=False)


def _squared_distance(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    difference = a - b
    return np.einsum("ij,ij->i", difference, difference)

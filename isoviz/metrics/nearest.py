"""The nearest neighbours of every point of a cloud."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoviz.metrics.moments import centre

_BLOCK = 1_000_000  # distances held at a time: 8 MB, within the cache


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

"""The nearest neighbours of every point of a cloud."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoviz.metrics.moments import centre

EQUAL = 1e-6
"""Distances that differ by a smaller share are equally far: single-precision coordinates explain as much. No cloud has 10⁶ dimensions."""
_BLOCK = 1_000_000  # numbers in memory at a time: 8 MB, which fits the cache
_STRIDES = 32


class Neighbours(NamedTuple):
    """The nearest other points of each of n points, ascending: `distances` and `indices` (n, k); `lengths` (n,) are squared
    lengths of the centred points, in the same unit."""

    distances: NDArray[np.float64]
    indices: NDArray[np.int64]
    lengths: NDArray[np.float64]


class Graph(NamedTuple):
    """`chance` (m,) that point `to` (m,) is a neighbour of point `start` (m,); 1 without ties."""

    start: NDArray[np.int64]
    to: NDArray[np.int64]
    chance: NDArray[np.float64]


def nearest(points: NDArray[np.float64], k: int) -> Neighbours:
    """The k nearest of n >= 2 points, or all others if there are fewer. Ties are broken arbitrarily.

    The Gram identity only finds candidates, in single precision. Their distances are computed from differences, which avoids
    cancellation. If its rounding error could have hidden a nearer point, the candidates are searched again in double precision.
    """
    x = centre(points)[0]
    x /= np.abs(x).max() or 1.0
    n, d = x.shape
    k = min(k, n - 1)
    candidate_count = min(k + 2, n - 1)
    lengths = np.einsum("ij,ij->i", x, x)
    candidates, beyond = _candidates(x, np.arange(n), candidate_count, np.float32)
    distances, indices = _nearest_of(x, np.arange(n), candidates, k)
    if candidate_count < n - 1:
        # a nearer point lies within `radii` + `farthest` of the origin, and the error grows with its length
        radii, farthest = np.sqrt(lengths), distances[:, -1]
        error = (d + 8) * (2.0**-24 * (2 * radii + farthest) ** 2 + 2.0**-126)
        uncertain = np.flatnonzero(farthest**2 > beyond + lengths - error)
        candidates, _ = _candidates(x, uncertain, candidate_count, np.float64)
        distances[uncertain], indices[uncertain] = _nearest_of(x, uncertain, candidates, k)
    return Neighbours(distances, indices, lengths)


def graph(points: NDArray[np.float64], k: int, found: Neighbours | None = None) -> Graph:
    """Which of n >= k + 2 points are among the k nearest of which others. The chances of each point's neighbours sum to k.

    Points as far as the k-th nearest (`EQUAL`) are tied with it, and any order of them is as likely as any other. So neither the order
    of the rows nor rounding decides.

    Args:
        found: the k + 1 nearest points or more, if known.
    """
    distances, indices, lengths = found or nearest(points, k + 1)
    tied = distances[:, k] <= distances[:, k - 1] * (1 + EQUAL)
    decided, open_ = np.flatnonzero(~tied), np.flatnonzero(tied)
    parts = [Graph(np.repeat(decided, k), indices[decided, :k].ravel(), np.ones(len(decided) * k))]
    x = centre(points)[0]
    x /= np.abs(x).max() or 1.0
    step = max(1, _BLOCK // len(x))
    for rows in (open_[start : start + step] for start in range(0, len(open_), step)):
        squared = lengths[rows, None] + lengths - 2 * (x[rows] @ x.T)
        position = np.arange(len(rows))
        squared[position, rows] = np.inf
        if squared.min() < 1e-6 * lengths.max():  # cancellation has left too few digits
            squared = np.stack([_squared_distance(x, x[row]) for row in rows])
            squared[position, rows] = np.inf
        last = np.partition(squared, k - 1, axis=1)[:, k - 1, None]
        nearer, possible = squared < last * (1 - 2 * EQUAL), squared <= last * (1 + 2 * EQUAL)
        count = nearer.sum(axis=1, keepdims=True)
        chance = np.where(nearer, 1.0, (k - count) / (possible.sum(axis=1, keepdims=True) - count))
        place, to = np.nonzero(possible)
        parts.append(Graph(rows[place], to, chance[possible]))
    return Graph(*map(np.concatenate, zip(*parts, strict=True)))


def lowest(values: NDArray[np.floating], count: int) -> NDArray[np.int64]:
    """(b, count) the columns of the lowest values in each row of (b, n), ascending.

    They lie in the strided groups of columns with the lowest minima, which are found in a tenth of the time of a partition.
    """
    n = values.shape[1]
    width, columns = n // _STRIDES, np.broadcast_to(np.arange(n), values.shape)
    if width > 4 * count:
        least = values[:, : _STRIDES * width].reshape(len(values), _STRIDES, width).min(axis=1)
        groups = np.argpartition(least, count - 1, axis=1)[:, :count]
        inside = (groups[:, None, :] + width * np.arange(_STRIDES)[:, None]).reshape(len(values), -1)
        columns = np.concatenate([inside, columns[:, _STRIDES * width :]], axis=1)
    some = np.take_along_axis(values, columns, axis=1)
    first = np.argpartition(some, count - 1, axis=1)[:, :count]
    order = np.argsort(np.take_along_axis(some, first, axis=1), axis=1, kind="stable")
    return np.take_along_axis(columns, np.take_along_axis(first, order, axis=1), axis=1)


def mutual(graph: Graph, n: int) -> NDArray[np.float64]:
    """(m,) the chance that each pair of a graph of n points is one in both directions."""
    start, to, chance = graph
    pairs, reversed_pairs = start * n + to, to * n + start
    order = np.argsort(pairs)
    place = order[np.searchsorted(pairs, reversed_pairs, sorter=order).clip(max=len(order) - 1)]
    return np.where(pairs[place] == reversed_pairs, chance * chance[place], 0.0)


def _candidates(
    x: NDArray[np.float64], rows: NDArray[np.int64], count: int, dtype: type[np.floating]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """By the Gram identity in the given precision: (rows, count) the nearest points of each row, and (rows,) the squared
    distance to the farthest of them minus the row's own squared length, a constant that does not change the order."""
    y = x.astype(dtype, copy=False)
    lengths = np.einsum("ij,ij->i", y, y)
    minus_twice = -2.0 * y.T
    candidates, farthest = np.empty((len(rows), count), dtype=np.int64), np.empty(len(rows))
    step = max(1, _BLOCK // len(x))
    for start in range(0, len(rows), step):
        chunk = rows[start : start + step]
        position = np.arange(len(chunk))
        squared = y[chunk] @ minus_twice
        squared += lengths
        squared[position, chunk] = np.inf
        block = lowest(squared, count)
        farthest[start : start + step] = squared[position, block[:, -1]]
        candidates[start : start + step] = np.sort(block, axis=1)
    return candidates, farthest


def _nearest_of(
    x: NDArray[np.float64], rows: NDArray[np.int64], candidates: NDArray[np.int64], k: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """(rows, k) distances to the k nearest of each row's candidates, ascending, and their indices."""
    distances, indices = np.empty((len(rows), k)), np.empty((len(rows), k), dtype=np.int64)
    step = max(1, _BLOCK // x.shape[1])
    for chunk in (slice(start, start + step) for start in range(0, len(rows), step)):
        queries, options = x[rows[chunk]], candidates[chunk]
        exact = np.stack([_squared_distance(queries, x[options[:, j]]) for j in range(options.shape[1])], axis=1)
        order = np.argsort(exact, axis=1, kind="stable")[:, :k]
        distances[chunk] = np.sqrt(np.take_along_axis(exact, order, axis=1))
        indices[chunk] = np.take_along_axis(options, order, axis=1)
    return distances, indices


def _squared_distance(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    difference = a - b
    return np.einsum("ij,ij->i", difference, difference)

"""Copies of a point: repeated rows, and rows that differ from another by no more than rounding. Neighbour measures count one of them.

A row that is stored in half precision, or encoded again in another batch, moves by a share of its own length. If it stayed beside the
original, that would be its nearest neighbour, at a distance that says nothing about the cloud.

1. Rows that are equal bit by bit count once.
2. For each of `TOLERANCES`, the largest first: rows i and j are linked if ‖x_i − x_j‖ ≤ τ max(‖x_i‖, ‖x_j‖), and linked rows form groups.
   Groups count once if the median distance of their first rows to the nearest other first row is at least `APART` · τ of their length.
   Otherwise the cloud is so dense that copies and neighbours cannot be told apart at this tolerance.
3. If no tolerance serves, only rows that are equal up to float64 round-off count once.

The groups do not depend on the order of the rows, on scale or on rotation. A genuine neighbour is left out with a probability of about
ln 2 · 32^−D per row at intrinsic dimension D, and only in a cloud that is just as dense as the tolerance allows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from isoviz.metrics.nearest import nearest

TOLERANCES: Final = (2.0**-11, 2.0**-16)
"""Of a row's length: what rounding to half precision moves it by at most; and single precision in another order of sums, or noise of
1e-7 in each of up to 4,096 numbers."""
APART: Final = 32
"""Least distance to other points, in tolerances."""
_ROUND_OFF: Final = 64 * np.finfo(np.float64).eps
_BLOCK: Final = 1_000_000  # pairs in memory at a time

Matrix = NDArray[np.float64]
Rows = NDArray[np.int64]


def distinct_rows(x: Matrix, closest: Callable[[], Rows] | None = None) -> Rows:
    """Ascending indices of the points (n, d) that are not copies of an earlier one; arguments as for `originals`."""
    return np.unique(originals(x, closest))


def originals(x: Matrix, closest: Callable[[], Rows] | None = None) -> Rows:
    """(n,) the first point of which each of the points (n, d) is a copy; itself if it is none.

    Args:
        closest: returns the nearest other point of each, if that is known.
    """
    # hashing is faster than sorting rows of hundreds of numbers
    keys = [row.tobytes() for row in np.ascontiguousarray(x)]
    first_seen = {key: index for index, key in reversed(list(enumerate(keys)))}
    first = np.array([first_seen[key] for key in keys], dtype=np.int64)
    rows = np.unique(first)
    if len(rows) < 2:
        return first
    points = x[rows] / (float(np.abs(x).max()) or 1.0)  # so that squares neither overflow nor underflow
    near = _originals(points, closest() if closest and len(rows) == len(x) else _closest(points))
    return np.asarray(rows[near][np.searchsorted(rows, first)])


def left_out(total: int, kept: int) -> str:
    """A note on the copies that a value leaves out; "" without any."""
    count = total - kept
    return f"leaves out {count:,} {'copy' if count == 1 else 'copies'}" if count else ""


def _closest(x: Matrix) -> Rows:
    return nearest(x, 1).indices[:, 0]


def _originals(x: Matrix, closest: Rows) -> Rows:
    lengths, distances = np.linalg.norm(x, axis=1), np.linalg.norm(x - x[closest], axis=1)
    for tolerance in TOLERANCES:
        near = np.flatnonzero(distances <= tolerance * np.maximum(lengths, lengths[closest]))
        if not len(near):
            break
        # a row that a longer one reaches within the tolerance is nearly as long itself
        near = np.flatnonzero(distances <= tolerance * (1 + 2 * tolerance) * lengths)
        groups = np.arange(len(x))
        groups[near] = near[_linked(x[near], tolerance)]
        rows = np.unique(groups)
        if len(rows) > 1 and _spacing(x[rows]) >= APART * tolerance:
            return groups
    return _equal_but_for_round_off(x)


def _linked(x: Matrix, tolerance: float) -> Rows:
    """(n,) the first row of each row's group."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n, squares = len(x), np.einsum("ij,ij->i", x, x)
    group = np.arange(n)
    step = max(1, _BLOCK // n)
    for start in range(0, n, step):
        stop = min(n, start + step)
        distances = squares[start:stop, None] + squares[start:] - 2 * (x[start:stop] @ x[start:].T)
        links = distances <= tolerance**2 * np.maximum(squares[start:stop, None], squares[start:])
        one, other = np.nonzero(links)
        linked = coo_array((np.ones(len(one), bool), (group[start + one], group[start + other])), (n, n))
        group = connected_components(linked, directed=False)[1].astype(np.int64)[group]
    return np.unique(group, return_index=True)[1][np.unique(group, return_inverse=True)[1]]


def _spacing(x: Matrix) -> float:
    """The median distance to the nearest other point, in lengths of the point."""
    with np.errstate(divide="ignore"):
        distances = np.linalg.norm(x - x[_closest(x)], axis=1)
        return float(np.median(distances / np.linalg.norm(x, axis=1)))


def _equal_but_for_round_off(x: Matrix) -> Rows:
    first, rows = np.arange(len(x)), np.arange(len(x))
    while len(rows) > 1:
        found = nearest(x[rows], 1)
        closest = found.indices[:, 0]
        twins = np.flatnonzero(found.distances[:, 0] ** 2 <= _ROUND_OFF * (found.lengths + found.lengths[closest]))
        if not len(twins):
            break
        # drop the later of two; its nearest neighbour may have been a third one
        first[rows[np.maximum(twins, closest[twins])]] = rows[np.minimum(twins, closest[twins])]
        rows = np.flatnonzero(first == np.arange(len(x)))
    while (first != first[first]).any():
        first = first[first]
    return first

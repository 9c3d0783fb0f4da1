"""Rows of zeros, which have no direction, and copies of a point: repeated rows, and rows that differ by no more than rounding.

Encoders and exports leave zeros where a text is missing. Neighbour measures count one of several copies.

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

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz.metrics.cloud import blocks, draw
from isoviz.metrics.moments import centre
from isoviz.metrics.nearest import nearest

TOLERANCES: Final = (2.0**-11, 2.0**-16)
"""Of a row's length: what rounding to half precision moves it by at most; and single precision in another order of sums, or noise of
1e-7 in each of up to 4,096 numbers."""
APART: Final = 32
"""Least distance to other points, in tolerances."""
_ROUND_OFF: Final = 64 * np.finfo(np.float64).eps
_BLOCK: Final = 1_000_000  # numbers in memory at a time
_FEW: Final = 500
"""Rows of which comparing all pairs is faster than importing a tree."""
_MOST_CANDIDATES: Final = 100  # per row
_MOST_COMPARED: Final = 20_000
"""Most rows of a cloud as dense as the tolerances whose pairs are all compared; in larger ones, only equal rows are copies."""
_MOST_SPACED: Final = 2_000
_NUMBERS: Final = 1 << 22  # numbers read at a time

Matrix = NDArray[np.float64]
Rows = NDArray[np.int64]
Pairs = NDArray[np.int64]


def distinct_rows(x: Matrix) -> Rows:
    """Ascending indices of the points (n, d) that are not copies of an earlier one."""
    return np.unique(originals(x))


def originals(x: Matrix) -> Rows:
    """(n,) the first point of which each of the points (n, d) is a copy; itself if it is none."""
    # hashing is faster than sorting rows of hundreds of numbers
    keys = [row.tobytes() for row in np.ascontiguousarray(x)]
    first_seen = {key: index for index, key in reversed(list(enumerate(keys)))}
    first = np.array([first_seen[key] for key in keys], dtype=np.int64)
    rows = np.unique(first)
    if len(rows) < 2:
        return first
    points = x[rows] / (float(np.abs(x).max()) or 1.0)  # so that squares neither overflow nor underflow
    return np.asarray(rows[_originals(points)][np.searchsorted(rows, first)])


def nonzero_rows(points: NDArray[Any]) -> NDArray[np.int64]:
    """Ascending indices of the rows (n, d) that are not all zeros; of all rows if there are no others."""
    rows = max(1, _NUMBERS // max(1, points.shape[1]))
    parts = [start + np.flatnonzero(block.any(axis=1)) for start, block in blocks(points, rows)]
    found = np.concatenate(parts) if parts else np.arange(0)
    return found if len(found) else np.arange(len(points))


def zeros_left_out(total: int, kept: int, what: str = "rows") -> str:
    """`100 of 300 rows are zero and left out`; "" if none is."""
    zeros = total - kept
    return f"{zeros:,} of {total:,} {what} {'is' if zeros == 1 else 'are'} zero and left out" if zeros else ""


def comparable_rows(points: NDArray[Any], texts: NDArray[Any] | None = None) -> tuple[Rows, tuple[str, ...]]:
    """Ascending indices of the rows (n, d) that are not zero and not a copy of an earlier one, and sentences on the others.

    Args:
        texts: (n,) of the rows; a row that repeats a text is a copy, too.
    """
    rows = nonzero_rows(points)
    distinct = rows[np.unique(first_copies(points[rows], None if texts is None else texts[rows]))]
    notes = [f"{note}." for note in [zeros_left_out(len(points), len(rows))] if note]
    if copies := len(rows) - len(distinct):
        are = "is a copy of another row" if copies == 1 else "are copies of other rows"
        notes.append(f"{len(distinct):,} distinct vectors in {len(rows):,} rows: {copies:,} {are} and left out.")
    return distinct, tuple(notes)


def first_copies(points: NDArray[Any], texts: NDArray[Any] | None = None) -> Rows:
    """(n,) the first row that each row is a copy of, by its vector or by its text."""
    first = originals(np.asarray(points, np.float64))
    if texts is None:
        return first
    _, first_text, code = np.unique(texts.astype(str), return_index=True, return_inverse=True)
    rows = np.arange(len(first))
    links = np.concatenate([np.stack([rows, first], axis=1), np.stack([rows, first_text[code]], axis=1)])
    return first_of_connected(links, len(first))


def left_out(total: int, kept: int) -> str:
    """A note on the copies that a value leaves out; "" without any."""
    count = total - kept
    return f"leaves out {count:,} {'copy' if count == 1 else 'copies'}" if count else ""


def _originals(x: Matrix) -> Rows:
    every = np.arange(len(x))
    candidates = _candidates(x)
    if candidates is None and len(x) > _MOST_COMPARED:
        return every
    near = every
    for tolerance in TOLERANCES:
        links = _links(x, tolerance) if candidates is None else _among(x, candidates, tolerance)
        near = np.unique(links)
        if not len(near):
            return every
        groups = first_of_connected(links, len(x))
        rows = np.unique(groups)
        if len(rows) > 1 and _spacing(x[rows]) >= APART * tolerance:
            return groups
    every[near] = near[_equal_but_for_round_off(x[near], x.mean(axis=0))]
    return every


def _candidates(x: Matrix) -> Pairs | None:
    """(p, 2) pairs that may be linked, each once; None if there are so many that comparing all rows is faster.

    The directions of linked rows are as near as the tolerance, and so are the logarithms of their lengths. A projection to few dimensions
    keeps distances: one that grows threefold is a matter of 1 in 10¹² pairs.
    """
    if len(x) <= _FEW:
        return None
    from scipy.spatial import cKDTree

    lengths = np.linalg.norm(x, axis=1)
    size = np.maximum(lengths, np.finfo(np.float64).tiny)
    sketch = x @ np.random.default_rng(0).normal(size=(x.shape[1], 8)) / np.sqrt(8) / size[:, None]
    tree = cKDTree(np.concatenate([sketch, np.log(size)[:, None]], axis=1))
    radius = 3 * TOLERANCES[0]
    if tree.count_neighbors(tree, radius) > _MOST_CANDIDATES * len(x):
        return None
    return np.asarray(tree.query_pairs(radius, output_type="ndarray"), dtype=np.int64)


def _among(x: Matrix, pairs: Pairs, tolerance: float) -> Pairs:
    one, other = pairs.T
    step = max(1, _BLOCK // x.shape[1])
    linked = []
    for start in range(0, len(pairs), step):
        a, b = x[one[start : start + step]], x[other[start : start + step]]
        longer = np.maximum(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1))
        linked.append(np.linalg.norm(a - b, axis=1) <= tolerance * longer)
    return pairs[np.concatenate(linked)] if linked else pairs


def _links(x: Matrix, tolerance: float) -> Pairs:
    """Links that connect the same rows as all links do: of each row those to the first row of each group so far."""
    n, squares, found = len(x), np.einsum("ij,ij->i", x, x), []
    first = np.arange(n)
    step = max(1, _BLOCK // n)
    for start in range(0, n, step):
        stop = min(n, start + step)
        distances = squares[start:stop, None] + squares[start:] - 2 * (x[start:stop] @ x[start:].T)
        one, other = np.nonzero(distances <= tolerance**2 * np.maximum(squares[start:stop, None], squares[start:]))
        links = np.stack([first[start + one], first[start + other]], axis=1)
        links = np.unique(links[links[:, 0] != links[:, 1]], axis=0)
        if len(links):
            first = first_of_connected(links, n)[first]
        found.append(links)
    return np.concatenate(found)


def first_of_connected(links: NDArray[np.integer], n: int) -> Rows:
    """(n,) the first row of each row's group."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    linked = coo_array((np.ones(len(links), bool), (links[:, 0], links[:, 1])), (n, n))
    group = connected_components(linked, directed=False)[1]
    return np.asarray(np.unique(group, return_index=True)[1][group], dtype=np.int64)


def _spacing(x: Matrix) -> float:
    """The median distance to the nearest other point, in lengths of the point; of many, of `_MOST_SPACED` points drawn with seed 0."""
    centred, rows = centre(x)[0], draw(len(x), _MOST_SPACED)
    squares = np.einsum("ij,ij->i", centred, centred)
    closest = np.empty(len(rows))
    step = max(1, _BLOCK // len(x))
    for start in range(0, len(rows), step):
        some = rows[start : start + step]
        distances = squares[some, None] + squares - 2 * (centred[some] @ centred.T)
        distances[np.arange(len(some)), some] = np.inf
        closest[start : start + step] = distances.min(axis=1)
    lengths = np.linalg.norm(x[rows], axis=1)
    return float(np.median(np.sqrt(np.maximum(closest, 0)) / np.maximum(lengths, np.finfo(np.float64).tiny)))


def _equal_but_for_round_off(x: Matrix, mean: Matrix) -> Rows:
    """(n,) the first of the rows that each row equals, up to round-off of a cloud with this mean."""
    first, rows = np.arange(len(x)), np.arange(len(x))
    lengths = np.square(x - mean).sum(axis=1)
    while len(rows) > 1:
        closest = rows[nearest(x[rows], 1).indices[:, 0]]
        twins = np.square(x[rows] - x[closest]).sum(axis=1) <= _ROUND_OFF * (lengths[rows] + lengths[closest])
        if not twins.any():
            break
        # drop the later of two; its nearest neighbour may have been a third one
        pairs = np.sort(np.stack([rows[twins], closest[twins]], axis=1), axis=1)
        first[pairs[:, 1]] = pairs[:, 0]
        rows = np.flatnonzero(first == np.arange(len(x)))
    while (first != first[first]).any():
        first = first[first]
    return first

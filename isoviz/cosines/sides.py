"""Rows, which of them are related, and which are compared with which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoviz.errors import InputError
from isoviz.metrics.copies import originals

SHARE_OF_HIGHEST: Final = 0.8
"""Of the highest score: from there on, scored pairs are related."""
MOST_RELATED: Final = 1_000
"""Most rows (of each side) behind the calibration, whose intervals repeat it."""
FEWEST_ROWS: Final = 10
FEWEST_RELATED: Final = 10
_NEIGHBOURS: Final = 10
_MOST_CONNECTED: Final = 0.1
"""Largest share of the rows in one group that is still drawn as a whole."""

Matrix = NDArray[np.float64]


def checked(points: ArrayLike) -> tuple[Matrix, NDArray[np.int64]]:
    """The rows that are not zero (n, d), and their places."""
    x = np.asarray(points)
    if x.ndim != 2 or x.dtype.kind not in "fiu":
        raise InputError(
            f"points: expected numbers in two dimensions, rows and columns (got {x.dtype}, shape {x.shape})",
            field="points",
        )
    x = x.astype(np.float64)
    if not np.isfinite(x).all():
        row = int(np.flatnonzero(~np.isfinite(x).all(axis=1))[0])
        raise InputError(f"points: row {row + 1} has values that are not finite", field="points")
    rows = np.flatnonzero(x.any(axis=1))
    if len(rows) < FEWEST_ROWS:
        besides = " that are not zero" if len(rows) < len(x) else ""
        raise InputError(f"points: needs at least {FEWEST_ROWS} rows{besides} (got {len(rows)})", field="points")
    x = x[rows]
    if not (x != x[0]).any():
        raise InputError("points: all rows are identical, so every cosine is 1", field="points")
    return x, rows


class Relation(NamedTuple):
    """Related rows.

    Attributes:
        pairs: (m, 2) places, each pair once.
        kin: (n,) rows of the same group are not unrelated: rows with the same label, or connected by related pairs.
    """

    pairs: NDArray[np.intp]
    kin: NDArray[np.intp]

    def among(self, rows: NDArray[np.intp]) -> Relation:
        """The same of some rows, renumbered."""
        number = np.full(len(self.kin), -1)
        number[rows] = np.arange(len(rows))
        inside = number[self.pairs]
        return Relation(inside[(inside >= 0).all(axis=1)], self.kin[rows])


def relation_of(pairs: ArrayLike | None, labels: Sequence[Any] | None, n: int) -> Relation | None:
    """Related rows, from pairs or labels; None without either."""
    if pairs is not None and labels is not None:
        raise InputError("pairs: give pairs or labels, not both", field="pairs")
    if labels is not None:
        if len(labels) != n:
            raise InputError(f"labels: {len(labels)} for {n} rows", field="labels")
        kin = np.unique(np.asarray(labels, dtype=object).astype(str), return_inverse=True)[1]
        left, right = np.triu_indices(n, 1) if n <= MOST_RELATED else _some_pairs(n)
        found = np.stack([left, right], axis=1)[kin[left] == kin[right]]
        field = "labels"
    elif pairs is not None:
        found = np.asarray(pairs)
        if found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "iu":
            raise InputError("pairs: expected two columns of row numbers", field="pairs")
        if found.size and not (found.min() >= 0 and found.max() < n):
            raise InputError(
                f"pairs: rows are numbered from 0 to {n - 1} (got {found.min()} to {found.max()})", field="pairs"
            )
        found = np.unique(found[found[:, 0] != found[:, 1]], axis=0)
        kin = together(_connected(found, n), np.unique(found))
        field = "pairs"
    else:
        return None
    if len(found) < FEWEST_RELATED:
        raise InputError(
            f"{field}: needs at least {FEWEST_RELATED} related pairs of different rows (got {len(found)})", field=field
        )
    return Relation(found.astype(np.intp), kin)


def together(groups: NDArray[np.intp], rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """The groups, if all are small among these rows; else each row alone."""
    if len(rows) and np.bincount(groups[rows]).max() > _MOST_CONNECTED * len(rows):
        return np.arange(len(groups))
    return groups


def _connected(pairs: NDArray[np.intp], n: int) -> NDArray[np.intp]:
    """(n,) the group of each row that pairs connect."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), (n, n))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.intp)


def _some_pairs(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    rows = np.random.default_rng(0).choice(n, MOST_RELATED, replace=False)
    left, right = np.triu_indices(MOST_RELATED, 1)
    return rows[left], rows[right]


@dataclass(frozen=True)
class Sides:
    """Which rows are compared with which: each of `left` with each of `right`, which are the same rows if not `two`.

    Attributes:
        known, unrelated: (left, right) pairs that are related, and those that count as unrelated. A text is no pair with itself, also
            where rows repeat it, and rows of the same kin are not unrelated. With one side, each pair is mentioned once.
        units: of each left and each right row, what is drawn independently: rows, or groups of rows that related pairs or one text connect.
    """

    left: NDArray[np.intp]
    right: NDArray[np.intp]
    two: bool
    sampled: bool
    known: NDArray[np.bool_]
    unrelated: NDArray[np.bool_]
    units: tuple[NDArray[np.intp], NDArray[np.intp]]

    @property
    def count(self) -> int:
        return len(self.left) + (len(self.right) if self.two else 0)

    @cached_property
    def unit_count(self) -> int:
        return int(max(units.max() for units in self.units)) + 1

    def cosines(self, x: Matrix, local: bool = False) -> Matrix:
        """(left, right), after CSLS if `local` (Conneau et al. 2018, arXiv:1710.04087, equation 3): minus each row's mean cosine with
        its ten nearest."""
        unit = x / np.linalg.norm(x, axis=1, keepdims=True)
        cosines: Matrix = np.clip(unit[self.left] @ unit[self.right].T, -1, 1)
        if not local:
            return cosines
        others = cosines if self.two else cosines - 3 * np.eye(len(cosines))
        near = [np.sort(m, axis=1)[:, -min(_NEIGHBOURS, m.shape[1] - 1) :].mean(axis=1) for m in (others, others.T)]
        return 2 * cosines - near[0][:, None] - near[1]


def sides_of(
    x: Matrix, relation: Relation | None, generator: np.random.Generator, most: int, *, paired: bool = False
) -> Sides:
    """Which of these rows are compared.

    Args:
        most: rows of each side; of more, so many are drawn.
        paired: only rows of related pairs. Of many, whole pairs are drawn if each row has few, rather than rows without their partners.
    """
    pairs = np.zeros((0, 2), np.intp) if relation is None else relation.pairs
    two = len(pairs) > 0 and not np.intersect1d(pairs[:, 0], pairs[:, 1]).size
    if paired and len(pairs) > most and np.bincount(pairs.ravel()).max() <= 3:
        pairs = pairs[np.sort(generator.choice(len(pairs), most, replace=False))]
    parts = [np.unique(pairs) if paired else np.arange(len(x))]
    parts = [np.unique(pairs[:, 0]), np.unique(pairs[:, 1])] if two else parts
    drawn = [np.sort(generator.choice(part, most, replace=False)) if len(part) > most else part for part in parts]
    left, right = drawn[0], drawn[-1]
    row, column = np.full(len(x), -1), np.full(len(x), -1)
    row[left], column[right] = np.arange(len(left)), np.arange(len(right))
    known = np.zeros((len(left), len(right)), bool)
    for one, other in (pairs.T,) if two else (pairs.T, pairs.T[::-1]):
        inside = (row[one] >= 0) & (column[other] >= 0)
        known[row[one[inside]], column[other[inside]]] = True
    kin = np.arange(len(x)) if relation is None else relation.kin
    rows = np.union1d(left, right)
    units = _units(x[rows], kin[rows])
    of_left, of_right = (units[np.searchsorted(rows, side)] for side in (left, right))
    unrelated = ~known & (kin[left][:, None] != kin[right]) & (of_left[:, None] != of_right)
    if not two:
        once = ~np.tri(len(left), dtype=bool)
        known &= once
        unrelated &= once
    sampled = any(len(a) < len(b) for a, b in zip(drawn, parts, strict=True))
    return Sides(left, right, two, sampled, known, unrelated, (of_left, of_right))


def _units(x: Matrix, kin: NDArray[np.intp]) -> NDArray[np.intp]:
    """(n,) the unit of each row, numbered from 0: kin and copies of one text together; only the copies, if a unit would be too large."""
    rows, unit = np.arange(len(x)), x / np.linalg.norm(x, axis=1, keepdims=True)
    copies = np.stack([rows, originals(unit)], axis=1)
    for groups in (np.unique(kin, return_inverse=True)[1], rows):
        members = np.stack([rows, len(rows) + groups], axis=1)
        connected = _connected(np.concatenate([members, copies]), 2 * len(rows))[: len(rows)]
        units: NDArray[np.intp] = np.unique(connected, return_inverse=True)[1]
        if np.bincount(units).max() <= _MOST_CONNECTED * len(rows):
            break
    return units

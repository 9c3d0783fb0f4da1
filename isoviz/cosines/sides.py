"""Rows, which of them are related, and which are compared with which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoviz.errors import InputError

MOST_RELATED: Final = 1_000
"""Most rows (of each side) behind the calibration, whose intervals repeat it."""
FEWEST_ROWS: Final = 10
FEWEST_RELATED: Final = 10
_NEIGHBOURS: Final = 10

Matrix = NDArray[np.float64]


def checked(points: ArrayLike) -> Matrix:
    x = np.asarray(points)
    if x.ndim != 2 or x.dtype.kind not in "fiu":
        raise InputError(
            f"points: expected numbers in two dimensions, rows and columns (got {x.dtype}, shape {x.shape})",
            field="points",
        )
    x = x.astype(np.float64)
    if len(x) < FEWEST_ROWS:
        raise InputError(f"points: needs at least {FEWEST_ROWS} rows (got {len(x)})", field="points")
    if not np.isfinite(x).all():
        row = int(np.flatnonzero(~np.isfinite(x).all(axis=1))[0])
        raise InputError(f"points: row {row} has values that are not finite", field="points")
    lengths = np.linalg.norm(x, axis=1)
    if not lengths.all():
        raise InputError(f"points: row {int(np.argmin(lengths))} has length 0, so it has no cosine", field="points")
    if not (x != x[0]).any():
        raise InputError("points: all rows are identical, so every cosine is 1", field="points")
    return x


def relation_of(pairs: ArrayLike | None, labels: Sequence[Any] | None, n: int) -> NDArray[np.intp] | None:
    """(m, 2) places of related rows, each pair once."""
    if pairs is not None and labels is not None:
        raise InputError("pairs: give pairs or labels, not both", field="pairs")
    if labels is not None:
        if len(labels) != n:
            raise InputError(f"labels: {len(labels)} for {n} rows", field="labels")
        codes = np.unique(np.asarray(labels, dtype=object).astype(str), return_inverse=True)[1]
        left, right = np.triu_indices(n, 1) if n <= MOST_RELATED else _some_pairs(n)
        found = np.stack([left, right], axis=1)[codes[left] == codes[right]]
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
        field = "pairs"
    else:
        return None
    if len(found) < FEWEST_RELATED:
        raise InputError(
            f"{field}: needs at least {FEWEST_RELATED} related pairs of different rows (got {len(found)})", field=field
        )
    return found.astype(np.intp)


def _some_pairs(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    rows = np.random.default_rng(0).choice(n, MOST_RELATED, replace=False)
    left, right = np.triu_indices(MOST_RELATED, 1)
    return rows[left], rows[right]


@dataclass(frozen=True)
class Sides:
    """Which rows are compared with which: each of `left` with each of `right`, which are the same rows if not `two`."""

    left: NDArray[np.intp]
    right: NDArray[np.intp]
    two: bool
    sampled: bool

    @property
    def count(self) -> int:
        return len(self.left) + (len(self.right) if self.two else 0)

    @property
    def same(self) -> NDArray[np.bool_]:
        """Pairs that are no pairs: a row with itself, and for one side each pair's second mention."""
        if self.two:
            return np.zeros((len(self.left), len(self.right)), bool)
        return np.tri(len(self.left), dtype=bool)

    def cosines(self, x: Matrix, local: bool = False) -> Matrix:
        """(left, right), after CSLS if `local` (Conneau et al. 2018, arXiv:1710.04087, equation 3): minus each row's mean cosine with
        its ten nearest."""
        unit = x / np.linalg.norm(x, axis=1, keepdims=True)
        cosines: Matrix = unit[self.left] @ unit[self.right].T
        if not local:
            return cosines
        others = cosines if self.two else cosines - 3 * np.eye(len(cosines))
        near = [np.sort(m, axis=1)[:, -min(_NEIGHBOURS, m.shape[1] - 1) :].mean(axis=1) for m in (others, others.T)]
        return 2 * cosines - near[0][:, None] - near[1]

    def known(self, relation: NDArray[np.intp] | None) -> NDArray[np.bool_]:
        """Which of the pairs are related."""
        known = np.zeros((len(self.left), len(self.right)), bool)
        if relation is None:
            return known
        most = int(max(self.left.max(), self.right.max(), relation.max())) + 1
        row, column = np.full(most, -1), np.full(most, -1)
        row[self.left], column[self.right] = np.arange(len(self.left)), np.arange(len(self.right))
        for left, right in (relation.T, relation.T[::-1]) if not self.two else (relation.T,):
            inside = (row[left] >= 0) & (column[right] >= 0)
            known[row[left[inside]], column[right[inside]]] = True
        return known


def sides_of(relation: NDArray[np.intp] | None, n: int, generator: np.random.Generator, most: int) -> Sides:
    two = relation is not None and not np.intersect1d(relation[:, 0], relation[:, 1]).size
    parts = [np.unique(relation[:, 0]), np.unique(relation[:, 1])] if two and relation is not None else [np.arange(n)]
    drawn = [np.sort(generator.choice(part, most, replace=False)) if len(part) > most else part for part in parts]
    return Sides(drawn[0], drawn[-1], two, any(len(a) < len(b) for a, b in zip(drawn, parts, strict=True)))

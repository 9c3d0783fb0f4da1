"""Which pairs of rows are compared, and statistics of their cosines, with intervals that count rows or groups of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoviz.errors import InputError
from isoviz.metrics.copies import first_of_connected, originals
from isoviz.readouts.ruler.records import Level
from isoviz.statistics import dyads

SHARE_OF_HIGHEST: Final = 0.8
"""Of the highest score: from there on, scored pairs are related."""
MOST_RELATED: Final = 1_000
"""Most rows (of each side) behind the calibration, whose intervals repeat it."""
FEWEST_ROWS: Final = 10
FEWEST_RELATED: Final = 10
ROUNDING: Final = 1e-12
"""Cosines closer than this are equal, and shorter vectors, relative to the longest one, are rounding error."""
_NEIGHBOURS: Final = 10
_MOST_CONNECTED: Final = 0.1
"""Largest share of the rows in one group that is still drawn as a whole."""

Matrix = NDArray[np.float64]


def checked(points: ArrayLike) -> tuple[Matrix, NDArray[np.int64]]:
    """The rows that are not zero (n, d), and their places."""
    x = np.asarray(points)
    if x.ndim != 2 or x.dtype.kind not in "fiu":
        raise InputError.at(
            "points", f"expected numbers in two dimensions, rows and columns (got {x.dtype}, shape {x.shape})"
        )
    x = x.astype(np.float64)
    if not np.isfinite(x).all():
        row = int(np.flatnonzero(~np.isfinite(x).all(axis=1))[0])
        raise InputError.at("points", f"row {row + 1} has values that are not finite")
    rows = np.flatnonzero(x.any(axis=1))
    if len(rows) < FEWEST_ROWS:
        besides = " that are not zero" if len(rows) < len(x) else ""
        raise InputError.at("points", f"needs at least {FEWEST_ROWS} rows{besides} (got {len(rows)})")
    x = x[rows]
    if not (x != x[0]).any():
        raise InputError.at("points", "all rows are identical, so every cosine is 1")
    return x, rows


class Relation(NamedTuple):
    """Related rows.

    Attributes:
        pairs: (m, 2) places, each pair once.
        groups: (n,) rows of the same group are not unrelated: rows with the same label, or connected by related pairs.
    """

    pairs: NDArray[np.intp]
    groups: NDArray[np.intp]

    def among(self, rows: NDArray[np.intp]) -> Relation:
        """The same of some rows, renumbered."""
        number = np.full(len(self.groups), -1)
        number[rows] = np.arange(len(rows))
        inside = number[self.pairs]
        return Relation(inside[(inside >= 0).all(axis=1)], self.groups[rows])


def relation_of(pairs: ArrayLike | None, labels: Sequence[Any] | None, n: int) -> Relation | None:
    """Related rows, from pairs or labels; None without either."""
    if pairs is not None and labels is not None:
        raise InputError.at("pairs", "give pairs or labels, not both")
    if labels is not None:
        if len(labels) != n:
            raise InputError.at("labels", f"{len(labels)} for {n} rows")
        groups = np.unique(np.asarray(labels, dtype=object).astype(str), return_inverse=True)[1]
        rows = np.arange(n) if n <= MOST_RELATED else np.random.default_rng(0).choice(n, MOST_RELATED, replace=False)
        left, right = rows[np.stack(np.triu_indices(len(rows), 1))]
        found = np.stack([left, right], axis=1)[groups[left] == groups[right]]
        field = "labels"
    elif pairs is not None:
        found = np.asarray(pairs)
        if found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "iu":
            raise InputError.at("pairs", "expected two columns of row numbers")
        if found.size and not (found.min() >= 0 and found.max() < n):
            raise InputError.at("pairs", f"rows are numbered from 0 to {n - 1} (got {found.min()} to {found.max()})")
        found = np.unique(found[found[:, 0] != found[:, 1]], axis=0)
        groups = together(connected(found, n), np.unique(found))
        field = "pairs"
    else:
        return None
    if len(found) < FEWEST_RELATED:
        raise InputError.at(
            field, f"needs at least {FEWEST_RELATED} related pairs of different rows (got {len(found)})"
        )
    return Relation(found.astype(np.intp), groups)


def together(groups: NDArray[np.intp], rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """The groups, if all are small among these rows; else each row alone."""
    if len(rows) and np.bincount(groups[rows]).max() > _MOST_CONNECTED * len(rows):
        return np.arange(len(groups))
    return groups


def connected(pairs: NDArray[np.integer], n: int) -> NDArray[np.intp]:
    """(n,) the group of each row that pairs connect, numbered from 0."""
    return np.unique(first_of_connected(pairs, n), return_inverse=True)[1]


@dataclass(frozen=True)
class Pairs:
    """Which rows are compared with which: each of `left` with each of `right`, which are the same rows if not `two`.

    Attributes:
        related, unrelated: (left, right) pairs that are related, and those that count as unrelated. A text is no pair with itself, also
            where rows repeat it, and rows of one group of the relation are not unrelated. With one side, each pair is mentioned once.
        groups: of each left and each right row, what is drawn independently: rows, or groups that related pairs or one text connect.
    """

    left: NDArray[np.intp]
    right: NDArray[np.intp]
    two: bool
    sampled: bool
    related: NDArray[np.bool_]
    unrelated: NDArray[np.bool_]
    groups: tuple[NDArray[np.intp], NDArray[np.intp]]

    @property
    def count(self) -> int:
        return len(self.left) + (len(self.right) if self.two else 0)

    @property
    def group_count(self) -> int:
        return int(max(groups.max() for groups in self.groups)) + 1

    def cosines(self, x: Matrix, local: bool = False) -> PairCosines:
        """After CSLS if `local` (Conneau et al. 2018, arXiv:1710.04087, equation 3): minus each row's mean cosine with its ten nearest."""
        unit = x / np.linalg.norm(x, axis=1, keepdims=True)
        cosines: Matrix = np.clip(unit[self.left] @ unit[self.right].T, -1, 1)
        if local:
            others = cosines if self.two else cosines - 3 * np.eye(len(cosines))
            near = [np.sort(m, axis=1)[:, -min(_NEIGHBOURS, m.shape[1] - 1) :].mean(axis=1) for m in (others, others.T)]
            cosines = 2 * cosines - near[0][:, None] - near[1]
        return PairCosines(self, cosines)


@dataclass(frozen=True)
class PairCosines:
    """The cosines (left, right) of pairs."""

    pairs: Pairs
    values: Matrix

    @cached_property
    def related(self) -> Matrix:
        """Cosines of related pairs, sorted."""
        return np.sort(self.values[self.pairs.related])

    @cached_property
    def unrelated(self) -> Matrix:
        return np.sort(self.values[self.pairs.unrelated])

    def variance(self, terms: NDArray[Any]) -> dyads.Variance:
        """Of the sum of each pair's term."""
        return dyads.variance(terms, *self.pairs.groups)

    def level(self, share: float) -> Level:
        """A quantile of unrelated pairs, with its 95 % interval."""
        cosine = float(np.quantile(self.unrelated, share))
        terms = np.where(self.pairs.unrelated, (self.values <= cosine) - np.float32(share), np.float32(0))
        low, high = dyads.quantile_interval(share, dyads.effective(share, self.variance(terms / len(self.unrelated))))
        return Level(
            share=share,
            cosine=cosine,
            low=-1.0 if low is None else float(np.quantile(self.unrelated, low)),
            high=1.0 if high is None else float(np.quantile(self.unrelated, high)),
        )

    def auc(self) -> tuple[float, Matrix]:
        """The share of comparisons that a related pair wins, and each pair's term of its error."""
        wins = _rank(self.unrelated, self.values[self.pairs.related])
        losses = 1 - _rank(self.related, self.values[self.pairs.unrelated])
        value = float(wins.mean())
        terms = np.zeros(self.values.shape)
        terms[self.pairs.related] = (wins - value) / len(wins)
        terms[self.pairs.unrelated] = (losses - value) / len(losses)
        return value, terms

    def alignment(self) -> tuple[float, float, float]:
        """Mean of ‖x̂ − ŷ‖² = 2 − 2 cos over related pairs, with its 95 % interval."""
        related, distances = self.pairs.related, 2 - 2 * self.values
        value = float(distances[related].mean())
        spread = self.variance(np.where(related, distances - value, 0.0) / related.sum()).spread
        return value, max(value - spread, 0.0), min(value + spread, 4.0)

    def above(self, cosines: Any) -> tuple[Any, Any]:
        """The shares of unrelated and of related pairs at or above these cosines."""
        unrelated, related = (
            1 - np.searchsorted(values, cosines) / len(values) for values in (self.unrelated, self.related)
        )
        return unrelated, related

    def precision(self, cosine: float, share: float) -> tuple[float, float, float]:
        """The share of related pairs among those at or above a cosine, with its 95 % interval.

        Its odds are those of `share` times recall / false alarms; its interval joins those of these two (MOVER, Zou & Donner 2008,
        doi:10.1002/sim.3095).
        """
        from scipy.special import expit, logit

        above, logs = self.values >= cosine, []
        for value, pairs in zip(self.above(cosine), (self.pairs.unrelated, self.pairs.related), strict=True):
            variance = self.variance(np.where(pairs, above - value, 0.0) / pairs.sum())
            # the interval of a count widens by itself where few pairs lie above, so all units count for the degrees of freedom
            variance = variance._replace(freedom=max(variance.units - 1, 1))
            ends = dyads.share_interval(value, dyads.effective(value, variance))
            with np.errstate(divide="ignore"):
                logs.append(np.log([value, *ends]))
        (alarm, alarm_low, alarm_high), (recall, recall_low, recall_high) = logs
        low, high = recall_low - alarm_high, np.inf
        if not np.isneginf(alarm):
            low = recall - alarm - np.hypot(recall - recall_low, alarm_high - alarm)
            high = recall - alarm + np.hypot(recall_high - recall, alarm - alarm_low)
        value, low, high = expit(logit(share) + np.array([recall - alarm, low, high]))
        return float(value), float(low), float(high)


def _rank(among: Matrix, values: Matrix) -> Matrix:
    """The share of sorted cosines that is lower, half of the equal ones, up to rounding, included."""
    lower, higher = np.searchsorted(among, values - ROUNDING), np.searchsorted(among, values + ROUNDING, side="right")
    return (lower + higher) / (2 * len(among))


def pairs_of(
    x: Matrix, relation: Relation | None, generator: np.random.Generator, most: int, *, paired: bool = False
) -> Pairs:
    """Which of these rows are compared.

    Args:
        most: rows kept of each side; a larger side is sampled.
        paired: only rows of related pairs. Of many, whole pairs are drawn if each row has few, rather than rows without their partners.
    """
    links = np.zeros((0, 2), np.intp) if relation is None else relation.pairs
    two = len(links) > 0 and not np.intersect1d(links[:, 0], links[:, 1]).size
    if paired and len(links) > most and np.bincount(links.ravel()).max() <= 3:
        links = links[np.sort(generator.choice(len(links), most, replace=False))]
    parts = [np.unique(side) for side in links.T] if two else [np.unique(links) if paired else np.arange(len(x))]
    drawn = [np.sort(generator.choice(part, most, replace=False)) if len(part) > most else part for part in parts]
    left, right = drawn[0], drawn[-1]
    row, column = np.full(len(x), -1), np.full(len(x), -1)
    row[left], column[right] = np.arange(len(left)), np.arange(len(right))
    related = np.zeros((len(left), len(right)), bool)
    for one, other in (links.T,) if two else (links.T, links.T[::-1]):
        inside = (row[one] >= 0) & (column[other] >= 0)
        related[row[one[inside]], column[other[inside]]] = True
    kin = np.arange(len(x)) if relation is None else relation.groups
    rows = np.union1d(left, right)
    groups = _groups(x[rows], kin[rows])
    of_left, of_right = (groups[np.searchsorted(rows, side)] for side in (left, right))
    unrelated = ~related & (kin[left][:, None] != kin[right]) & (of_left[:, None] != of_right)
    if not two:
        once = ~np.tri(len(left), dtype=bool)
        related &= once
        unrelated &= once
    sampled = any(len(a) < len(b) for a, b in zip(drawn, parts, strict=True))
    return Pairs(left, right, two, sampled, related, unrelated, (of_left, of_right))


def _groups(x: Matrix, kin: NDArray[np.intp]) -> NDArray[np.intp]:
    """(n,) the group of each row, numbered from 0: kin and copies of one text together; only copies, if a group would be too large."""
    rows, unit = np.arange(len(x)), x / np.linalg.norm(x, axis=1, keepdims=True)
    copies = np.stack([rows, originals(unit)], axis=1)
    for codes in (np.unique(kin, return_inverse=True)[1], rows):
        members = np.stack([rows, len(rows) + codes], axis=1)
        joined = connected(np.concatenate([members, copies]), 2 * len(rows))[: len(rows)]
        groups: NDArray[np.intp] = np.unique(joined, return_inverse=True)[1]
        if np.bincount(groups).max() <= _MOST_CONNECTED * len(rows):
            break
    return groups

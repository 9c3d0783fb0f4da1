"""Read-outs of unlabelled vectors: the similarity of random pairs and of neighbours, and the noise floor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz.cosines.floor import Floor
from isoviz.readouts.image import Image, among_largest, top
from isoviz.statistics.paired_bootstrap import Jackknife, Mean, Statistic

NEIGHBOURS: Final = 10
PAIRS: Final = 5_000
NOISE: Final = 0.99
"""Share of unrelated pairs below the noise floor."""
BINS: Final = np.linspace(-1, 1, 81)
"""Edges of the bars of a distribution of cosines."""


@dataclass(frozen=True)
class Cosines:
    """Cosines of random pairs (p,), and of each row with its nearest other row (m,)."""

    pairs: NDArray[np.float32]
    nearest: NDArray[np.float32]


def distribution(image: Image) -> Cosines:
    """Draws the same pairs (seed 0) for all images with equally many rows."""
    m = len(image.sample)
    generator = np.random.default_rng(0)
    first = generator.integers(0, m, PAIRS)
    second = (first + generator.integers(1, max(2, m), PAIRS)) % m
    return Cosines(image.cosines[first, second], image.others.max(axis=1, initial=-1.0))


def measure(image: Image) -> dict[str, Statistic]:
    """The mean cosine of all pairs of `image.sample`, and of each of its rows with its nearest other row."""
    m, cosines = len(image.sample), image.others
    of_rows = image.cosines.sum(axis=1, dtype=np.float64) - image.cosines.diagonal()
    total = of_rows.sum()
    rows, place = np.arange(m), cosines.argmax(axis=1)
    largest = cosines[rows, place]
    first = np.maximum(largest, -1.0).astype(np.float64)
    cosines[rows, place] = -np.inf
    second = cosines.max(axis=1, initial=-1.0)
    cosines[rows, place] = largest
    lost = np.bincount(place, first - second, minlength=m)  # by rows whose nearest row is left out
    return {
        "random_pairs": Jackknife(
            total / max(1, m * (m - 1)), m, lambda: (total - 2 * of_rows) / max(1, (m - 1) * (m - 2))
        ),
        "nearest": Jackknife(first.mean(), m, lambda: (first.sum() - first - lost) / max(1, m - 1)),
    }


def top_share(image: Image) -> Statistic:
    """The largest variance of one dimension as a share of the variance of all (Parupudi 2026, arXiv:2606.29571)."""
    points = image.own.points.astype(np.float64)
    squares = (points - points.mean(axis=0)) ** 2
    n, sums = len(points), squares.sum(axis=0)
    if n < 3 or not sums.any():
        return Mean(np.full(n, np.nan))

    def without() -> NDArray[np.float64]:
        """(n,) shares without each row in turn."""
        others = sums - squares * (n / (n - 1))
        total = others.sum(axis=1)
        return np.divide(others.max(axis=1), total, out=np.full(n, np.nan), where=total > 0)

    return Jackknife(float(sums.max() / sums.sum()), n, without)


def noise_floor(image: Image, related: NDArray[np.bool_]) -> Statistic:
    """The cosine that 99 % of the pairs of rows of `image.sample` stay below, without the `related` ones (m, m)."""
    m = len(image.sample)
    floor = Floor(image.cosines, ~(related | related.T | np.tri(m, dtype=bool)), (np.arange(m), np.arange(m)))
    if not floor.count:
        return Mean(np.full(m, np.nan))
    return Jackknife(float(np.quantile(floor.values, NOISE)), m, lambda: floor.without(NOISE))


def overlap(before: Image, after: Image) -> Statistic:
    """Recall@10 of neighbours: the mean share of each row's 10 nearest rows by cosine after that were as near as its 10th before.

    Cosines closer than `ROUNDING` are tied, as are equal Hamming distances of binary codes. A tie at the 10th place counts as the mean
    over all orders, so the order of the rows does not matter; rows that have all become equal keep their neighbours by chance only.
    """
    return neighbour_recall([(before.others, after.others)])


Cosine = NDArray[np.float32]


def neighbour_recall(parts: Sequence[tuple[Cosine, Cosine]]) -> Statistic:
    """`overlap` of all rows of some sets, each given by its cosines (m, m) before and after, with −∞ on the diagonal.

    Resamples also vary which rows can be found: a row is left out as a query and as a neighbour.
    """
    shares = [_shares(*part) for part in parts]
    if min(len(part) for part in shares) < NEIGHBOURS + 2:
        return Mean(np.concatenate(shares))
    total, n = sum(float(part.sum()) for part in shares), sum(map(len, shares))

    def without() -> NDArray[np.float64]:
        changes = [_without(*part) - own for part, own in zip(parts, shares, strict=True)]
        return (total + np.concatenate(changes)) / (n - 1)

    return _Share(total / n, n, without)


class _Share(Jackknife):
    """A share, whose intervals end within 0 to 1."""

    def resampled(self, counts: NDArray[Any]) -> NDArray[Any]:
        return np.clip(super().resampled(counts), 0.0, 1.0)


def _without(before: Cosine, after: Cosine) -> NDArray[np.float64]:
    """(m,): the change of the other rows' summed shares where each row cannot be found and their 11th takes its place."""
    (first, next_first), (second, next_second) = map(_found, (before, after))
    rows = np.arange(len(before))
    gains = [second[rows, next_first], first[rows, next_second], next_first == next_second]
    of_first, of_second, equal = (gain.astype(np.float32)[:, None] for gain in gains)
    both = (first & second) * (of_first + of_second + equal - 1)
    changes: NDArray[Any] = both + (first & ~second) * of_first + (second & ~first) * of_second
    return np.asarray(changes.sum(axis=0, dtype=np.float64) / NEIGHBOURS)


def _found(cosines: Cosine) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """(m, m) which rows are among each row's 10 nearest, tied ones in any order; and (m,) its 11th."""
    near, rows = top(cosines, NEIGHBOURS + 1), np.arange(len(cosines))
    last = near[rows, np.take_along_axis(cosines, near, axis=1).argmin(axis=1)]
    found = np.zeros(cosines.shape, bool)
    np.put_along_axis(found, near, True, axis=1)
    found[rows, last] = False
    return found, last


def _shares(before: Cosine, after: Cosine) -> NDArray[np.float64]:
    """(m,): recall@10 of each row's neighbours."""
    m = len(before)
    k = min(NEIGHBOURS, m - 1)
    if k < 1:
        return np.full(m, np.nan)
    found: NDArray[Any] = ((among_largest(before, k) > 0) * among_largest(after, k)).sum(axis=1)
    return np.asarray(found / k)

"""Read-outs of unlabelled vectors: the similarity of random pairs and of neighbours, and the noise floor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz.readouts.image import ROUNDING, Image, among_largest
from isoviz.statistics.paired_bootstrap import Jackknife, Statistic, Undefined

NEIGHBOURS: Final = 10
NOISE: Final = 0.99
"""Share of unrelated pairs below the noise floor."""


def measure(image: Image) -> dict[str, Statistic]:
    """The mean cosine of all pairs of `image.sample`, and of each of its rows with its nearest other row.

    Rows without a direction are left out; both are undefined with fewer than two others.
    """
    directed = image.directed[image.sample]
    m = int(directed.sum())
    if m < 2:
        undefined = Undefined(len(directed), f"it needs at least 2 rows that are not zero, got {m}")
        return {"random_pairs": undefined, "nearest": undefined}
    cosines, every = image.others, image.cosines
    if m < len(directed):
        cosines, every = (part[np.ix_(directed, directed)] for part in (cosines, every))
    of_rows = every.sum(axis=1, dtype=np.float64) - every.diagonal()
    total = of_rows.sum()
    rows, place = np.arange(m), cosines.argmax(axis=1)
    largest = cosines[rows, place]
    first = np.maximum(largest, -1.0).astype(np.float64)
    cosines[rows, place] = -np.inf
    second = cosines.max(axis=1, initial=-1.0)
    cosines[rows, place] = largest
    lost = np.bincount(place, first - second, minlength=m)  # by rows whose nearest row is left out

    def statistic(value: float, without: Callable[[], NDArray[np.float64]]) -> Statistic:
        """Of all rows, on which those without a direction have no influence."""

        def without_each() -> NDArray[np.float64]:
            values = np.full(len(directed), value)
            values[directed] = without()
            return values

        return Jackknife(value, len(directed), without_each)

    return {
        "random_pairs": statistic(total / (m * (m - 1)), lambda: (total - 2 * of_rows) / max(1, (m - 1) * (m - 2))),
        "nearest": statistic(float(first.mean()), lambda: (first.sum() - first - lost) / (m - 1)),
    }


def noise_floor(image: Image, related: NDArray[np.bool_]) -> Statistic:
    """The cosine that 99 % of the pairs of rows of `image.sample` stay below, without the `related` ones (m, m)."""
    m, directed = len(image.sample), image.directed[image.sample]
    unrelated = ~(related | related.T | np.tri(m, dtype=bool)) & directed & directed[:, None]
    if not unrelated.any():
        return Undefined(m, "there is no pair of unrelated rows that are not zero")
    ordered = np.sort(image.cosines[unrelated])
    value = float(np.quantile(ordered, NOISE))

    def without() -> NDArray[np.float64]:
        """(m,) the quantile without the pairs of each row."""
        removed, below = (
            mask.sum(axis=0) + mask.sum(axis=1) for mask in (unrelated, unrelated & (image.cosines <= value))
        )
        places = NOISE * (len(ordered) - removed - 1) + below
        return np.where(removed > 0, np.interp(places, np.arange(len(ordered)), ordered), value)

    return Jackknife(value, m, without)


def overlap(before: Image, after: Image) -> Statistic:
    """Recall@10 of neighbours: the mean share of each row's 10 nearest rows by cosine after that were as near as its 10th before.

    Cosines closer than `ROUNDING` are tied, as are equal Hamming distances of binary codes. A tie at the 10th place counts as the mean
    over all orders, so the order of the rows does not matter; rows that have all become equal keep their neighbours by chance only.
    Undefined where nothing else is possible: with fewer than 12 rows, and where all rows were equally near before.
    """
    return neighbour_recall([(before.others, after.others)])


Cosine = NDArray[np.float32]


def neighbour_recall(parts: Sequence[tuple[Cosine, Cosine]]) -> Statistic:
    """`overlap` of all rows of some sets, each given by its cosines (m, m) before and after, with −∞ on the diagonal.

    Resamples also vary which rows can be found: a row is left out as a query and as a neighbour.
    """
    shares = [shares_kept(*part) for part in parts]
    total, n = sum(float(part.sum()) for part in shares), sum(map(len, shares))
    fewest = min(map(len, shares))
    if fewest < NEIGHBOURS + 2:
        return Undefined(n, f"with {NEIGHBOURS} neighbours it needs at least {NEIGHBOURS + 2} rows, got {fewest}")
    if any(_equally_near(before) for before, _ in parts):
        return Undefined(n, "all rows are equally near each other")

    def without() -> NDArray[np.float64]:
        changes = [_without(*part) - own for part, own in zip(parts, shares, strict=True)]
        return (total + np.concatenate(changes)) / (n - 1)

    return _Share(total / n, n, without)


def _equally_near(cosines: Cosine) -> bool:
    highest = cosines.max(axis=1)
    lowest = np.where(np.isneginf(cosines), highest[:, None], cosines).min(axis=1)
    return bool((highest - lowest).max() <= ROUNDING)


class _Share(Jackknife):
    """A share, whose intervals end within 0 to 1."""

    def resampled(self, counts: NDArray[Any]) -> NDArray[Any]:
        return np.clip(super().resampled(counts), 0.0, 1.0)


def _without(before: Cosine, after: Cosine) -> NDArray[np.float64]:
    """(m,): the change of the other rows' summed shares where each row cannot be found and the next in order take its place."""
    first, next_ones, shared = _places(before)
    first, next_ones = first | (next_ones & shared), next_ones & ~shared
    certain, tied, _ = _places(after)
    count = tied.sum(axis=1, keepdims=True, dtype=np.float32)
    chance = (NEIGHBOURS - certain.sum(axis=1, keepdims=True, dtype=np.float32)) / count
    # what each tied row gains where one before the tie, or one in it, is left out
    gain = certain / count + tied * (chance / np.maximum(count - 1, 1))
    chances = certain + tied * chance
    of_first, of_next = ((part & tied).sum(axis=1, keepdims=True, dtype=np.float32) for part in (first, next_ones))
    next_chances = (next_ones * chances).sum(axis=1, keepdims=True)
    changes = gain * (of_first - (first & tied)) + first * (next_chances + gain * of_next - chances)
    return np.asarray(changes.sum(axis=0, dtype=np.float64) / NEIGHBOURS)


def _places(cosines: Cosine) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """(m, m) each row's nearest rows before the tie at its 10th place, and those in the tie; (m, 1) whether there is one. Otherwise the
    10 nearest, and those tied at the 11th place."""
    place = cosines.shape[1] - NEIGHBOURS
    part = np.partition(cosines, (place - 1, place), axis=1)
    following, last = part[:, place - 1, None], part[:, place, None]
    shared = last - following <= ROUNDING
    pivot = np.where(shared, last, following)
    certain = cosines > pivot + ROUNDING
    return certain, ~certain & (cosines >= pivot - ROUNDING), shared


def shares_kept(before: Cosine, after: Cosine) -> NDArray[np.float64]:
    """(m,): recall@10 of each row's neighbours."""
    m = len(before)
    k = min(NEIGHBOURS, m - 1)
    if k < 1:
        return np.full(m, np.nan)
    found: NDArray[Any] = ((among_largest(before, k) > 0) * among_largest(after, k)).sum(axis=1)
    return np.asarray(found / k)

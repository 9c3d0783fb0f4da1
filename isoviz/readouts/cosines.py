"""Read-outs of unlabelled vectors: the similarity of random pairs and of neighbours, and the noise floor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz.cosines.floor import Floor
from isoviz.readouts.image import Image
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


def noise_floor(image: Image, related: NDArray[np.bool_]) -> Statistic:
    """The cosine that 99 % of the pairs of rows of `image.sample` stay below, without the `related` ones (m, m)."""
    m = len(image.sample)
    floor = Floor(image.cosines, ~(related | related.T | np.tri(m, dtype=bool)), (np.arange(m), np.arange(m)))
    if not floor.count:
        return Mean(np.full(m, np.nan))
    return Jackknife(float(np.quantile(floor.values, NOISE)), m, lambda: floor.without(NOISE))


def overlap(before: Image, after: Image) -> Statistic:
    """Mean share of each row's 10 nearest rows by cosine that are the same before and after."""
    m = len(before.sample)
    k = min(NEIGHBOURS, max(1, m - 1))
    both = np.concatenate([before.nearest(k), after.nearest(k)], axis=1)
    both.sort(axis=1)
    shares: NDArray[Any] = (both[:, 1:] == both[:, :-1]).sum(axis=1) / k
    return Mean(shares)

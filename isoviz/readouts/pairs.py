"""Whether vectors rated similar have similar directions: correlations over pairs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from isoviz.cosines.pairs import SHARE_OF_HIGHEST
from isoviz.readouts.image import ROUNDING, Image
from isoviz.statistics.paired_bootstrap import Correlation, Mean, Ranks, Statistic


@dataclass(frozen=True)
class RatedPairs:
    """Pairs of rows and how similar people rate them.

    Attributes:
        left, right: (p,) rows of the image.
        score: (p,).
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    score: NDArray[np.float64]

    @cached_property
    def ranks(self) -> Ranks:
        """Ranks of the scores, shared by all read-outs."""
        return Ranks(self.score)


Similarity = Callable[[Image, NDArray[np.int64], NDArray[np.int64]], NDArray[np.float64]]


def _products(points: NDArray[np.float32], left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.einsum("ij,ij->i", points[left], points[right], dtype=np.float64)


SIMILARITIES: Final[dict[str, Similarity]] = {
    "cosine": lambda image, left, right: _products(image.unit, left, right),
    "dot": lambda image, left, right: _products(image.points, left, right),
}
"""Similarities of pairs of rows."""


def _without_rounding(name: str, values: NDArray[np.float64], image: Image, pairs: RatedPairs) -> NDArray[np.float64]:
    """The similarities (p,); zeros where rounding explains all differences, so that they correlate with nothing."""
    size = (image.lengths[pairs.left] * image.lengths[pairs.right]).max(initial=0.0) if name == "dot" else 1.0
    equal = len(values) and np.ptp(values) <= ROUNDING * size
    return np.zeros_like(values) if equal else values


def measure(image: Image, pairs: RatedPairs, requested: Collection[str] = ()) -> dict[str, Statistic]:
    """Spearman's and Pearson's correlation of the scores with the requested similarities, or all."""
    statistics: dict[str, Statistic] = {}
    for name, similarity in SIMILARITIES.items():
        if not requested or any(slug.endswith(f"_{name}") for slug in requested):
            values = _without_rounding(name, similarity(image, pairs.left, pairs.right), image, pairs)
            statistics[f"spearman_{name}"] = Correlation(pairs.ranks, values)
            statistics[f"pearson_{name}"] = Correlation(pairs.score, values)
    return statistics


def alignment(image: Image, pairs: RatedPairs) -> Statistic:
    """Mean of ‖x̂ − ŷ‖² = 2 − 2 cos over the pairs that are related by the ruler's rule: with at least 0.8 of the highest score."""
    related = pairs.score >= SHARE_OF_HIGHEST * pairs.score.max(initial=0.0)
    return Mean(2 - 2 * SIMILARITIES["cosine"](image, pairs.left[related], pairs.right[related]))

"""Whether vectors rated similar have similar directions: correlations over pairs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from isoviz.readouts.image import ROUNDING, Image
from isoviz.readouts.ruler.pairs import SHARE_OF_HIGHEST
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


def _cosines(image: Image, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.einsum("ij,ij->i", image.unit[left], image.unit[right], dtype=np.float64)


def measure(image: Image, pairs: RatedPairs) -> dict[str, Statistic]:
    """Spearman's and Pearson's correlation of the scores with the cosines."""
    values = _cosines(image, pairs.left, pairs.right)
    if len(values) and np.ptp(values) <= ROUNDING:  # rounding explains all differences, which correlate with nothing
        values = np.zeros_like(values)
    return {
        "spearman_cosine": Correlation(pairs.ranks, values),
        "pearson_cosine": Correlation(pairs.score, values),
    }


def alignment(image: Image, pairs: RatedPairs) -> Statistic:
    """Mean of ‖x̂ − ŷ‖² = 2 − 2 cos over the pairs that are related by the ruler's rule: with at least 0.8 of the highest score."""
    related = pairs.score >= SHARE_OF_HIGHEST * pairs.score.max(initial=0.0)
    return Mean(2 - 2 * _cosines(image, pairs.left[related], pairs.right[related]))

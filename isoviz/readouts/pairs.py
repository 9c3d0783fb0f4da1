"""Whether vectors rated similar have similar directions: correlations over pairs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from isoviz.readouts.image import Image
from isoviz.statistics.paired_bootstrap import Correlation, Ranks, Statistic


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


def measure(image: Image, pairs: RatedPairs) -> dict[str, Statistic]:
    """Spearman's and Pearson's correlation of the scores with cosine and with dot product."""
    dots = np.einsum("ij,ij->i", image.points[pairs.left], image.points[pairs.right], dtype=np.float64)
    cosines = np.einsum("ij,ij->i", image.unit[pairs.left], image.unit[pairs.right], dtype=np.float64)
    statistics: dict[str, Statistic] = {}
    for name, values in (("cosine", cosines), ("dot", dots)):
        statistics[f"spearman_{name}"] = Correlation(pairs.ranks, values)
        statistics[f"pearson_{name}"] = Correlation(pairs.score, values)
    return statistics

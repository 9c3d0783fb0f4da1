"""The noise floor: how high the cosines of unrelated pairs lie, with intervals that count rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz.cosines.records import Level
from isoviz.cosines.sides import FEWEST_ROWS, Matrix
from isoviz.errors import InputError


class Floor:
    """Quantiles of the cosines of unrelated pairs."""

    def __init__(self, cosines: Matrix, unrelated: NDArray[np.bool_]) -> None:
        self.cosines, self.unrelated = cosines, unrelated
        self.values = np.sort(cosines[unrelated])
        self.count = len(self.values)
        if self.count < FEWEST_ROWS:
            raise InputError("pairs: hardly any pair of rows is unrelated", field="pairs")

    def level(self, share: float) -> Level:
        from scipy.stats import beta

        cosine = float(np.quantile(self.values, share))
        below = np.where(self.unrelated, self.cosines <= cosine, False)
        if self.cosines.shape[0] == self.cosines.shape[1] and not np.tril(self.unrelated).any():
            sums, partners = below.sum(0) + below.sum(1), self.unrelated.sum(0) + self.unrelated.sum(1)
            variance = 4 * _of_means(sums, partners, share)
        else:
            variance = sum(_of_means(below.sum(axis), self.unrelated.sum(axis), share) for axis in (0, 1))
        spread = share * (1 - share)
        effective = spread / (variance + spread / self.count)
        low = beta.ppf(0.025, effective * share, effective * (1 - share) + 1)
        high = beta.ppf(0.975, effective * share + 1, effective * (1 - share))
        ends = np.quantile(self.values, [low, high])
        return Level(share=share, cosine=cosine, low=float(ends[0]), high=float(ends[1]))


def _of_means(sums: NDArray[Any], partners: NDArray[Any], share: float) -> float:
    """Variance of the mean over rows of each row's share of partners below the quantile, without what their finite number adds."""
    means = sums[partners > 0] / partners[partners > 0]
    within = share * (1 - share) / partners[partners > 0].mean()
    return max(0.0, float(means.var(ddof=1)) - within) / len(means)

"""A sequential test that may be looked at after every observation: is the mean of a bounded quantity above a limit, from some step on?"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

_STAKES = np.array([0.1, 0.3, 0.6, 0.95])
"""Shares of the largest allowed bet; the evidence is their average, so none has to be chosen after seeing data."""


class MeanAbove:
    """Evidence that observations in [0, 1] have a conditional mean above `limit` from some look on.

    Null hypothesis: at every look, given the past, each observation has a mean of at most `limit`; the distribution may change
    from look to look. Then 1 + λ(x − limit) with 0 ≤ λ < 1/limit is a fair or losing bet, its running product a non-negative
    supermartingale, and so is the weighted sum of products that start at every look s with the weights 1/(s(s + 1)), which sum
    to 1. By Ville's inequality the evidence ever reaches 1/α with probability at most α, however often and long one looks.

    Sources: betting on bounded means, Waudby-Smith & Ramdas 2024 (arXiv:2010.09686); sums of e-processes started at every
    time, Shin, Ramdas & Rinaldo 2023 (arXiv:2203.03532), here with weights so that the false-alarm probability, rather than the
    mean time to a false alarm, is bounded.

    Attributes:
        limit: in (0, 1).
        looks: number of updates with at least one observation.
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.looks = 0
        self._wealth = np.zeros(len(_STAKES))

    @property
    def evidence(self) -> float:
        """The current e-value; 1 before the first look."""
        return float(self._wealth.sum() + 1.0 / (self.looks + 1))

    def update(self, observations: ArrayLike) -> float:
        """The evidence after a look at (k,) observations that are independent given the past; no observation changes nothing."""
        x = np.asarray(observations, dtype=np.float64)
        if x.size:
            self.looks += 1
            start = 1.0 / (self.looks * (self.looks + 1) * len(_STAKES))
            growth = np.log1p(_STAKES[:, None] / self.limit * (x - self.limit)).sum(axis=1)
            with np.errstate(over="ignore"):
                self._wealth = (self._wealth + start) * np.exp(growth)
        return self.evidence

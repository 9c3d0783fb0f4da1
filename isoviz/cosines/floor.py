"""The noise floor: how high the cosines of unrelated pairs lie, with intervals that count rows."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz.cosines.records import Level
from isoviz.statistics import dyads


class Floor:
    """Quantiles of the cosines of unrelated pairs.

    Args:
        cosines: (left, right)
        unrelated: (left, right) which pairs count.
        units: of each left and each right row, numbered from 0: what is drawn independently.
    """

    def __init__(
        self, cosines: NDArray[Any], unrelated: NDArray[np.bool_], units: tuple[NDArray[np.intp], NDArray[np.intp]]
    ) -> None:
        self.cosines, self.unrelated, self.units = cosines, unrelated, units

    @cached_property
    def values(self) -> NDArray[Any]:
        """Cosines of unrelated pairs, sorted."""
        return np.sort(self.cosines[self.unrelated])

    @property
    def count(self) -> int:
        return len(self.values)

    def level(self, share: float) -> Level:
        cosine = float(np.quantile(self.values, share))
        terms = np.where(self.unrelated, (self.cosines <= cosine) - np.float32(share), np.float32(0)) / self.count
        low, high = dyads.quantile_interval(share, dyads.effective(share, dyads.variance(terms, *self.units)))
        return Level(
            share=share,
            cosine=cosine,
            low=-1.0 if low is None else float(np.quantile(self.values, low)),
            high=1.0 if high is None else float(np.quantile(self.values, high)),
        )

    def without(self, share: float) -> NDArray[Any]:
        """(units,) the quantile without the pairs of each unit in turn."""
        cosine, count = np.quantile(self.values, share), int(max(units.max() for units in self.units)) + 1
        below, pairs = (
            sum(np.bincount(units, mask.sum(axis=axis), count) for axis, units in zip((1, 0), self.units, strict=True))
            for mask in (self.unrelated & (self.cosines <= cosine), self.unrelated)
        )
        places = share * (self.count - pairs - 1) + below
        return np.where(pairs > 0, np.interp(places, np.arange(self.count), self.values), cosine)

"""The paired bootstrap for two readings of the same units: rows, pairs, queries or documents.

Percentile intervals are too narrow for few units, so their percentiles are expanded to match Student's t (Hesterberg 2015,
section 4.3). Below `FEWEST_UNITS` there is no interval.

Each statistic is a function of the number of times each unit is drawn, so a thousand resamples take a few matrix products and
copy no units. Where units enter each other's terms, this function is linear (`Jackknife`). Both readings use the same draws
(Efron & Tibshirani 1993, chapter 13).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]
Outcome = Literal["undefined", "no interval", "same", "unclear", "higher", "lower"]

LEVEL: Final = 0.95
RESAMPLES: Final = 1_000
FEWEST_UNITS: Final = 6
_NUMBERS: Final = 5_000_000
"""Maximum of units times resamples in memory; with more units, fewer resamples are drawn, but at least `_FEWEST`."""
_FEWEST: Final = 200


@dataclass(frozen=True)
class Difference:
    """One reading minus another, of the same n units.

    Attributes:
        value: the difference; None if either reading is undefined.
        low, high: ends of the expanded percentile interval of the paired bootstrap; None if there is no interval.
        n: number of units.
        reason: why a reading is undefined, if it says so.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    reason: str = ""

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    @property
    def outcome(self) -> Outcome:
        """What the interval shows; "higher" and "lower" are significant."""
        if self.value is None:
            return "undefined"
        if self.low is None or self.high is None:
            return "no interval"
        if self.low == self.high == 0:
            return "same"
        if not self.excludes_zero:
            return "unclear"
        return "higher" if self.low > 0 else "lower"


class Statistic(Protocol):
    """A statistic of n units that can be recomputed for every resample."""

    @property
    def n(self) -> int: ...

    @property
    def value(self) -> float | None:
        """None where it is undefined."""

    def resampled(self, counts: Array) -> Array:
        """(r,) values, nan if undefined, for (r, n) counts of draws per unit."""


def difference(before: Statistic, after: Statistic) -> Difference:
    """`after − before` with its interval; both have the same units."""
    if before.value is None or after.value is None:
        return Difference(None, None, None, after.n, reason=_reason(before) or _reason(after))
    value = after.value - before.value
    if after.n < FEWEST_UNITS:
        return Difference(value, None, None, after.n)
    counts = draws(after.n)
    differences = after.resampled(counts) - before.resampled(counts)
    return _percentiles(value, differences, after.n)


def interval(statistic: Statistic) -> Difference:
    """A statistic's own value and interval, in the same form."""
    if statistic.value is None or statistic.n < FEWEST_UNITS:
        return Difference(statistic.value, None, None, statistic.n, reason=_reason(statistic))
    return _percentiles(statistic.value, statistic.resampled(draws(statistic.n)), statistic.n)


def _reason(statistic: Statistic) -> str:
    return statistic.reason if isinstance(statistic, Undefined) else ""


def _percentiles(value: float, differences: Array, n: int) -> Difference:
    finite = differences[np.isfinite(differences)]
    if len(finite) < len(differences) / 2:
        return Difference(value, None, None, n)
    tail = _expanded_tail(n)
    low, high = np.quantile(finite, [tail, 1 - tail])
    # equal readings can differ by rounding of their sums
    low, high = (0.0 if abs(end) < 1e-6 else float(end) for end in (low, high))
    return Difference(value, low, high, n)


def _expanded_tail(n: int) -> float:
    """The share of resamples below the interval: the tail of a normal distribution beyond Student's t quantile for n units."""
    from scipy import stats

    return float(stats.norm.cdf(np.sqrt(n / (n - 1)) * stats.t.ppf((1 - LEVEL) / 2, n - 1)))


@functools.lru_cache(maxsize=4)
def draws(n: int) -> Array:
    """(r, n) float32: the count of each of n units in each resample; read-only and shared."""
    count = max(_FEWEST, min(RESAMPLES, _NUMBERS // n))
    generator = np.random.default_rng(0)
    counts = np.empty((count, n), dtype=np.float32)
    for row in counts:
        row[:] = np.bincount(generator.integers(0, n, size=n), minlength=n)
    counts.flags.writeable = False
    return counts


class Mean:
    """The mean of one number per unit, (n,)."""

    def __init__(self, values: ArrayLike) -> None:
        self.values = np.asarray(values, dtype=np.float64)

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def value(self) -> float | None:
        mean = float(self.values.mean()) if self.n else np.nan
        return mean if np.isfinite(mean) else None

    def resampled(self, counts: Array) -> Array:
        return np.asarray(counts @ self.values.astype(np.float32) / self.n, dtype=np.float64)


class Undefined(Mean):
    """A statistic of n units that is undefined, and why."""

    def __init__(self, n: int, reason: str) -> None:
        super().__init__(np.full(n, np.nan))
        self.reason = reason


class Jackknife:
    """A statistic of units that enter each other's terms: means over pairs, classes or nearest neighbours.

    A resample that holds a unit twice would make it its own neighbour. So the statistic is recomputed without each unit in turn,
    and a resample adds up the units' influences (Efron & Tibshirani 1993, chapter 11). On average this does not understate the
    variance (Efron & Stein 1981).

    Args:
        value: the statistic of all units.
        n: number of units.
        without: returns its (n,) values without each unit in turn; called once, for the first interval.
    """

    def __init__(self, value: float, n: int, without: Callable[[], Array]) -> None:
        self.value = value if np.isfinite(value) else None
        self.n = n
        self._without: Callable[[], Array] | None = without

    @cached_property
    def _influences(self) -> Array:
        assert self._without is not None
        without = self._without()
        self._without = None  # releases what it was computed from
        return np.asarray((self.n - 1) * (without.mean() - without))

    @property
    def standard_error(self) -> float:
        """That of the jackknife, which resamples vary by, too."""
        return float(np.sqrt((self._influences**2).sum() / (self.n * (self.n - 1))))

    def resampled(self, counts: Array) -> Array:
        return np.asarray((self.value or 0.0) + counts @ self._influences.astype(np.float32) / self.n, dtype=np.float64)


class Ranks:
    """Ranks within each resample; equal values share their mean rank."""

    def __init__(self, values: ArrayLike) -> None:
        self.values = np.asarray(values, dtype=np.float64)
        self.order = np.argsort(self.values, kind="stable")
        _, self.group = np.unique(self.values, return_inverse=True)
        _, self.starts = np.unique(self.values[self.order], return_index=True)

    def resampled(self, counts: Array) -> Array:
        """(r, n): the rank of each unit in each resample, minus the mean rank."""
        in_order = counts[:, self.order]
        if len(self.starts) < len(self.order):
            in_order = np.add.reduceat(in_order, self.starts, axis=1)
        ranks = np.cumsum(in_order, axis=1)
        ranks -= in_order / 2
        ranks -= np.float32(counts.shape[1] / 2)
        return np.asarray(ranks[:, self.group])

    @cached_property
    def of_draws(self) -> Array:
        """`resampled(draws)`, cached because the same scores are compared with many readings."""
        return self.resampled(draws(len(self.order)))


class Correlation:
    """Pearson's or Spearman's correlation of two numbers per unit.

    Args:
        first: (n,), or its `Ranks` for Spearman's; readings can share it.
        second: (n,).
    """

    def __init__(self, first: ArrayLike | Ranks, second: ArrayLike) -> None:
        self.ranks = (first, Ranks(second)) if isinstance(first, Ranks) else None
        self.first = first.values if isinstance(first, Ranks) else np.asarray(first, dtype=np.float64)
        self.second = np.asarray(second, dtype=np.float64)

    @property
    def n(self) -> int:
        return len(self.first)

    @cached_property
    def value(self) -> float | None:
        if self.n < 3:
            return None
        ones = np.ones((1, self.n), dtype=np.float32)
        coefficient = float((self._of(ones, *self._ranked(ones)) if self.ranks else self._pearson(ones))[0])
        return coefficient if np.isfinite(coefficient) else None

    def resampled(self, counts: Array) -> Array:
        if counts is draws(self.n):
            return self._of_draws
        return self._of(counts, *self._ranked(counts)) if self.ranks else self._pearson(counts)

    @cached_property
    def _of_draws(self) -> Array:
        counts = draws(self.n)
        if self.ranks is None:
            return self._pearson(counts)
        return self._of(counts, self.ranks[0].of_draws, self.ranks[1].resampled(counts))

    def _ranked(self, counts: Array) -> tuple[Array, Array]:
        assert self.ranks is not None
        return self.ranks[0].resampled(counts), self.ranks[1].resampled(counts)

    def _pearson(self, counts: Array) -> Array:
        x, y = _standard(self.first), _standard(self.second)
        if x is None or y is None:
            return np.full(len(counts), np.nan)
        sums = (counts @ np.stack([x, y, x * x, y * y, x * y], axis=1).astype(np.float32)).astype(np.float64) / self.n
        return _correlation(
            sums[:, 4] - sums[:, 0] * sums[:, 1], sums[:, 2] - sums[:, 0] ** 2, sums[:, 3] - sums[:, 1] ** 2
        )

    @staticmethod
    def _of(counts: Array, x: Array, y: Array) -> Array:
        weighted = counts * x
        products = np.einsum("ij,ij->i", weighted, y, dtype=np.float64)
        first = np.einsum("ij,ij->i", weighted, x, dtype=np.float64)
        np.multiply(counts, y, out=weighted)
        return _correlation(products, first, np.einsum("ij,ij->i", weighted, y, dtype=np.float64))


def _standard(values: Array) -> Array | None:
    """Standardised to mean 0 and variance 1; None if nothing varies."""
    centred = values - values.mean()
    spread = float(np.sqrt(np.mean(centred**2)))
    return centred / spread if spread > 1e-12 * (1e-300 + float(np.abs(values).max())) else None


def _correlation(products: Array, first: Array, second: Array) -> Array:
    sizes = np.sqrt(np.maximum(first, 0.0) * np.maximum(second, 0.0))
    return np.divide(products, sizes, out=np.full(len(sizes), np.nan), where=sizes > 1e-12)

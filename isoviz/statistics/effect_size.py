"""A difference in units of its spread: Hedges' g, with an interval that is exact for normal samples."""

from __future__ import annotations

import math
from dataclasses import dataclass

from isoviz.statistics.intervals import LEVEL, Interval


@dataclass(frozen=True)
class EffectSize:
    """Hedges' g and its interval.

    For pairs it is the mean difference divided by the standard deviation of the differences; for two samples, by their pooled
    standard deviation. Hedges' factor shrinks both, because small samples overstate effects.
    """

    g: float
    interval: Interval


def of_pairs(mean: float, sd: float, n: int, level: float = LEVEL) -> EffectSize | None:
    """g of n paired differences with this mean and standard deviation; None for n below three or without spread."""
    return _effect(mean, sd, 1 / n, n - 1, level) if n > 2 else None


def of_samples(
    first: tuple[float, float, int], second: tuple[float, float, int], level: float = LEVEL
) -> EffectSize | None:
    """g of two samples given as (mean, standard deviation, n), first minus second; None below two values each or without
    spread."""
    (a, sd_a, n), (b, sd_b, m) = first, second
    if n < 2 or m < 2:
        return None
    pooled = math.sqrt(((n - 1) * sd_a**2 + (m - 1) * sd_b**2) / (n + m - 2))
    return _effect(a - b, pooled, 1 / n + 1 / m, n + m - 2, level)


def _effect(difference: float, sd: float, share: float, freedom: int, level: float) -> EffectSize | None:
    """share: variance of the mean difference divided by the variance of a value."""
    from scipy import special

    if not sd > 0:
        return None
    factor = math.exp(math.lgamma(freedom / 2) - math.lgamma((freedom - 1) / 2)) / math.sqrt(freedom / 2)
    root = math.sqrt(share)
    t = difference / (sd * root)
    tail = (1 - level) / 2
    # the ends are the effects that put the observed t exactly at the edge of one tail
    low, high = (float(special.nctdtrinc(freedom, p, t)) * root for p in (1 - tail, tail))
    # out of scipy's range
    return EffectSize(factor * difference / sd, Interval(low, high)) if math.isfinite(low + high) else None

"""The number of seeds needed to detect a difference, from the observed spread. Noncentral t, two-sided.

A planning estimate for a true difference of the observed size. The true spread may be half or six times the spread of three
seeds, and the observed difference may be chance.
"""

from __future__ import annotations

import math

POWER = 0.8
"""The power regarded as likely detection."""
MOST = 10_000
"""Largest number of seeds reported."""


def power(effect: float, n: int, alpha: float, *, paired: bool) -> float:
    """The power of a t-test at level alpha: the probability of detecting a true difference.

    Args:
        effect: the difference divided by the standard deviation (of the paired differences, or of each sample).
        n: pairs, or seeds in each of two samples; at least 2.
    """
    from scipy import stats

    freedom = n - 1 if paired else 2 * (n - 1)
    shift = abs(effect) * math.sqrt(n if paired else n / 2)
    limit = stats.t.ppf(1 - alpha / 2, freedom)
    far = float(stats.nct.cdf(-limit, freedom, shift))
    # nan if the far tail is too small for scipy
    return float(stats.nct.sf(limit, freedom, shift)) + (0.0 if math.isnan(far) else far)


def seeds_needed(effect: float, alpha: float, *, paired: bool, target: float = POWER) -> int | None:
    """The smallest number of pairs (or seeds in each sample) with this power; None if `MOST` are not enough."""
    if not abs(effect) > 0 or power(effect, MOST, alpha, paired=paired) < target:
        return None
    low, high = 1, 2  # lower is too few (one seed has no spread); upper is enough, once found
    while power(effect, high, alpha, paired=paired) < target:
        low, high = high, min(2 * high, MOST)
    while high - low > 1:
        middle = (low + high) // 2
        if power(effect, middle, alpha, paired=paired) < target:
            low = middle
        else:
            high = middle
    return high


def detectable(n: int, alpha: float, *, paired: bool, target: float = POWER) -> float:
    """The smallest effect that n pairs (or n seeds in each sample) detect with this power, in standard deviations; n ≥ 2."""
    from scipy import special, stats

    freedom = n - 1 if paired else 2 * (n - 1)
    limit = float(stats.t.ppf(1 - alpha / 2, freedom))
    shift = float(
        special.nctdtrinc(freedom, 1 - target, limit)
    )  # the far tail contributes less than a thousandth of this power
    return shift / math.sqrt(n if paired else n / 2)

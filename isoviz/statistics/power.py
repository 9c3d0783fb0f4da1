"""What a number of seeds or of validation rows can show.

The seeds needed to detect a difference come from the observed spread, with the noncentral t, two-sided.

A planning estimate for a true difference of the observed size. The true spread may be half or six times the spread of three
seeds, and the observed difference may be chance.
"""

from __future__ import annotations

import bisect
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


def seeds_needed(effect: float, alpha: float, *, paired: bool) -> int | None:
    """The smallest number of pairs (or seeds in each sample) with this power; None if `MOST` are not enough."""
    if not abs(effect) > 0 or power(effect, MOST, alpha, paired=paired) < POWER:
        return None
    counts = range(2, MOST)  # one seed has no spread
    return 2 + bisect.bisect_left(counts, POWER, key=lambda n: power(effect, n, alpha, paired=paired))


def detectable(n: int, alpha: float, *, paired: bool) -> float:
    """The smallest effect that n pairs (or n seeds in each sample) detect with this power, in standard deviations; n ≥ 2."""
    from scipy import special, stats

    freedom = n - 1 if paired else 2 * (n - 1)
    limit = float(stats.t.ppf(1 - alpha / 2, freedom))
    # the far tail contributes less than a thousandth of this power
    shift = float(special.nctdtrinc(freedom, 1 - POWER, limit))
    return shift / math.sqrt(n if paired else n / 2)


def smallest_difference(rows: int, alpha: float = 0.05) -> float | None:
    """The smallest significant difference in accuracy, for any number of seeds; None if no difference can be significant.

    Two models answer the same rows. At best, every row on which they differ favours the same model. The exact McNemar test then
    needs enough such rows, k, that p = 2 · 2^−k is below alpha: six at 5 %. Real rows are rarely that consistent, so this is a
    lower bound.
    """
    needed = math.floor(1 - math.log2(alpha)) + 1
    return needed / rows if rows >= needed else None


def smallest_correlation(rows: int, alpha: float = 0.05) -> float | None:
    """The smallest Pearson correlation that a t-test can distinguish from 0; None below three rows."""
    if rows < 3:
        return None
    from scipy import stats

    limit = float(stats.t.ppf(1 - alpha / 2, rows - 2))
    return limit / math.sqrt(rows - 2 + limit**2)

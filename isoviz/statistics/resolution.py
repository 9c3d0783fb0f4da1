"""The smallest difference that so many validation rows can show, whatever the seeds."""

from __future__ import annotations

import math


def smallest_difference(rows: int, alpha: float = 0.05) -> float | None:
    """The smallest difference in the share of right answers that can be significant; None where none can.

    Two models answer the same rows. At best, every row on which they differ favours the same one: then the exact McNemar test
    needs so many such rows that p = 2 · 2^−k is below alpha, six at 5 %. Seldom are the rows that kind, so this is a lower bound.
    """
    needed = math.floor(1 - math.log2(alpha)) + 1
    return needed / rows if rows >= needed else None


def smallest_correlation(rows: int, alpha: float = 0.05) -> float | None:
    """The smallest Pearson correlation that a t-test tells from none; None below three rows."""
    if rows < 3:
        return None
    from scipy import stats

    limit = float(stats.t.ppf(1 - alpha / 2, rows - 2))
    return limit / math.sqrt(rows - 2 + limit**2)

"""The smallest difference that a number of validation rows can resolve, for any number of seeds."""

from __future__ import annotations

import math


def smallest_difference(rows: int, alpha: float = 0.05) -> float | None:
    """The smallest significant difference in accuracy; None if no difference can be significant.

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

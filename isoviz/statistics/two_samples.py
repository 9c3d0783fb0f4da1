"""Tests of whether two samples of seeds differ, paired by seed or not, each along the last axis of its arrays, and their correction.

All are two-sided. A sample without spread cannot be tested (nan): scores that agree to the last digit say nothing about other
seeds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    Array = np.ndarray[Any, np.dtype[np.float64]]

ROUNDING = 1e-12
"""A spread below this share of the values' size counts as rounding error."""


def paired_t(differences: ArrayLike) -> Array:
    """p of the t-test of a mean paired difference of 0; (..., n) → (...)."""
    from scipy import stats

    values = np.asarray(differences, dtype=np.float64)
    p = np.full(values.shape[:-1], np.nan)
    if values.shape[-1] > 1:
        spread = _spreads(values)
        p[spread] = stats.ttest_1samp(values[spread], 0.0, axis=-1).pvalue
    return p


def welch_t(first: ArrayLike, second: ArrayLike) -> Array:
    """p of Welch's t-test of equal means with possibly unequal variances; (..., n) and (..., m) → (...)."""
    from scipy import stats

    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    p = np.full(x.shape[:-1], np.nan)
    if x.shape[-1] > 1 and y.shape[-1] > 1:
        spread = _spreads(x) | _spreads(y)
        p[spread] = stats.ttest_ind(x[spread], y[spread], axis=-1, equal_var=False).pvalue
    return p


def from_summaries(
    first: tuple[float, float, int], second: tuple[float, float, int], *, equal_variances: bool = False
) -> float:
    """p of the two-sample t-test from each sample's (mean, sample standard deviation, n), as printed in papers.

    Args:
        equal_variances: Student's test, as in Ding et al. 2022; Welch's otherwise.
    """
    from scipy import stats

    if not (first[1] > 0 or second[1] > 0):
        return float("nan")
    return float(stats.ttest_ind_from_stats(*first, *second, equal_var=equal_variances).pvalue)


def _spreads(values: Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    sizes = np.abs(values).max(axis=-1)
    return np.asarray(np.ptp(values, axis=-1) > ROUNDING * sizes)


def holm(p: ArrayLike) -> Array:
    """Holm's adjusted p-values along the last axis. An undefined value (nan) does not count as a test and stays undefined.

    Rejecting all values below α keeps the chance of any false rejection in the row at or below α, for any dependence between
    the tests (Holm 1979).
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, axis=-1)  # undefined ones last
    ranked = np.take_along_axis(values, order, axis=-1)
    remaining = np.isfinite(values).sum(axis=-1, keepdims=True) - np.arange(values.shape[-1])
    adjusted = np.fmin(np.fmax.accumulate(ranked * np.maximum(remaining, 1), axis=-1), 1.0)
    adjusted[np.isnan(ranked)] = np.nan
    in_order = np.empty_like(adjusted)
    np.put_along_axis(in_order, order, adjusted, axis=-1)
    return in_order

"""Each statistic against a library's own on copied units, and the interval of a mean against its normal approximation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from isoviz.statistics.paired_bootstrap import (
    Correlation,
    Jackknife,
    Mean,
    Ranks,
    difference,
    draws,
)

N = 60
RNG = np.random.default_rng(3)
X = RNG.normal(size=N)
GRADES = RNG.integers(0, 6, N).astype(float)  # many ties

CASES = {
    "mean": (Mean(X), lambda rows: X[rows].mean()),
    "pearson": (Correlation(GRADES, X), lambda rows: stats.pearsonr(GRADES[rows], X[rows])[0]),
    "spearman": (Correlation(Ranks(GRADES), X), lambda rows: stats.spearmanr(GRADES[rows], X[rows])[0]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_statistic_and_its_resamples_equal_those_of_copied_units(name: str) -> None:
    statistic, plain = CASES[name]
    assert statistic.value == pytest.approx(plain(np.arange(N)), abs=1e-6)
    counts = draws(N)
    expected = [plain(np.repeat(np.arange(N), row.astype(int))) for row in counts[:50]]
    assert statistic.resampled(counts)[:50] == pytest.approx(expected, abs=2e-6)
    assert statistic.resampled(np.array(counts[:50])) == pytest.approx(expected, abs=2e-6)  # not the shared draws


def test_the_jackknife_of_a_mean_draws_as_the_mean_does() -> None:
    jackknife = Jackknife(X.mean(), N, lambda: (X.sum() - X) / (N - 1))
    assert jackknife.resampled(draws(N)) == pytest.approx(Mean(X).resampled(draws(N)), abs=2e-6)
    assert difference(Mean(X), jackknife).excludes_zero is False
    assert Jackknife(np.nan, N, lambda: X).value is None


@pytest.mark.parametrize("n", [6, 12, 40])
def test_few_units_are_no_excuse_for_narrow_intervals(n: int) -> None:
    random = np.random.default_rng(n)
    excluded = [difference(Mean(random.normal(size=n)), Mean(random.normal(size=n))).excludes_zero for _ in range(800)]
    assert 0.02 < np.mean(excluded) < 0.085
    assert difference(Mean(np.zeros(5)), Mean(np.arange(5.0))).low is None


def test_undefined_values_have_no_interval() -> None:
    flat = Correlation(np.ones(10), X[:10])
    assert flat.value is None
    assert difference(flat, Correlation(X[:10], X[:10])).value is None
    assert difference(Mean([1.0]), Mean([2.0])).low is None

"""Tests of pairs and samples against scipy's scalar functions, and by hand where they are ours."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from isoviz.statistics import two_samples


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def test_many_tables_at_once_are_each_scipys_own_test(rng):
    one, two = rng.normal(size=(4, 3, 8)), rng.normal(size=(4, 3, 8)) + 0.5
    pairs = two_samples.paired_t(one - two)
    samples = two_samples.welch_t(one, two[..., :5])
    for at in np.ndindex(4, 3):
        assert pairs[at] == pytest.approx(stats.ttest_rel(one[at], two[at]).pvalue)
        assert samples[at] == pytest.approx(stats.ttest_ind(one[at], two[at][:5], equal_var=False).pvalue)


def test_a_sample_without_spread_has_no_test():
    assert math.isnan(two_samples.paired_t([0.1, 0.1, 0.1]))  # the third of them differs in its last bit from 0.3 − 0.2
    assert math.isnan(two_samples.paired_t([0.3 - 0.2, 0.1, 0.1]))
    assert math.isnan(two_samples.paired_t([0.4]))
    assert math.isnan(two_samples.welch_t([0.5, 0.5], [0.7, 0.7]))
    assert math.isnan(two_samples.welch_t([0.5], [0.7, 0.8]))
    assert math.isnan(two_samples.from_summaries((0.5, 0.0, 3), (0.6, 0.0, 3)))
    assert two_samples.welch_t([0.5, 0.5], [0.7, 0.8]) < 1  # one spread is enough


def test_the_star_of_paper_003():
    """RoBERTa on MNLI-mm: CosReg 85.64 ± 0.22 against none 85.19 ± 0.15, three seeds each."""
    cosreg, none = (85.64, 0.22, 3), (85.19, 0.15, 3)
    assert two_samples.from_summaries(cosreg, none, equal_variances=True) == pytest.approx(0.043, abs=5e-4)
    assert two_samples.from_summaries(cosreg, none) == pytest.approx(0.050, abs=5e-4)


def test_summaries_give_the_test_of_the_values(rng):
    one, two = rng.normal(size=5), rng.normal(size=3) + 1
    summaries = [(part.mean(), part.std(ddof=1), len(part)) for part in (one, two)]
    assert two_samples.from_summaries(*summaries) == pytest.approx(float(two_samples.welch_t(one, two)))


@pytest.mark.parametrize("size", [1, 2, 7])
def test_holm_is_statsmodels(rng, size):
    p = rng.uniform(size=(5, size)) ** 3
    p[0] = p[0, 0]  # ties
    for row, adjusted in zip(p, two_samples.holm(p), strict=True):
        assert adjusted == pytest.approx(multipletests(row, method="holm")[1])


def test_holm_leaves_undefined_tests_out():
    assert two_samples.holm([0.04, math.nan, 0.01]) == pytest.approx([0.04, math.nan, 0.02], nan_ok=True)
    assert np.isnan(two_samples.holm([math.nan, math.nan])).all()

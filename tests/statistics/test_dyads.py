"""The variance of sums over pairs against loops, and intervals of shares and quantiles against exact ones."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from isoviz.statistics import dyads

Units = NDArray[np.int64]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4]),
        ([0, 1, 2, 2], [0, 1, 3, 4]),
        ([0, 0, 1], [2, 3, 2]),
        ([3, 0, 1, 4], [1, 0, 2, 5]),
    ],
)
def test_the_variance_adds_up_all_pairs_of_pairs_with_a_common_unit(left: list[int], right: list[int]) -> None:
    terms = np.random.default_rng(0).normal(size=(len(left), len(right))) + 0.5
    pairs = [(terms[i, j], {a, b}) for (i, a), (j, b) in itertools.product(enumerate(left), enumerate(right))]
    expected = sum(x * y for (x, one), (y, other) in itertools.product(pairs, pairs) if one & other)
    same = sum(x * y for (x, one), (y, other) in itertools.product(pairs, pairs) if one == other)
    count = max(*left, *right) + 1
    value = dyads.variance(terms, np.array(left), np.array(right)).value
    assert value == pytest.approx(max(expected, same) * count / (count - 1))


def test_it_is_the_variance_of_a_mean_cosine() -> None:
    generator = np.random.default_rng(1)
    rows = np.arange(60)
    once = ~np.tri(60, dtype=bool)
    means, estimates = [], []
    for _ in range(300):
        points = generator.normal(size=(60, 4)) + np.eye(4)[0]
        unit = points / np.linalg.norm(points, axis=1, keepdims=True)
        cosines = unit @ unit.T
        means.append(cosines[once].mean())
        terms = np.where(once, cosines - means[-1], 0) / once.sum()
        estimates.append(dyads.variance(terms, rows, rows).value)
    assert np.mean(estimates) == pytest.approx(np.var(means), rel=0.25)


def test_without_variance_there_are_as_many_pairs_as_units() -> None:
    nothing = dyads.variance(np.zeros((30, 30)), np.arange(30), np.arange(30))
    assert dyads.effective(1.0, nothing) == 30
    low, high = dyads.share_interval(1.0, 30)
    assert low == pytest.approx(0.025 ** (1 / 30)) and high == 1


def test_intervals_of_whole_numbers_are_those_of_clopper_and_pearson() -> None:
    exact = stats.binomtest(37, 200).proportion_ci(0.95, "exact")
    assert dyads.share_interval(37 / 200, 200) == pytest.approx((exact.low, exact.high))


@pytest.mark.parametrize("share", [0.5, 0.95, 0.99])
def test_a_quantile_lies_between_the_shares_unless_there_are_too_few(share: float) -> None:
    n = 800
    low, high = dyads.quantile_interval(share, n)
    assert low is not None and high is not None
    below = stats.binom(n, share)  # the number of n pairs below the quantile
    assert below.cdf(np.floor(n * low)) <= 0.025 <= below.cdf(np.ceil(n * low))
    assert below.sf(np.ceil(n * high) - 1) <= 0.025 <= below.sf(np.floor(n * high) - 1)
    assert dyads.quantile_interval(0.99, 100)[1] is None and dyads.quantile_interval(0.01, 100)[0] is None

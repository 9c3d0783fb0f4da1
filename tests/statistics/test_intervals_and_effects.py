"""Intervals, effect sizes, power and the Pareto front against scipy, statsmodels and their own definitions."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestIndPower, TTestPower

from isoviz.statistics import front, intervals, mean_sd, power


def test_the_interval_of_a_mean_is_scipys():
    values = [0.61, 0.64, 0.6, 0.69]
    interval = intervals.of_mean(values)
    assert interval == pytest.approx(stats.ttest_1samp(values, 0).confidence_interval(0.95))
    assert intervals.of_mean([0.5]) is None


def test_hedges_g_by_hand():
    # J(2) = Γ(1)/(1 · Γ(1/2)) = 0.5642; J(8) = Γ(4)/(2 · Γ(7/2)) = 0.9027
    assert intervals.effect_of_pairs(2.0, 4.0, 3).g == pytest.approx(0.5 * 0.56419, abs=1e-4)
    assert intervals.effect_of_samples((1.0, 1.0, 5), (0.0, 1.0, 5)).g == pytest.approx(0.90270, abs=1e-4)
    assert intervals.effect_of_pairs(2.0, 4.0, 2) is None
    assert intervals.effect_of_pairs(2.0, 0.0, 5) is None
    assert intervals.effect_of_samples((1.0, 1.0, 1), (0.0, 1.0, 5)) is None


@pytest.mark.parametrize(("mean", "n"), [(0.3, 3), (-2.0, 5), (0.0, 10), (40.0, 4)])
def test_the_ends_of_the_effects_interval_are_where_the_t_seen_is_in_a_tail(mean, n):
    """Held to the defining equation with the noncentral t written as an integral over the standard deviation."""
    interval = intervals.effect_of_pairs(mean, 1.0, n)
    share = (np.arange(10_000) + 0.5) / 10_000
    spread = np.sqrt(stats.chi2.ppf(share, n - 1) / (n - 1))
    t = mean * math.sqrt(n)
    for end, tail in ((interval.low, 0.975), (interval.high, 0.025)):
        assert stats.norm.cdf(t * spread - end * math.sqrt(n)).mean() == pytest.approx(tail, abs=1e-3)


@pytest.mark.parametrize("effect", [0.0, 0.2, 1.0, 4.0])
@pytest.mark.parametrize("n", [3, 5, 30])
def test_power_is_statsmodels(effect, n):
    assert power.power(effect, n, 0.05, paired=True) == pytest.approx(TTestPower().power(effect, n, 0.05), abs=1e-9)
    assert power.power(-effect, n, 0.01, paired=False) == pytest.approx(
        TTestIndPower().power(effect, n, 0.01), abs=1e-9
    )


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize(("effect", "alpha"), [(0.1, 0.05), (0.7, 0.05 / 36), (3.0, 0.01), (60.0, 0.05)])
def test_the_seeds_needed_are_the_fewest(effect, alpha, paired):
    n = power.seeds_needed(effect, alpha, paired=paired)
    assert power.power(effect, n, alpha, paired=paired) >= 0.8
    assert n == 2 or power.power(effect, n - 1, alpha, paired=paired) < 0.8


def test_no_number_of_seeds_suffices_for_a_negligible_effect():
    assert power.seeds_needed(0.0, 0.05, paired=True) is None
    assert power.seeds_needed(1e-6, 0.05, paired=True) is None


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("n", [3, 5, 20])
@pytest.mark.parametrize("alpha", [0.05, 0.05 / 36])
def test_the_detectable_effect_has_the_power(n, alpha, paired):
    effect = power.detectable(n, alpha, paired=paired)
    assert power.power(effect, n, alpha, paired=paired) == pytest.approx(0.8, abs=1e-3)


@pytest.mark.parametrize(
    ("values", "mean", "sd"),
    [
        ([], None, None),
        ([None, math.nan], None, None),
        ([0.5], 0.5, None),  # one value has no deviation, not one of 0
        ([0.25, None, 0.75], 0.5, math.sqrt((0.0625 + 0.0625) / 1)),
        ([1, 2, 3, 6], 3.0, math.sqrt((4 + 1 + 0 + 9) / 3)),
    ],
)
def test_mean_and_sample_deviation(values, mean, sd):
    assert mean_sd(values) == (mean, pytest.approx(sd) if sd is not None else None)


@pytest.mark.parametrize("alpha", [0.05, 0.01, 0.1])
@pytest.mark.parametrize("rows", [3, 6, 8, 12, 500])
def test_one_row_less_is_not_significant(rows, alpha):
    p_of = {k: stats.binomtest(k, k, 0.5).pvalue for k in range(1, rows + 1)}  # all discordant rows favour one model
    significant = [k for k, p in p_of.items() if p < alpha]
    smallest = power.smallest_difference(rows, alpha)
    assert smallest == (pytest.approx(min(significant) / rows) if significant else None)


@pytest.mark.parametrize("rows", [3, 12, 200])
def test_the_smallest_correlation_has_p_of_alpha(rows):
    smallest = power.smallest_correlation(rows)
    assert smallest is not None
    rng = np.random.default_rng(rows)
    x, noise = rng.standard_normal((2, rows))
    x -= x.mean()
    noise -= noise.mean()
    noise -= x * (noise @ x) / (x @ x)  # uncorrelated
    y = smallest * x / np.linalg.norm(x) + np.sqrt(1 - smallest**2) * noise / np.linalg.norm(noise)
    assert stats.pearsonr(x, y).pvalue == pytest.approx(0.05, rel=1e-6)
    assert power.smallest_correlation(2) is None


def dominated(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return other[0] >= one[0] and other[1] >= one[1] and other != one


@pytest.mark.parametrize("seed", range(20))
def test_no_point_of_the_front_is_dominated_and_all_others_are(seed: int) -> None:
    chance = random.Random(seed)
    points = [(chance.randrange(5), chance.randrange(5)) for _ in range(chance.randrange(12))]
    on_front = front(points)
    expected = {at for at, one in enumerate(points) if not any(dominated(one, other) for other in points)}
    assert set(on_front) == expected and len(on_front) == len(expected)
    assert [points[at][0] for at in on_front] == sorted(points[at][0] for at in on_front)

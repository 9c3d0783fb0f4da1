"""Rank correlations that do not mix tasks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from isoviz.statistics.rank_correlation import RESAMPLES, rank_correlation


@pytest.mark.parametrize("size", [5, 12])
def test_one_task_is_scipys_correlation(size):
    rng = np.random.default_rng(size)
    x, y = rng.normal(size=size), rng.integers(0, 4, size=size).astype(float)  # ties in one of them
    correlation = rank_correlation(x, y)
    assert correlation.estimate == pytest.approx(stats.spearmanr(x, y).statistic)
    assert (correlation.points, correlation.tasks) == (size, 1)
    p = stats.permutation_test(
        (y,),
        lambda other: abs(stats.spearmanr(x, other).statistic),
        permutation_type="pairings",
        n_resamples=1000,
        alternative="greater",
    ).pvalue
    assert correlation.p == pytest.approx(p, abs=1e-9 if size == 5 else 0.06)


def test_the_bootstrap_matches_scipys_correlation_of_each_resample():
    rng = np.random.default_rng(3)
    x, y = rng.integers(0, 6, size=10).astype(float), rng.normal(size=10)
    draws = np.random.default_rng(0).integers(0, 10, size=(RESAMPLES, 10))
    ends = np.quantile([stats.spearmanr(x[draw], y[draw]).statistic for draw in draws], [0.025, 0.975])
    assert rank_correlation(x, y).interval == pytest.approx(tuple(ends))


def test_one_small_task_is_tested_exactly():
    # of 5! orders two have |ρ| = 1
    assert rank_correlation([1, 2, 3, 4, 5], [1, 2, 3, 4, 5]).p == pytest.approx(2 / 120)
    assert rank_correlation([1, 2, 3], [1, 2, 3]).p is None
    assert rank_correlation([1, 2, 3, 4, 5], [1, 2, 3, 4, 5]).interval is None  # seven points for an interval


def test_simpsons_trap():
    """Within each task the score falls as isotropy rises; mixed, both rise from task to task."""
    rng = np.random.default_rng(0)
    x = np.concatenate([level + np.linspace(0, 1, 8) for level in (0, 5, 10)])
    y = np.concatenate([level - np.linspace(0, 1, 8) + 0.2 * rng.normal(size=8) for level in (0, 5, 10)])
    tasks = np.repeat(["one", "two", "three"], 8).tolist()
    correlation = rank_correlation(x, y, tasks)
    assert correlation.mixed > 0.7
    assert -1 < correlation.estimate < -0.7
    assert correlation.p < 0.001
    assert correlation.interval.high < -0.5
    assert set(correlation.by_task) == {"one", "two", "three"}


def test_levels_of_tasks_alone_are_no_evidence():
    """Unrelated within tasks: a pooled test must not find the tasks' own levels."""
    rng = np.random.default_rng(1)
    names = np.repeat(np.arange(4), 6)
    p = [
        rank_correlation(names * 9 + rng.normal(size=24), names * 9 + rng.normal(size=24), names.tolist()).p
        for _ in range(40)
    ]
    assert np.mean(np.array(p) < 0.05) < 0.2


def test_a_perfect_order_has_no_interval():
    """Each draw from it is in perfect order too."""
    assert rank_correlation(range(9), range(9)).interval is None


def test_uninformative_tasks_are_left_out_and_named():
    x, y, tasks = [1, 2, 3, 4, 1, 2, 1, 1, 1], [4, 3, 2, 1, 5, 6, 1, 2, 3], list("aaaabbccc")
    correlation = rank_correlation(x, y, tasks)
    assert correlation.by_task == {"a": pytest.approx(-1.0), "b": None, "c": None}  # two points; x does not vary
    assert (correlation.points, correlation.tasks, correlation.estimate) == (4, 1, pytest.approx(-1.0))
    assert rank_correlation([1, 1], [2, 3]).estimate is None

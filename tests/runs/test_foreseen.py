"""The difference that is foreseen is found as often as is said."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from isoviz.runs.comparisons.comparing import smallest_difference


def test_four_in_five_experiments_find_the_difference() -> None:
    generator = np.random.default_rng(0)
    found = []
    for _ in range(600):
        earlier = generator.normal(size=(40, 5)) * 0.02 + generator.normal(
            size=(40, 1)
        )  # settings differ, their spread is one
        foreseen = smallest_difference(earlier.tolist(), seeds=5)
        assert foreseen is not None and foreseen[1] == 200
        one, other = generator.normal(size=(2, 5)) * 0.02
        found.append(stats.ttest_ind(one + foreseen[0], other).pvalue < 0.05)
    assert np.mean(found) == pytest.approx(0.8, abs=0.05)


def test_without_spread_nothing_is_foreseen() -> None:
    assert smallest_difference([[0.5, 0.6, 0.7, 0.8, 0.9]], seeds=1) is None
    assert smallest_difference([[0.5], [0.7]], seeds=5) is None
    assert smallest_difference([[0.5, 0.6], [0.7, 0.6]], seeds=5) is None

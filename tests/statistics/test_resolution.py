"""The smallest effect that a number of validation rows can show, against scipy's exact tests."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from isoviz.statistics import resolution


@pytest.mark.parametrize("alpha", [0.05, 0.01, 0.1])
@pytest.mark.parametrize("rows", [3, 6, 8, 12, 500])
def test_one_row_less_is_not_significant(rows: int, alpha: float) -> None:
    p_of = {k: stats.binomtest(k, k, 0.5).pvalue for k in range(1, rows + 1)}  # all discordant rows favour one model
    significant = [k for k, p in p_of.items() if p < alpha]
    smallest = resolution.smallest_difference(rows, alpha)
    assert smallest == (pytest.approx(min(significant) / rows) if significant else None)


@pytest.mark.parametrize("rows", [3, 12, 200])
def test_the_smallest_correlation_has_p_of_alpha(rows: int) -> None:
    smallest = resolution.smallest_correlation(rows)
    assert smallest is not None
    rng = np.random.default_rng(rows)
    x, noise = rng.standard_normal((2, rows))
    x -= x.mean()
    noise -= noise.mean()
    noise -= x * (noise @ x) / (x @ x)  # uncorrelated
    y = smallest * x / np.linalg.norm(x) + np.sqrt(1 - smallest**2) * noise / np.linalg.norm(noise)
    assert stats.pearsonr(x, y).pvalue == pytest.approx(0.05, rel=1e-6)
    assert resolution.smallest_correlation(2) is None

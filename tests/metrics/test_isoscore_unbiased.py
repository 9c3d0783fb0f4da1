"""The distribution-free estimator against its U-statistics, and on the case of known truth."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from isoviz.metrics import UndefinedWarning, isoscore, isoscore_unbiased, istar_unbiased_penalty

TRUTH = 0.86734  # of the 768-d diagonal covariance {10, 6, 4, 4, 1, ..., 1}


def diagonal_cloud(n, seed, heavy_tails):
    rng = np.random.default_rng(seed)
    spread = np.sqrt(np.array([10.0, 6.0, 4.0, 4.0] + [1.0] * 764))
    cloud = rng.normal(size=(n, 768)) * spread
    return cloud / np.sqrt(rng.chisquare(5, size=(n, 1)) / 5) if heavy_tails else cloud


@pytest.mark.filterwarnings("ignore::isoviz.metrics.SmallSampleWarning")
@pytest.mark.parametrize(
    "n, heavy_tails, plug_in, tolerance",
    # tolerance: three standard errors of the mean of 30 draws, from the table's ± over 30 draws (0.040, 0.069, ...)
    [(64, False, 0.074, 0.022), (64, True, 0.039, 0.038), (256, False, 0.239, 0.010), (256, True, 0.134, 0.017)],
)
def test_the_truth_is_recovered_where_the_plain_score_collapses(n, heavy_tails, plug_in, tolerance):
    draws = [diagonal_cloud(n, seed, heavy_tails) for seed in range(30)]
    estimates = [isoscore_unbiased(cloud) for cloud in draws]
    assert np.mean(estimates) == pytest.approx(TRUTH, abs=tolerance)
    assert np.std(estimates) < 2 * tolerance * np.sqrt(30) / 3
    assert np.mean([isoscore(cloud) for cloud in draws]) == pytest.approx(plug_in, abs=0.01)


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy, lambda x: torch.from_numpy(x).float()])
def test_orthogonal_differences_leave_nothing_to_estimate(kind):
    """Every product of disjoint differences is zero, U = 0; round-off must not turn that into 1e16."""
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
    with pytest.warns(UndefinedWarning, match="the 6 points differ in mutually orthogonal directions"):
        assert np.isnan(float(isoscore_unbiased(kind(turn))))
    assert istar_unbiased_penalty(torch.from_numpy(turn)).item() == 0.0

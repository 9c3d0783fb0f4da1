"""IsoScore, IsoScore* and the unbiased score in every number type, at any scale, and where the truth is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reference_clouds import REFERENCE_CLOUDS, isoscore_by_eigenvalues, spread_cloud

from isoviz.metrics import (
    UndefinedWarning,
    isoscore,
    isoscore_from_covariance,
    isoscore_star,
    isoscore_unbiased,
    istar_unbiased_penalty,
)

pytestmark = pytest.mark.filterwarnings("ignore::isoviz.metrics.SmallSampleWarning")


clouds = pytest.mark.parametrize("cloud", REFERENCE_CLOUDS.values(), ids=REFERENCE_CLOUDS.keys())


@clouds
def test_isoscore_star_is_the_eigenvalue_route(cloud):
    d = cloud.shape[1]
    for cov in (np.eye(d), np.cov(spread_cloud(100, d, 20).T), np.ones((d, d)) * 0.3):
        for zeta in (0.0, 0.2, 0.8, 1.0):
            expected = isoscore_by_eigenvalues((1 - zeta) * np.cov(cloud.T) + zeta * cov)
            assert isoscore_star(cloud, cov, zeta) == pytest.approx(expected, abs=1e-10)
            tensor = isoscore_star(torch.from_numpy(cloud), torch.from_numpy(cov), zeta)
            assert tensor.item() == pytest.approx(expected, abs=1e-10)


def test_zeta_weighs_the_shrinkage_matrix():
    line = np.outer(np.linspace(-1, 1, 50), np.ones(8))
    towards_identity = isoscore_star(line, np.eye(8), 0.9)
    assert towards_identity > 0.3 > isoscore_star(line, np.eye(8), 0.1)
    assert isoscore_star(line, np.eye(8), 1.0) == pytest.approx(1.0)
    assert isoscore_star(line, np.eye(8), 0.0) == pytest.approx(isoscore(line), abs=1e-12)


def test_float32_keeps_seven_digits_far_from_the_origin():
    rng = np.random.default_rng(0)
    cloud = (rng.normal(size=(4096, 64)) * np.array([50.0] + [1.0] * 63) + 1000.0).astype(np.float32)
    exact = isoscore(cloud)
    for score in (isoscore(torch.from_numpy(cloud)), isoscore(torch.from_numpy(cloud)[:, ::2])):
        assert score.dtype == torch.float32
    assert isoscore(torch.from_numpy(cloud)).item() == pytest.approx(exact, rel=1e-5)
    assert exact == pytest.approx(isoscore(cloud.astype(np.float64)), rel=1e-12)


@pytest.mark.parametrize("unit", [1e-10, 1e6])
def test_any_unit_of_length_in_float32(unit):
    cloud = torch.randn(300, 16, generator=torch.Generator().manual_seed(0)).requires_grad_()
    isoscore(cloud).backward()
    scaled = (cloud.detach() * unit).requires_grad_()
    score = isoscore(scaled)
    score.backward()
    assert score.item() == pytest.approx(isoscore(cloud).item(), rel=1e-5)
    torch.testing.assert_close(scaled.grad * unit, cloud.grad, rtol=1e-3, atol=1e-8)


def test_a_collapsed_batch_has_the_score_of_its_shrinkage_matrix():
    collapsed = np.full((9, 3), 0.1)
    assert isoscore_star(collapsed, np.eye(3), 0.5) == pytest.approx(1.0)
    with pytest.warns(UndefinedWarning, match="all points are equal"):
        assert np.isnan(isoscore_star(collapsed, np.eye(3), 0.0))
    with pytest.warns(UndefinedWarning, match="all points are equal"):
        assert isoscore_star(torch.from_numpy(collapsed), np.eye(3), 0.0).isnan()
    with pytest.warns(UndefinedWarning, match="the matrix is zero"):
        assert np.isnan(isoscore_from_covariance(np.zeros((3, 3))))


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

"""IsoScore, IsoScore* and the score of a covariance against eigenvalues and against the authors' package."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reference_clouds import REFERENCE_CLOUDS, isoscore_by_eigenvalues, spread_cloud

from isoviz.metrics import UndefinedWarning, isoscore, isoscore_from_covariance, isoscore_star

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

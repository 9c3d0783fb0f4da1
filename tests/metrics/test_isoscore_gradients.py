"""The hand-written backward against autograd through the eigenvalues, and against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reference_clouds import spread_cloud

from isoviz.metrics import (
    Shrinkage,
    isoscore,
    isoscore_from_covariance,
    isoscore_star,
    isoscore_unbiased,
    istar_penalty,
    istar_unbiased_penalty,
    participation_ratio,
)

pytestmark = pytest.mark.filterwarnings("ignore::isoviz.metrics.SmallSampleWarning")
shapes = pytest.mark.parametrize("n, d", [(90, 20), (20, 20), (14, 20), (8, 20), (700, 300)])


def score_by_eigvalsh(points, shrinkage, zeta):
    centred = points - points.mean(0)
    values = torch.linalg.eigvalsh((1 - zeta) * centred.T @ centred / (len(points) - 1) + zeta * shrinkage)
    return (values.sum() ** 2 / values.square().sum() - 1) / (points.shape[1] - 1)


def gradient(score, points):
    leaf = points.clone().requires_grad_()
    (grad,) = torch.autograd.grad(score(leaf), leaf)
    return grad


@shapes
@pytest.mark.parametrize("zeta", [0.0, 0.2, 0.8])
@pytest.mark.parametrize("shrinkage", ["identity", "sample"])
def test_isoscore_star_against_autograd_through_eigvalsh(n, d, zeta, shrinkage):
    points = torch.from_numpy(spread_cloud(n, d))
    cov = torch.eye(d, dtype=torch.float64)
    if shrinkage == "sample":
        cov = torch.from_numpy(np.cov(spread_cloud(200, d, 1).T))
    expected = gradient(lambda x: score_by_eigvalsh(x, cov, zeta), points)
    for score in (lambda x: isoscore_star(x, cov, zeta), lambda x: 1 - istar_penalty(x, Shrinkage(cov), zeta)):
        error = (gradient(score, points) - expected).norm() / expected.norm()
        assert error < 1e-8


def test_repeated_eigenvalues_of_the_sample_itself():
    points = torch.cat([torch.eye(9, dtype=torch.float64) * 3, -torch.eye(9, dtype=torch.float64) * 3])
    # at the maximum of the score its gradient is zero, and the eigenvectors are arbitrary
    assert gradient(isoscore, points).abs().max() < 1e-15
    points[0, 0] = 4.0
    expected = gradient(lambda x: score_by_eigvalsh(x, torch.eye(9, dtype=torch.float64), 0.0), points)
    assert (gradient(isoscore, points) - expected).norm() < 1e-8 * expected.norm()


@pytest.mark.parametrize("n, d", [(9, 4), (4, 9), (7, 9)])
@pytest.mark.parametrize(
    "score",
    [
        isoscore,
        isoscore_unbiased,
        participation_ratio,
        istar_unbiased_penalty,
        lambda x: isoscore_star(x, np.diag(np.arange(1.0, x.shape[1] + 1)), 0.3),
        lambda x: istar_penalty(x, torch.eye(x.shape[1], dtype=torch.float64), 0.7),
    ],
)
def test_against_finite_differences(n, d, score):
    points = torch.from_numpy(np.random.default_rng(0).normal(size=(n, d)) * np.arange(1, d + 1)).requires_grad_()
    assert torch.autograd.gradcheck(score, (points,))


def test_the_score_of_a_covariance_against_finite_differences():
    cov = torch.from_numpy(np.cov(spread_cloud(30, 5).T)).requires_grad_()
    assert torch.autograd.gradcheck(isoscore_from_covariance, (cov,))


@pytest.mark.parametrize("n, d", [(600, 48), (16, 48)])
def test_float32_gradients_with_a_rogue_dimension(n, d):
    points = torch.from_numpy(spread_cloud(n, d)) * torch.tensor([100.0] + [1.0] * (d - 1))
    for score in (isoscore, isoscore_unbiased, lambda x: isoscore_star(x, np.eye(d), 0.2)):
        exact = gradient(score, points)
        single = gradient(score, points.float())
        assert single.dtype == torch.float32
        assert (single.double() - exact).norm() < 1e-4 * exact.norm()

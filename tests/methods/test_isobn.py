"""IsoBN against plain loops and hand-made sequences (methods.md §4)."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from isoviz.methods import get
from isoviz.methods.isobn import isobn_scale


def attached(width, **params):
    kind = get("isobn")
    method = kind(kind.Params(**params))
    method.attach(SimpleNamespace(head_width=width))
    return method


def reps(points):
    return SimpleNamespace(pooled=points)


def loop_scale(cov, beta, eps, mean_of_squares=False, std=None):
    """Equations 4-7 one number at a time."""
    d = len(cov)
    sigma = [cov[i][i] ** 0.5 for i in range(d)] if std is None else list(std)
    theta = []
    for i in range(d):
        gamma = sum(max(-1.0, min(1.0, cov[i][j] / (sigma[i] * sigma[j]))) ** 2 for j in range(d))
        if mean_of_squares:
            gamma /= d
        theta.append((sigma[i] * gamma + eps) ** -beta)
    kept = sum(s * s for s in sigma) / sum(s * s * t * t for s, t in zip(sigma, theta, strict=True))
    return np.array([t * kept**0.5 for t in theta])


def cloud(n=50, d=5, seed=0):
    generator = np.random.default_rng(seed)
    return generator.normal(size=(n, d)) @ generator.normal(size=(d, d)) + 3


@pytest.mark.parametrize("form", ["paper", "code"])
@pytest.mark.parametrize("beta", [0.0, 0.25, 0.5, 1.0])
def test_scale_against_the_loop(form, beta):
    cov = np.cov(cloud().T, bias=True)
    std = np.sqrt(np.diag(cov))
    found = isobn_scale(torch.tensor(cov), torch.tensor(std), beta, 0.1, form).numpy()
    np.testing.assert_allclose(found, loop_scale(cov, beta, 0.1, form == "code"), rtol=1e-12)


def test_scale_keeps_the_total_variance():
    cov = np.cov(cloud().T, bias=True)
    std = np.sqrt(np.diag(cov))
    scale = isobn_scale(torch.tensor(cov), torch.tensor(std), 0.7, 0.1).numpy()
    assert (scale**2 * std**2).sum() == pytest.approx((std**2).sum(), rel=1e-12)


def test_first_batch_uses_that_batchs_statistics():
    # bias correction: after one batch the moving covariance is the batch's own, whatever the momentum
    points = cloud()
    method = attached(5)
    out = method.transform(reps(torch.tensor(points, dtype=torch.float32)), training=True)
    expected = points * loop_scale(np.cov(points.T, bias=True), 0.5, 0.1)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-4)


def test_moving_statistics_over_three_batches_by_hand():
    batches = [cloud(seed=s) for s in range(3)]
    method = attached(5, momentum=0.25)
    for points in batches:
        method.transform(reps(torch.tensor(points, dtype=torch.float32)), training=True)
    average = np.zeros((5, 5))
    for points in batches:
        average = 0.75 * average + 0.25 * np.cov(points.T, bias=True)
    expected = loop_scale(average / (1 - 0.75**3), 0.5, 0.1)
    np.testing.assert_allclose(method.scale().numpy(), expected, rtol=1e-4)


def test_code_form_averages_sigma_and_covariance_apart_and_uncorrected():
    batches = [cloud(seed=s) for s in range(2)]
    method = attached(5, form="code", eps=1e-3)
    average, std = np.zeros((5, 5)), np.zeros(5)
    for points in batches:
        method.transform(reps(torch.tensor(points, dtype=torch.float32)), training=True)
        cov = np.cov(points.T, bias=True)
        average = 0.95 * average + 0.05 * cov
        std = 0.95 * std + 0.05 * np.sqrt(np.diag(cov))
    expected = loop_scale(average, 0.5, 1e-3, mean_of_squares=True, std=std)
    np.testing.assert_allclose(method.scale().numpy(), expected, rtol=1e-4)


def test_evaluation_before_training_changes_nothing():
    points = torch.randn(4, 5)
    assert torch.equal(attached(5).transform(reps(points), training=False), points)


def test_evaluation_moves_no_statistics():
    method = attached(5)
    method.transform(reps(torch.randn(8, 5)), training=True)
    before = method.state.covariance.clone()
    method.transform(reps(torch.randn(8, 5)), training=False)
    assert torch.equal(method.state.covariance, before)


def test_dimension_without_variance_harms_nobody():
    points = torch.tensor(cloud(), dtype=torch.float32)
    points[:, 2] = 1.5
    out = attached(5).transform(reps(points), training=True)
    assert torch.isfinite(out).all()
    without = [0, 1, 3, 4]
    cov = np.cov(points[:, without].T.numpy(), bias=True)
    np.testing.assert_allclose(
        out[:, without].numpy(), points[:, without].numpy() * loop_scale(cov, 0.5, 0.1), rtol=1e-3
    )


def test_all_rows_equal_and_a_single_row():
    method = attached(3)
    assert torch.isfinite(method.transform(reps(torch.ones(4, 3)), training=True)).all()
    single = attached(3)
    points = torch.randn(1, 3)
    assert torch.equal(single.transform(reps(points), training=True), points)


def test_scale_is_a_constant_to_the_gradient():
    points = torch.randn(8, 5, requires_grad=True)
    method = attached(5)
    method.transform(reps(points), training=True).sum().backward()
    torch.testing.assert_close(points.grad, method.scale().expand(8, 5))


def test_half_precision_input_keeps_float32_statistics():
    method = attached(5)
    out = method.transform(reps(torch.randn(16, 5, dtype=torch.bfloat16)), training=True)
    assert out.dtype == torch.bfloat16
    assert method.state.covariance.dtype == torch.float32

"""Batch normalisation against plain numpy and hand-made sequences."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

from tests.methods import attaching
from tests.methods.attaching import reps

attached = partial(attaching.attached, "batchnorm", 5)


def cloud(n=50, d=5, seed=0):
    generator = np.random.default_rng(seed)
    return generator.normal(size=(n, d)) * np.arange(1, d + 1) + generator.normal(size=d) * 3


def plain(points, mean, variance):
    return (points - mean) / np.sqrt(variance + 1e-5)


def test_training_uses_the_batchs_own_population_statistics():
    points = cloud()
    out = attached().transform(reps(points), training=True)
    mean = [sum(column) / len(column) for column in points.T]
    variance = [sum((x - m) ** 2 for x in column) / len(column) for column, m in zip(points.T, mean, strict=True)]
    np.testing.assert_allclose(out.numpy(), plain(points, np.array(mean), np.array(variance)), rtol=1e-4, atol=1e-5)


def three_batches(method, batches):
    for points in batches:
        method.transform(reps(points), training=True)


@pytest.mark.parametrize("correct", [True, False])
def test_evaluation_after_three_batches_by_hand(correct):
    batches = [cloud(seed=s) for s in range(3)]
    method = attached(momentum=0.25, bias_correction=correct)
    three_batches(method, batches)
    mean, variance = np.zeros(5), np.zeros(5) if correct else np.ones(5)
    for points in batches:
        mean = 0.75 * mean + 0.25 * points.mean(axis=0)
        variance = 0.75 * variance + 0.25 * points.var(axis=0)
    if correct:
        mean, variance = mean / (1 - 0.75**3), variance / (1 - 0.75**3)
    new_batch = cloud(seed=9)
    out = method.transform(reps(new_batch), training=False)
    np.testing.assert_allclose(out.numpy(), plain(new_batch, mean, variance), rtol=1e-4, atol=1e-5)


def test_moving_statistics_in_training_are_constants():
    batches = [cloud(seed=s) for s in range(2)]
    method = attached(statistics="moving", momentum=0.5)
    method.transform(reps(batches[0]), training=True)
    points = torch.tensor(batches[1], dtype=torch.float32, requires_grad=True)
    out = method.transform(reps(points), training=True)
    mean = (batches[0].mean(0) + 2 * batches[1].mean(0)) / 3  # weights 1/4 and 1/2 over 3/4
    variance = (batches[0].var(0) + 2 * batches[1].var(0)) / 3
    np.testing.assert_allclose(out.detach().numpy(), plain(batches[1], mean, variance), rtol=1e-4, atol=1e-5)
    out.sum().backward()
    slope = torch.tensor(1 / np.sqrt(variance + 1e-5), dtype=torch.float32)
    torch.testing.assert_close(points.grad, slope.expand(50, 5))


def test_constant_dimension_gives_zero_and_noise_is_scaled_by_at_most_316():
    points = cloud()
    points[:, 1] = 0.1
    points[:, 2] = 5e-8 * np.sign(np.arange(50) - 24.5)  # what a saturated tanh leaves
    method = attached()
    for out in (method.transform(reps(points), True), method.transform(reps(points), False)):
        assert torch.isfinite(out).all()
        assert float(out[:, 1].abs().max()) < 1e-4  # 316 times the rounding of a mean of 0.1
        assert float(out[:, 2].abs().max()) == pytest.approx(5e-8 / 1e-5**0.5, rel=1e-2)
    assert torch.isfinite(attaching.attached("batchnorm", 3).transform(reps(torch.ones(4, 3)), training=True)).all()

"""Batch normalisation against a loop and against the framework's layer."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from isoviz import metrics
from isoviz.posthoc import batch_norm
from tests.posthoc.clouds import cloud, with_constant


def test_against_the_loop():
    train, dev = cloud(), cloud(6, seed=1)
    image = batch_norm().fit(train).transform(dev)
    for i, column in enumerate(train.T):
        mean = sum(column) / len(column)
        variance = sum((value - mean) ** 2 for value in column) / len(column)
        np.testing.assert_allclose(image[:, i], (dev[:, i] - mean) / (variance + 1e-5) ** 0.5, rtol=1e-11)


def test_against_the_frameworks_layer():
    train = torch.tensor(cloud())
    layer = torch.nn.BatchNorm1d(8, affine=False, dtype=torch.float64)  # in training mode: divisor n
    torch.testing.assert_close(batch_norm().fit_transform(train), layer(train), rtol=1e-10, atol=1e-10)


def test_without_a_floor_the_covariance_is_the_correlation():
    train = cloud()
    image = batch_norm(eps=0).fit_transform(train)
    np.testing.assert_allclose(np.cov(image.T, bias=True), np.corrcoef(train.T), atol=1e-12)
    np.testing.assert_allclose(metrics.abs_correlation(image), metrics.abs_correlation(train), atol=1e-12)


@pytest.mark.parametrize("eps", [0, 1e-5])
def test_a_constant_dimension(eps):
    train = with_constant(cloud())
    transform = batch_norm(eps=eps).fit(train)
    np.testing.assert_array_equal(transform.transform(train)[:, 2], 0)
    assert transform.tiny_dimensions == 1
    dev = train + 1.0
    assert np.isfinite(transform.transform(dev)).all()
    if eps == 0:
        np.testing.assert_array_equal(transform.transform(dev)[:, 2], 0)


def test_tiny_dimensions_are_counted_against_the_median():
    train = np.random.default_rng(0).normal(size=(200, 6)) * np.array([1, 1, 1, 1, 1e-8, 1e-5])
    transform = batch_norm().fit(train)
    assert transform.tiny_dimensions == 1
    image = transform.transform(train)
    # the floor under the root holds noise down: 1e-8 becomes 1e-8/√1e-5, not 1
    assert image[:, 4].std() == pytest.approx(1e-8 / np.sqrt(1e-5), rel=0.1)
    assert batch_norm(eps=0).fit_transform(train)[:, 4].std() == pytest.approx(1, rel=1e-9)

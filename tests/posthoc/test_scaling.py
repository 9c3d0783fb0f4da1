"""What rotates, shifts or scales dimensions: by hand, against loops, and against the methods that run inside training."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.stats import kstest

from isoviz import methods, metrics, posthoc
from isoviz.posthoc import batch_norm, isobn
from isoviz.posthoc.rigid_motions import rotation_matrix
from tests.posthoc.clouds import cloud, isobn_by_loops

# ------------------------------------------------------------------------------------------------------ rigid motions

SHAPE = (metrics.isoscore, metrics.isoscore_unbiased, metrics.participation_ratio, metrics.effective_rank)


@pytest.mark.parametrize("make", [posthoc.rotation, posthoc.shift, posthoc.scale])
def test_the_shape_of_the_cloud_stays(make):
    train = cloud(mean=1.0)
    image = make().fit_transform(train)
    for measure in SHAPE:
        assert measure(image) == pytest.approx(measure(train), rel=1e-10)
    np.testing.assert_allclose(metrics.explained_variance(image), metrics.explained_variance(train), atol=1e-12)


def test_the_maps_by_hand():
    train = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 4.0], [2.0, 4.0]])  # σ = (1, 2), their root mean square √2.5
    np.testing.assert_allclose(posthoc.shift(by=2).fit_transform(train), train + 2 * np.sqrt(2.5))
    np.testing.assert_array_equal(posthoc.scale(factor=0.5).fit_transform(train), train / 2)
    matrix = rotation_matrix(2, 7)
    for point, image in zip(train, posthoc.rotation(seed=7).fit(train).transform(train), strict=True):
        np.testing.assert_allclose(image, [sum(point[i] * matrix[i, j] for i in range(2)) for j in range(2)])


def test_the_rotation_is_orthogonal_seeded_and_evenly_drawn():
    matrix = rotation_matrix(40, 3)
    np.testing.assert_allclose(matrix.T @ matrix, np.eye(40), atol=1e-13)
    np.testing.assert_array_equal(matrix, rotation_matrix(40, 3))
    assert np.abs(matrix - rotation_matrix(40, 4)).max() > 0.1
    angles = [np.arctan2(*rotation_matrix(2, seed)[0]) for seed in range(400)]
    assert kstest((np.array(angles) / (2 * np.pi)) % 1, "uniform").pvalue > 0.01


# ------------------------------------------------------------------------------------------------------ batch normalisation


def test_batch_norm_against_the_frameworks_layer():
    train = torch.tensor(cloud())
    layer = torch.nn.BatchNorm1d(8, affine=False, dtype=torch.float64)  # in training mode: divisor n
    torch.testing.assert_close(batch_norm().fit_transform(train), layer(train), rtol=1e-10, atol=1e-10)


def test_without_a_floor_the_covariance_is_the_correlation():
    train = cloud()
    image = batch_norm(eps=0).fit_transform(train)
    np.testing.assert_allclose(np.cov(image.T, bias=True), np.corrcoef(train.T), atol=1e-12)
    np.testing.assert_allclose(metrics.abs_correlation(image), metrics.abs_correlation(train), atol=1e-12)


def test_tiny_dimensions_are_counted_against_the_median():
    train = np.random.default_rng(0).normal(size=(200, 6)) * np.array([1, 1, 1, 1, 1e-8, 1e-5])
    transform = batch_norm().fit(train)
    assert transform.tiny_dimensions == 1
    image = transform.transform(train)
    # the floor under the root holds noise down: 1e-8 becomes 1e-8/√1e-5, not 1
    assert image[:, 4].std() == pytest.approx(1e-8 / np.sqrt(1e-5), rel=0.1)
    assert batch_norm(eps=0).fit_transform(train)[:, 4].std() == pytest.approx(1, rel=1e-9)


# ------------------------------------------------------------------------------------------------------ IsoBN


@pytest.mark.parametrize("form, eps", [("paper", 0.1), ("code", 1e-3)])
@pytest.mark.parametrize("beta", [0.25, 0.5, 1.0])
def test_isobn_against_the_loop_with_the_forms_own_floor(form, eps, beta):
    train, dev = cloud(), cloud(6, seed=1)
    cov = np.cov(train.T, bias=True)
    transform = isobn(beta=beta, form=form).fit(train)
    np.testing.assert_allclose(transform.transform(dev), dev * isobn_by_loops(cov, beta, eps, form), rtol=1e-11)
    fitted = isobn(beta=beta, form=form, eps=0.7).fit(train)
    np.testing.assert_allclose(fitted.transform(dev), dev * isobn_by_loops(cov, beta, 0.7, form), rtol=1e-11)


def test_the_same_image_as_the_training_method_after_one_batch():
    train = cloud().astype(np.float32)
    kind = methods.get("isobn")
    method = kind(kind.Params(momentum=1.0))
    method.attach(SimpleNamespace(head_width=8))
    trained = method.transform(SimpleNamespace(pooled=torch.from_numpy(train)), training=True)
    ours = isobn().fit_transform(torch.from_numpy(train))
    torch.testing.assert_close(ours, trained, rtol=1e-5, atol=1e-5)

"""Rotation, shift and scale: which measures see them and which do not, and the maps themselves by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

from isoviz import metrics, posthoc
from isoviz.errors import InputError
from isoviz.posthoc.rigid_motions import rotation_matrix
from tests.posthoc.clouds import cloud

SHAPE = (metrics.isoscore, metrics.isoscore_unbiased, metrics.participation_ratio, metrics.effective_rank)


@pytest.mark.parametrize("make", [posthoc.rotation, posthoc.shift, posthoc.scale])
def test_the_shape_of_the_cloud_stays(make):
    train = cloud(mean=1.0)
    image = make().fit_transform(train)
    for measure in SHAPE:
        assert measure(image) == pytest.approx(measure(train), rel=1e-10)
    np.testing.assert_allclose(metrics.explained_variance(image), metrics.explained_variance(train), atol=1e-12)


def test_only_the_shift_moves_cosines():
    train = cloud(mean=0.0)
    before = metrics.mean_cosine(train)
    assert metrics.mean_cosine(posthoc.rotation(seed=5).fit_transform(train)) == pytest.approx(before, abs=1e-12)
    assert metrics.mean_cosine(posthoc.scale(factor=100).fit_transform(train)) == pytest.approx(before, abs=1e-12)
    assert metrics.mean_cosine(posthoc.shift(by=5).fit_transform(train)) > 0.9


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


def test_bounds():
    with pytest.raises(InputError, match="by: .*less than or equal to 100"):
        posthoc.shift(by=101)
    with pytest.raises(InputError, match="factor: .*greater than"):
        posthoc.scale(factor=0)

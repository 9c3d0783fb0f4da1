"""Explained variance and effective rank against singular values."""

from __future__ import annotations

import numpy as np
import pytest
from reference_clouds import REFERENCE_CLOUDS, spread_cloud

from isoviz.metrics import explained_variance

pytestmark = pytest.mark.filterwarnings("ignore::isoviz.metrics.SmallSampleWarning")
clouds = pytest.mark.parametrize("cloud", REFERENCE_CLOUDS.values(), ids=REFERENCE_CLOUDS.keys())


@clouds
@pytest.mark.parametrize("centre", [True, False])
def test_explained_variance_is_the_share_of_squared_singular_values(cloud, centre):
    values = np.linalg.svd(cloud - cloud.mean(0) if centre else cloud, compute_uv=False) ** 2
    expected = [values[:k].sum() / values.sum() for k in range(1, min(cloud.shape) + 1)]
    np.testing.assert_allclose(explained_variance(cloud, centre=centre), expected, atol=1e-11)


@clouds
def test_it_rises_to_exactly_one_and_stays(cloud):
    curve = explained_variance(cloud, k=100)
    assert curve.shape == (100,)
    assert np.all(np.diff(curve) >= 0)
    rank = np.linalg.matrix_rank(cloud - cloud.mean(0))
    assert np.all(curve[rank - 1 :] == 1.0)
    assert rank == 1 or curve[rank - 2] < 1.0


def test_k_cuts_the_curve():
    cloud = spread_cloud(30, 8)
    np.testing.assert_array_equal(explained_variance(cloud, k=3), explained_variance(cloud)[:3])
    with pytest.raises(ValueError, match="k must be at least 1, got 0"):
        explained_variance(cloud, k=0)


def test_the_mean_counts_only_without_centring():
    cloud = np.random.default_rng(0).normal(size=(100, 6))
    np.testing.assert_allclose(explained_variance(cloud + 1e4), explained_variance(cloud), atol=1e-10)
    assert explained_variance(cloud + 1e4, k=1, centre=False)[0] > 0.999999

"""Explained variance, RankMe and α-ReQ against singular values, scikit-learn's spectrum and the authors' package."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reference_clouds import ORACLE_CLOUDS, REFERENCE_CLOUDS, spread_cloud, whitened
from sklearn.decomposition import PCA

from isoviz.metrics import alpha_req, describe, explained_variance, rankme

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


def by_singular_values(x):
    """As the paper writes it (equation 1), its ε left out."""
    total = sum(values := np.linalg.svd(x, compute_uv=False))
    return np.exp(-sum(value / total * np.log(value / total) for value in values if value > 1e-12 * total))


@pytest.mark.parametrize("n, d", [(60, 8), (9, 30), (5, 5), (1, 4)])
def test_against_the_singular_values(n, d):
    x = spread_cloud(n, d)
    expected = by_singular_values(x)
    assert isinstance(rankme(x), float) and rankme(x) == pytest.approx(expected, rel=1e-7)
    assert rankme(torch.from_numpy(x)).item() == pytest.approx(expected, rel=1e-7)
    assert rankme(x * 1e200) == pytest.approx(rankme(x), rel=1e-9)


def by_polyfit(x, first, last):
    variances = PCA(svd_solver="full").fit(x).explained_variance_
    ranks = np.arange(first, last + 1)
    return -np.polyfit(np.log(ranks), np.log(variances[first - 1 : last]), 1, w=ranks**-0.5)[0]


@pytest.mark.parametrize(
    "cloud, first, last",
    [
        ("isotropic Gaussian", 1, 6),
        ("I-STAR's diagonal", 11, 100),
        ("low rank", 1, 3),
        ("fewer points than dimensions", 2, 10),
        ("rogue dimension", 1, 8),
        ("two dimensions", 1, 2),
    ],
)
def test_against_scikit_learn_and_numpy(cloud, first, last):
    x = ORACLE_CLOUDS[cloud]
    value = alpha_req(x)
    assert isinstance(value, float) and value == pytest.approx(by_polyfit(x, first, last), rel=1e-8)
    assert alpha_req(torch.from_numpy(x)).item() == pytest.approx(value, rel=1e-12)
    assert describe(x)["alpha_req"] == pytest.approx(value, rel=1e-12)


def decaying(seed, n, d):
    return np.random.default_rng(seed).normal(size=(n, d)) * np.arange(1, d + 1.0) ** -0.7 + 3


@pytest.mark.parametrize(
    "seed, n, d, expected",
    # get_alpha of the authors' package reptrix 0.1.0 on these very clouds; it rounds its weights to float32
    [(0, 400, 120, 1.4880379476384369), (1, 2000, 256, 1.3996438700834308), (2, 300, 112, 1.5651976242925532)],
)
def test_against_the_authors_package(seed, n, d, expected):
    assert alpha_req(decaying(seed, n, d)) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("d", [2, 9, 10, 20, 130, 300])
@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.5])
def test_an_exact_power_law_has_its_exponent(d, exponent):
    x = whitened(2 * d + 3, d) * np.arange(1, d + 1.0) ** (-exponent / 2)
    assert alpha_req(x) == pytest.approx(exponent, abs=1e-9)


def test_only_directions_11_to_100_are_fitted_where_there_are_as_many():
    law = np.arange(1, 141.0) ** -1.0
    x = whitened(300, 140)
    led, cut = law.copy(), law.copy()
    led[:10] *= 50
    cut[100:] /= 50
    assert alpha_req(x * np.sqrt(led)) == pytest.approx(1, abs=1e-9)
    assert alpha_req(x * np.sqrt(cut)) == pytest.approx(1, abs=1e-9)
    led[10], cut[99] = 1.5 * led[10], cut[99] / 1.5
    assert alpha_req(x * np.sqrt(led)) > 1.01 and alpha_req(x * np.sqrt(cut)) > 1.001


def test_with_fewer_directions_a_tenth_is_left_out_at_each_end():
    law = np.arange(1, 31.0) ** -1.0
    law[:3], law[27:] = 50, 1e-9
    assert alpha_req(whitened(90, 30) * np.sqrt(law)) == pytest.approx(1, abs=1e-9)
    law[3] *= 2
    assert alpha_req(whitened(90, 30) * np.sqrt(law)) > 1.1


def test_rounding_errors_of_single_precision_are_no_direction():
    """The entries of a layer-normalised vector add up to 0, in float32 to rounding errors, 1e-14 of the variance."""
    x = np.random.default_rng(0).normal(size=(3000, 64))
    normalised = torch.nn.functional.layer_norm(torch.from_numpy(x).float(), (64,))
    assert alpha_req(normalised) < 0.3
    assert float(alpha_req(normalised)) == pytest.approx(by_polyfit(normalised.double().numpy(), 7, 58), rel=1e-4)


def test_rounding_errors_do_not_decide_whether_an_empty_direction_counts():
    """Below and above the limit of what counts: two processes, or two processors, sum in another order."""
    law = np.arange(1, 17.0) ** -1.0
    x = whitened(222, 16)
    law[15] = 2.0**-39
    below = alpha_req(x * np.sqrt(law))
    law[15] = 2.0**-37
    assert alpha_req(x * np.sqrt(law)) == pytest.approx(below, rel=1e-9) == pytest.approx(1, abs=1e-9)

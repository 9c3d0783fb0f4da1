"""α-ReQ against scikit-learn's spectrum with numpy's weighted fit, the authors' package, and exact power laws."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reference_clouds import ORACLE_CLOUDS, whitened
from sklearn.decomposition import PCA

from isoviz.metrics import alpha_req, describe

pytestmark = pytest.mark.filterwarnings("ignore::isoviz.metrics.SmallSampleWarning")


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


def test_against_the_value_in_the_authors_tests():
    torch.manual_seed(0)
    assert np.allclose(float(alpha_req(torch.randn(1000, 1024))), 0.148936)


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
    assert float(alpha_req(normalised)) == pytest.approx(by_polyfit(normalised.double().numpy(), 7, 57), rel=1e-4)

"""The maximum-likelihood dimension against loops, a package, the gamma distribution behind it, and its traps."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from reference_clouds import ORACLE_CLOUDS, equal_but_for_rounding, equally_far, spread_cloud
from scipy.spatial import cKDTree

from isoviz.metrics import UndefinedWarning, describe, local_dimension, twonn


def by_loops(x, k):
    logs = []
    for i, point in enumerate(x):
        distances = sorted(math.dist(point, other) for j, other in enumerate(x) if j != i)
        logs += [math.log(distances[k - 1] / distances[j]) for j in range(k - 1)]
    return len(logs) / math.fsum(logs)


DISTINCT = [name for name in ORACLE_CLOUDS if name not in ("duplicates", "mean of 10⁴")]


@pytest.mark.parametrize(
    ("cloud", "k"), [(name, k) for name in DISTINCT for k in (2, 10, 11) if len(ORACLE_CLOUDS[name]) > k]
)
def test_against_loops(cloud, k):
    x = ORACLE_CLOUDS[cloud]
    value = local_dimension(x, k)
    assert isinstance(value, float) and value == pytest.approx(by_loops(x, k), rel=1e-10)
    assert local_dimension(torch.from_numpy(x), k).item() == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    "seed, n, d, k, expected",
    # computed with scikit-dimension 0.5.0, MLE().fit(x, n_neighbors=k, comb="mle"), on these very clouds
    [
        (0, 300, 5, 10, 4.996748006929375),
        (0, 300, 5, 20, 4.794887963682109),
        (1, 120, 30, 10, 15.603109523689202),
        (1, 120, 30, 5, 16.375141233908195),
    ],
)
def test_against_a_package(seed, n, d, k, expected):
    x = np.random.default_rng(seed).normal(size=(n, d))
    assert local_dimension(x, k) == pytest.approx(expected, rel=1e-10)


def test_ten_neighbours_are_what_is_recorded():
    x = spread_cloud(60, 5)
    assert local_dimension(x) == local_dimension(x, 10) == describe(x)["local_dimension"]


def test_few_neighbours_do_not_bias_it_where_the_density_is_flat():
    """On a torus, m times a log ratio is Gamma(k − 1): 1/m̂ is unbiased, and the mean of the points' estimates is
    (k − 1)/(k − 2) too high. A flat torus is the product of circles; its curvature hardly shows among 4,000 points."""
    angles = np.random.default_rng(0).uniform(0, 2 * np.pi, size=(4000, 2))
    torus = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
    for k in (2, 3, 5, 10):
        assert local_dimension(torus, k) == pytest.approx(2, rel=0.03)
    distances = cKDTree(torus).query(torus, 6)[0][:, 1:]
    single = 4 / np.log(distances[:, -1:] / distances[:, :-1]).sum(axis=1)
    assert single.mean() == pytest.approx(2 * 4 / 3, rel=0.05)


def test_it_scatters_less_than_twonn_and_reads_lower_in_many_dimensions():
    rng = np.random.default_rng(0)
    clouds = [rng.normal(size=(300, 5)) for _ in range(20)]
    assert np.std([local_dimension(x) for x in clouds]) < 0.5 * np.std([twonn(x) for x in clouds])
    high = rng.normal(size=(400, 60))
    assert local_dimension(high) < twonn(high) < 60


def test_duplicates_count_once_also_within_rounding():
    x = np.random.default_rng(0).normal(size=(80, 20))
    once = local_dimension(x)
    assert local_dimension(np.concatenate([x, x[:50], x[:50]])) == pytest.approx(once, rel=1e-12)
    twins = np.concatenate([x, x[:40] * (1 + 4e-16)])
    assert len(np.unique(twins, axis=0)) > 100
    assert local_dimension(twins) == pytest.approx(once, rel=1e-6)
    assert "local_dimension leaves out 50 copies" in describe(np.concatenate([x, x[:50]]))["warnings"]


def test_the_mean_does_not_blur_the_distances():
    x = np.random.default_rng(0).normal(size=(100, 20))
    assert local_dimension(x + 1e8) == pytest.approx(local_dimension(x), rel=1e-5)


@pytest.mark.parametrize(
    "x, reason",
    [
        (np.zeros((0, 4)), "at least 11 distinct points, got 0"),
        (np.tile(np.eye(4), (9, 1)), "at least 11 distinct points, got 4"),
        (np.eye(20), "of every point are equally far"),
        (equally_far(30, 64), "of every point are equally far"),
        (equal_but_for_rounding(40, 8), "all points are equal"),
    ],
)
def test_undefined(x, reason):
    with pytest.warns(UndefinedWarning, match=reason):
        assert np.isnan(local_dimension(x))


def test_a_single_neighbour_is_refused():
    with pytest.raises(ValueError, match="k must be at least 2, got 1"):
        local_dimension(np.eye(20), k=1)

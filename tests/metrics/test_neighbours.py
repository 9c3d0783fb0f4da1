"""Measures of the nearest neighbours against loops over all pairs, and against other packages."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from reference_clouds import ORACLE_CLOUDS, spread_cloud
from scipy.stats import ortho_group, skew
from sklearn.neighbors import kneighbors_graph

from isoviz import metrics
from isoviz.metrics import describe, hubness, local_dimension, reciprocity, twonn
from isoviz.metrics.sample import Sample


@pytest.mark.parametrize(
    "seed, n, d, discard_fraction, expected",
    # computed with scikit-dimension 0.5.0 on these very clouds
    [
        (0, 300, 5, 0.1, 4.602505517659335),
        (0, 300, 5, 0.3, 4.646424528560264),
        (1, 120, 30, 0.1, 15.542051189615556),
        (1, 120, 30, 0.3, 15.596131804797984),
    ],
)
def test_against_the_reference_package(seed, n, d, discard_fraction, expected):
    x = np.random.default_rng(seed).normal(size=(n, d))
    assert twonn(x, discard_fraction) == pytest.approx(expected, rel=1e-10)
    assert twonn(torch.from_numpy(x), discard_fraction).item() == pytest.approx(expected, rel=1e-10)
    assert np.isfinite(twonn(x, 0.0))  # the last point has no finite −log(1 − F)


def by_loops_intrinsic(x, k):
    logs = []
    for i, point in enumerate(x):
        distances = sorted(math.dist(point, other) for j, other in enumerate(x) if j != i)
        logs += [math.log(distances[k - 1] / distances[j]) for j in range(k - 1)]
    return len(logs) / math.fsum(logs)


DISTINCT = [name for name in ORACLE_CLOUDS if name not in ("duplicates", "mean of 10⁴")]


@pytest.mark.parametrize(
    ("cloud", "k"), [(name, k) for name in DISTINCT for k in (2, 10, 11) if len(ORACLE_CLOUDS[name]) > k]
)
def test_intrinsic_against_loops(cloud, k):
    x = ORACLE_CLOUDS[cloud]
    value = local_dimension(x, k)
    assert isinstance(value, float) and value == pytest.approx(by_loops_intrinsic(x, k), rel=1e-10)
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


def by_loops_hubs(x, k):
    counts = np.zeros(len(x))
    for i, point in enumerate(x):
        others = sorted((np.linalg.norm(point - other), j) for j, other in enumerate(x) if j != i)
        for _, j in others[:k]:
            counts[j] += 1
    return skew(counts)


@pytest.mark.parametrize("n, d", [(40, 3), (40, 30), (12, 5)])
@pytest.mark.parametrize("k", [1, 3, 10])
def test_hubs_against_loops(n, d, k):
    x = spread_cloud(n, d)
    assert isinstance(hubness(x, k), float) and hubness(x, k) == pytest.approx(by_loops_hubs(x, k), rel=1e-10)
    assert hubness(torch.from_numpy(x), k).item() == pytest.approx(hubness(x, k))
    assert hubness(x) == hubness(x, k=10)
    assert hubness(x, 10) == metrics.describe(x)["hubness"]


RNG = np.random.default_rng(3)
TIED = {
    "binary codes": np.unique(np.where(RNG.normal(size=(60, 8)) > 0, 1.0, -1.0), axis=0),
    "grid": np.array([[float(i), float(j)] for i in range(8) for j in range(8)]),
    "tight grids far apart": np.concatenate(
        [[[side * 1500 + i, float(j)] for i in range(4) for j in range(5)] for side in (-1, 1)]
    ),
}


@pytest.mark.parametrize("name", TIED)
def test_tied_points_are_neighbours_by_chance_in_any_order_and_position(name):
    x, k, orders, rng = TIED[name], 10, 400, np.random.default_rng(0)
    between = np.linalg.norm(x[:, None] - x[None], axis=2).round(9)
    np.fill_diagonal(between, np.inf)
    counts, mutual = np.zeros(len(x)), 0.0
    for _ in range(orders):
        near = np.zeros(between.shape)
        by_distance = np.lexsort((rng.random(between.shape), between), axis=1)
        np.put_along_axis(near, by_distance[:, :k], 1.0, axis=1)
        counts += near.sum(axis=0) / orders
        mutual += (near * near.T).sum() / near.sum() / orders
    graph = Sample(x).graph(k)
    assert np.bincount(graph.to, graph.chance) == pytest.approx(counts, abs=0.8)
    assert np.bincount(graph.start, graph.chance) == pytest.approx(k)
    assert reciprocity(x) == pytest.approx(mutual, abs=0.008)
    moved = x[rng.permutation(len(x))] @ ortho_group.rvs(x.shape[1], random_state=0)
    assert [hubness(moved), reciprocity(moved)] == pytest.approx([hubness(x), reciprocity(x)], rel=1e-9)
    assert hubness(x) == pytest.approx(skew(np.bincount(graph.to, graph.chance)))


def by_loops_mutual(x, k):
    near = []
    for i, point in enumerate(x):
        others = sorted((np.linalg.norm(point - other), j) for j, other in enumerate(x) if j != i)
        near.append({j for _, j in others[:k]})
    pairs = [(i, j) for i in range(len(x)) for j in near[i]]
    return sum(i in near[j] for i, j in pairs) / len(pairs)


@pytest.mark.parametrize("n, d", [(40, 3), (40, 30), (12, 5)])
@pytest.mark.parametrize("k", [1, 3, 10])
def test_mutual_against_loops(n, d, k):
    x = spread_cloud(n, d)
    assert isinstance(reciprocity(x, k), float) and reciprocity(x, k) == pytest.approx(by_loops_mutual(x, k), abs=1e-15)
    assert reciprocity(torch.from_numpy(x), k).item() == pytest.approx(reciprocity(x, k))
    assert reciprocity(x) == reciprocity(x, k=10) == describe(x)["reciprocity"]


@pytest.mark.parametrize("k", [5, 10, 25])  # 25 are more than the search that all metrics share
def test_against_scikit_learns_graph(k):
    x = np.random.default_rng(0).normal(size=(500, 12))
    graph = kneighbors_graph(x, k)
    assert reciprocity(x, k) == pytest.approx(graph.multiply(graph.T).sum() / graph.sum(), abs=1e-12)

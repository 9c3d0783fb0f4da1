"""Hubness against loops and scipy's skewness, with ties and too few points."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reference_clouds import spread_cloud
from scipy.stats import ortho_group, skew

from isoviz import metrics
from isoviz.metrics import hubness, reciprocity
from isoviz.metrics.sample import Sample


def by_loops(x, k):
    counts = np.zeros(len(x))
    for i, point in enumerate(x):
        others = sorted((np.linalg.norm(point - other), j) for j, other in enumerate(x) if j != i)
        for _, j in others[:k]:
            counts[j] += 1
    return skew(counts)


@pytest.mark.parametrize("n, d", [(40, 3), (40, 30), (12, 5)])
@pytest.mark.parametrize("k", [1, 3, 10])
def test_against_loops(n, d, k):
    x = spread_cloud(n, d)
    assert isinstance(hubness(x, k), float) and hubness(x, k) == pytest.approx(by_loops(x, k), rel=1e-10)
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


def test_a_star_has_a_hub_and_many_dimensions_have_hubs():
    rays = np.random.default_rng(0).normal(size=(40, 40))
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    star = np.concatenate([np.zeros((1, 40)), rays])  # every other ray is farther than the centre
    assert hubness(star, 1) == pytest.approx((41 - 2) / np.sqrt(41 - 1), rel=0.02)  # the bound: all but one are alike
    random = np.random.default_rng(0)
    low, middle, high = (hubness(random.normal(size=(2000, d))) for d in (3, 20, 100))
    assert low < 0 and 1.5 < middle < 3 and 4 < high < 6

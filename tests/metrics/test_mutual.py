"""Reciprocity of neighbours against loops and scikit-learn's graph, on clouds of known graphs, and beside hubness."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reference_clouds import spread_cloud
from sklearn.neighbors import kneighbors_graph

from isoviz.metrics import UndefinedWarning, describe, hubness, reciprocity


def by_loops(x, k):
    near = []
    for i, point in enumerate(x):
        others = sorted((np.linalg.norm(point - other), j) for j, other in enumerate(x) if j != i)
        near.append({j for _, j in others[:k]})
    pairs = [(i, j) for i in range(len(x)) for j in near[i]]
    return sum(i in near[j] for i, j in pairs) / len(pairs)


@pytest.mark.parametrize("n, d", [(40, 3), (40, 30), (12, 5)])
@pytest.mark.parametrize("k", [1, 3, 10])
def test_against_loops(n, d, k):
    x = spread_cloud(n, d)
    assert isinstance(reciprocity(x, k), float) and reciprocity(x, k) == pytest.approx(by_loops(x, k), abs=1e-15)
    assert reciprocity(torch.from_numpy(x), k).item() == pytest.approx(reciprocity(x, k))
    assert reciprocity(x) == reciprocity(x, k=10) == describe(x)["reciprocity"]


@pytest.mark.parametrize("k", [5, 10, 25])  # 25 are more than the search that all metrics share
def test_against_scikit_learns_graph(k):
    x = np.random.default_rng(0).normal(size=(500, 12))
    graph = kneighbors_graph(x, k)
    assert reciprocity(x, k) == pytest.approx(graph.multiply(graph.T).sum() / graph.sum(), abs=1e-12)


def test_groups_that_keep_to_themselves_are_mutual():
    centres = 30 * np.eye(4)
    x = np.concatenate([centre + spread_cloud(11, 4, seed) / 100 for seed, centre in enumerate(centres)])
    assert reciprocity(x) == 1.0


def test_a_hub_is_a_neighbour_of_points_that_are_not_its_own():
    rays = np.random.default_rng(0).normal(size=(40, 40))
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    star = np.concatenate([np.zeros((1, 40)), rays])  # every other ray is farther than the centre
    assert reciprocity(star, 1) == pytest.approx(2 / 41)  # of 41 pairs, those of the centre and its own neighbour
    assert hubness(star, 1) > 6


def test_it_falls_where_hubness_grows():
    rng = np.random.default_rng(0)
    clouds = [rng.normal(size=(2000, d)) for d in (3, 20, 100)]
    low, middle, high = map(reciprocity, clouds)
    assert (low, middle, high) == pytest.approx((0.77, 0.39, 0.27), abs=0.03)
    assert hubness(clouds[0]) < hubness(clouds[1]) < hubness(clouds[2])
    few = [reciprocity(rng.normal(size=(50, 100))) for _ in range(20)]
    assert np.mean(few) == pytest.approx(0.54, abs=0.02)


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
@pytest.mark.parametrize(
    "x, reason",
    [
        (np.zeros((0, 3)), "12 distinct points, got 0"),
        (np.eye(11), "12 distinct points, got 11"),
        (np.ones((20, 3)), "all points are equal"),
    ],
)
def test_undefined(x, reason, kind):
    with pytest.warns(UndefinedWarning, match=reason):
        assert np.isnan(float(reciprocity(kind(x))))


def test_no_neighbour_is_refused():
    with pytest.raises(ValueError, match="k must be at least 1, got 0"):
        reciprocity(np.eye(20), k=0)

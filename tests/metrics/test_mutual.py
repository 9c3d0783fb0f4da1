"""Reciprocity of neighbours against loops and scikit-learn's graph, on clouds of known graphs, and beside hubness."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reference_clouds import spread_cloud
from sklearn.neighbors import kneighbors_graph

from isoviz.metrics import describe, reciprocity


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

"""The order of dimensions against all orders of its tree, listed one by one, and against tables of shortest lengths."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from reference_clouds import ORACLE_CLOUDS, REFERENCE_CLOUDS
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from isoviz import metrics
from isoviz.metrics.leaf_order import shortest_leaf_order


def tree_of(matrix):
    return linkage(squareform(1 - matrix, checks=False), method="average")


def path_length(matrix, order):
    return math.fsum(1 - matrix[a, b] for a, b in pairwise(order))


def shortest_length(tree, matrix):
    """For each branch a table of the shortest length by its first and last leaf, as a dictionary."""
    tables = [{(leaf, leaf): 0.0} for leaf in range(len(matrix))]
    for a, b in tree[:, :2].astype(int):
        table = {}
        for (first, k), left in tables[a].items():
            for (m, last), right in tables[b].items():
                length = left + 1 - matrix[k, m] + right
                if length < table.get((first, last), math.inf):
                    table[first, last] = table[last, first] = length
        tables.append(table)
    return min(tables[-1].values())


def correlations(name):
    return metrics.abs_correlation({**ORACLE_CLOUDS, **REFERENCE_CLOUDS}[name][:, :40])


@pytest.mark.parametrize("method", ["average", "single"])  # balanced trees, and chains
@pytest.mark.parametrize("cloud", [*ORACLE_CLOUDS, *REFERENCE_CLOUDS])
def test_the_shortest_order_of_larger_trees(cloud, method):
    matrix = correlations(cloud)
    tree = linkage(squareform(1 - matrix, checks=False), method=method)
    order = shortest_leaf_order(tree, 1 - matrix)
    assert sorted(order) == list(range(len(matrix)))
    assert len(matrix) == 1 or order[0] < order[-1]
    assert path_length(matrix, order) == pytest.approx(shortest_length(tree, matrix), abs=1e-11)


def test_the_blocks_of_the_shortest_order_do_not_show(monkeypatch):
    matrix = correlations("I-STAR's diagonal")
    order = shortest_leaf_order(tree_of(matrix), 1 - matrix)
    for block in (1, 60, 3000):
        monkeypatch.setattr("isoviz.metrics.leaf_order._BLOCK", block)
        np.testing.assert_array_equal(shortest_leaf_order(tree_of(matrix), 1 - matrix), order)


def test_the_shortest_order_of_one_and_of_two():
    np.testing.assert_array_equal(shortest_leaf_order(np.zeros((0, 4)), np.zeros((1, 1))), [0])
    np.testing.assert_array_equal(shortest_leaf_order(np.array([[1.0, 0, 0.3, 2]]), np.full((2, 2), 0.3)), [0, 1])


def test_the_order_of_dimensions_is_the_shortest_of_its_tree():
    for cloud in ORACLE_CLOUDS:
        matrix = correlations(cloud)
        length = path_length(matrix, metrics.correlation_order(matrix))
        assert length == pytest.approx(shortest_length(tree_of(matrix), matrix), abs=1e-11)

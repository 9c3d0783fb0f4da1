"""Spread, mean, correlations of single dimensions and the order that clusters them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from reference_clouds import spread_cloud

from isoviz.metrics import UndefinedWarning, abs_correlation, correlation_order, dimension_std, mean_activation


def test_std_and_mean_by_loops():
    x = spread_cloud(40, 5)
    means = [sum(column) / len(column) for column in x.T]
    stds = [np.sqrt(sum((v - m) ** 2 for v in column) / len(column)) for column, m in zip(x.T, means, strict=True)]
    np.testing.assert_allclose(mean_activation(x), means, rtol=1e-13)
    np.testing.assert_allclose(dimension_std(x), stds, rtol=1e-12)
    assert dimension_std(torch.from_numpy(x).float()).dtype == torch.float32
    np.testing.assert_allclose(mean_activation(torch.from_numpy(x)), means, rtol=1e-13)


def test_the_std_of_tiny_and_constant_dimensions():
    x = np.random.default_rng(0).normal(size=(50, 3)) * np.array([1.0, 1e-200, 0.0]) + np.array([0.0, 0.0, 0.1])
    std = dimension_std(x)
    assert 0.5e-200 < std[1] < 2e-200
    assert std[2] == 0.0
    np.testing.assert_array_equal(dimension_std(x[:1]), 0.0)


def test_correlation_by_loops():
    x = spread_cloud(40, 5)
    c = x - x.mean(0)
    expected = [[abs(a @ b) / np.sqrt((a @ a) * (b @ b)) for a in c.T] for b in c.T]
    np.testing.assert_allclose(abs_correlation(x), expected, rtol=1e-10)
    matrix = abs_correlation(torch.from_numpy(x))
    assert torch.equal(matrix, matrix.T)
    assert matrix.max() == 1.0


def test_a_dimension_without_variance_correlates_with_itself_only():
    x = np.random.default_rng(0).normal(size=(30, 4))
    x[:, 2] = 0.1
    matrix = abs_correlation(x)
    assert np.isfinite(matrix).all()
    np.testing.assert_array_equal(matrix[2], [0, 0, 1, 0])
    np.testing.assert_array_equal(abs_correlation(np.ones((5, 3))), np.eye(3))


def test_undefined_statistics():
    for metric, shape in ((dimension_std, (3,)), (mean_activation, (3,)), (abs_correlation, (3, 3))):
        with pytest.warns(UndefinedWarning):
            assert np.isnan(metric(np.zeros((0, 3)))).all()
        with pytest.warns(UndefinedWarning):
            assert metric(torch.zeros(0, 3)).shape == shape


def blocks(seed, sizes=(5, 4, 6), constant=2):
    """Interleaved groups of correlated dimensions, and constant ones; their group labels."""
    rng = np.random.default_rng(seed)
    label = np.concatenate([np.full(size, group) for group, size in enumerate(sizes)] + [np.full(constant, -1)])
    rng.shuffle(label)
    sources = rng.normal(size=(400, len(sizes)))
    x = np.where(label >= 0, sources[:, label], 0.0)
    return x + np.where(label >= 0, 0.2 * rng.normal(size=x.shape), 0.0), label


@pytest.mark.parametrize("optimal", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_the_order_puts_groups_together_and_constants_last(seed, optimal):
    x, label = blocks(seed)
    order = correlation_order(abs_correlation(x), optimal=optimal)
    assert sorted(order) == list(range(len(label)))
    ordered = label[order]
    assert list(ordered[-2:]) == [-1, -1]
    assert list(order[-2:]) == sorted(order[-2:])
    assert np.count_nonzero(np.diff(ordered[:-2])) == 2  # three groups, two borders


def test_the_optimal_order_is_closer_and_deterministic():
    matrix = abs_correlation(spread_cloud(60, 40))

    def length(order):
        return sum(1 - matrix[a, b] for a, b in pairwise(order))

    best = correlation_order(matrix)
    assert length(best) < length(correlation_order(matrix, optimal=False))
    np.testing.assert_array_equal(best, correlation_order(matrix.copy()))
    tensor = correlation_order(torch.from_numpy(matrix))
    assert tensor.dtype == torch.int64
    np.testing.assert_array_equal(tensor, best)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_order_of_very_few(d):
    assert sorted(correlation_order(abs_correlation(spread_cloud(20, d)))) == list(range(d))
    np.testing.assert_array_equal(correlation_order(np.eye(d)), np.arange(d))


@pytest.mark.parametrize(
    "matrix, reason",
    [
        (np.ones((2, 3)), "square"),
        (-np.eye(3), r"in \[0, 1\], got values from -1 to"),
        (np.array([[1.0, 0.5], [0.1, 1.0]]), "symmetric"),
    ],
)
def test_what_is_no_absolute_correlation_is_refused(matrix, reason):
    with pytest.raises(ValueError, match=reason):
        correlation_order(matrix)

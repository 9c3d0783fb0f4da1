"""Spread, means and correlations of single dimensions, the order that clusters them, and massive entries."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reference_clouds import ORACLE_CLOUDS, spread_cloud

from isoviz.metrics import (
    UndefinedWarning,
    abs_correlation,
    correlation_order,
    describe,
    dimension_std,
    massive_activation,
    outlier_dimensions,
    participation_ratio,
    rogue_share,
    std_histogram,
)


def test_the_std_of_tiny_and_constant_dimensions():
    x = np.random.default_rng(0).normal(size=(50, 3)) * np.array([1.0, 1e-200, 0.0]) + np.array([0.0, 0.0, 0.1])
    std = dimension_std(x)
    assert 0.5e-200 < std[1] < 2e-200
    assert std[2] == 0.0
    np.testing.assert_array_equal(dimension_std(x[:1]), 0.0)


def test_a_dimension_without_variance_correlates_with_itself_only():
    x = np.random.default_rng(0).normal(size=(30, 4))
    x[:, 2] = 0.1
    matrix = abs_correlation(x)
    assert np.isfinite(matrix).all()
    np.testing.assert_array_equal(matrix[2], [0, 0, 1, 0])
    np.testing.assert_array_equal(abs_correlation(np.ones((5, 3))), np.eye(3))


def blocks(seed, sizes=(5, 4, 6), constant=2):
    """Interleaved groups of correlated dimensions, and constant ones; their group labels."""
    rng = np.random.default_rng(seed)
    label = np.concatenate([np.full(size, group) for group, size in enumerate(sizes)] + [np.full(constant, -1)])
    rng.shuffle(label)
    sources = rng.normal(size=(400, len(sizes)))
    x = np.where(label >= 0, sources[:, label], 0.0)
    return x + np.where(label >= 0, 0.2 * rng.normal(size=x.shape), 0.0), label


@pytest.mark.parametrize("seed", range(3))
def test_the_order_puts_groups_together_and_constants_last(seed):
    x, label = blocks(seed)
    order = correlation_order(abs_correlation(x))
    assert sorted(order) == list(range(len(label)))
    ordered = label[order]
    assert list(ordered[-2:]) == [-1, -1]
    assert list(order[-2:]) == sorted(order[-2:])
    assert np.count_nonzero(np.diff(ordered[:-2])) == 2  # three groups, two borders


def planted(means):
    """A cloud whose dimensions have exactly these means, up to round-off."""
    noise = np.random.default_rng(0).normal(size=(50, len(means)))
    return noise - noise.mean(axis=0) + means


def test_outliers_by_loops():
    means = np.random.default_rng(1).normal(size=300)
    means[[7, 100, 42]] = [-25.0, 30.0, 8.0]
    cloud = planted(means)
    centre = sum(means) / 300
    spread = (sum((m - centre) ** 2 for m in means) / 300) ** 0.5
    for threshold in (2.0, 3.0, 5.0):
        far = [j for j in range(300) if abs(means[j] - centre) > threshold * spread]
        far.sort(key=lambda j: -abs(means[j] - centre))
        outliers = outlier_dimensions(cloud, threshold)
        assert outliers.dtype == np.int64
        assert list(outliers) == far
    assert list(outlier_dimensions(cloud)) == [100, 7, 42]
    tensor = outlier_dimensions(torch.from_numpy(cloud))
    assert tensor.dtype == torch.int64
    assert tensor.tolist() == [100, 7, 42]


def test_clouds_without_outliers():
    assert len(outlier_dimensions(planted(np.full(40, 0.1)) * 0.0 + 0.1)) == 0
    assert len(outlier_dimensions(np.full((5, 40), 1 / 3) + np.linspace(0, 1e-17, 40))) == 0
    # The furthest of d is at most √(d − 1) standard deviations out, reached by one that stands alone.
    alone = np.eye(11)[0] * 100
    assert list(outlier_dimensions(planted(alone[:10]))) == []
    assert list(outlier_dimensions(planted(alone))) == [0]
    with pytest.warns(UndefinedWarning):
        assert len(outlier_dimensions(np.zeros((0, 3)))) == 0
    with pytest.raises(ValueError, match="threshold must be above 0, got 0"):
        outlier_dimensions(np.ones((3, 3)), 0)


def test_the_share_of_rogue_dimensions():
    cloud = spread_cloud(200, 6) * np.array([1, 1, 50, 1, 20, 1.0])
    variances = np.var(cloud, axis=0)
    assert rogue_share(cloud) == pytest.approx(max(variances) / sum(variances), rel=1e-12)
    assert participation_ratio(cloud) <= 1 / rogue_share(cloud) ** 2
    assert rogue_share(cloud * 1e-170) == pytest.approx(rogue_share(cloud), rel=1e-9)
    assert rogue_share(torch.from_numpy(cloud).float()).item() == pytest.approx(rogue_share(cloud), rel=1e-5)
    for cloud in (np.ones((4, 3)), np.ones((1, 3)), np.full((9, 3), 0.1), np.zeros((0, 3))):
        with pytest.warns(UndefinedWarning):
            assert np.isnan(rogue_share(cloud))


def test_the_histogram_of_standard_deviations_by_loops():
    rng = np.random.default_rng(0)
    scale = np.concatenate([10 ** rng.uniform(-9.5, 0.3, size=33), [0.0] * 5, [1e-14, 1e-12]])
    cloud = rng.normal(size=(60, 40)) * scale
    histogram = std_histogram(cloud, bins=8)
    assert histogram.edges.shape == (9,)
    assert histogram.percent.shape == (8,)
    std = [np.sqrt(np.mean((column - column.mean()) ** 2)) for column in cloud.T]
    assert (histogram.edges[0], histogram.edges[-1]) == (1e-10, pytest.approx(max(std), rel=1e-12))
    np.testing.assert_allclose(np.diff(np.log(histogram.edges)), np.log(max(std) / 1e-10) / 8, rtol=1e-9)
    counts = [0] * 8
    for value in std:
        if value > 0:
            place = np.log(max(value, 1e-10) / 1e-10) / np.log(max(std) / 1e-10) * 8
            counts[min(int(place), 7)] += 1
    np.testing.assert_allclose(histogram.percent, [100 * count / 40 for count in counts], rtol=1e-12)
    assert histogram.zero == 12.5
    assert histogram.percent.sum() + histogram.zero == pytest.approx(100)
    assert counts[0] >= 2  # the two below the floor
    tensor = std_histogram(torch.from_numpy(cloud), bins=8)
    np.testing.assert_allclose(tensor.percent, histogram.percent)


def as_in_the_authors_code(hidden):
    """`main_llm.py --exp2` of locuslab/massive-activations: the largest and the median magnitude of a layer's hidden state."""
    magnitudes = hidden.abs()
    ordered = torch.sort(magnitudes.flatten(), descending=True)
    return float(ordered.values[0] / torch.median(magnitudes))


@pytest.mark.parametrize("cloud", ORACLE_CLOUDS)
def test_against_the_authors_code(cloud):
    x = ORACLE_CLOUDS[cloud]
    value = massive_activation(x)
    assert isinstance(value, float) and value == pytest.approx(as_in_the_authors_code(torch.from_numpy(x)), rel=1e-14)
    assert massive_activation(torch.from_numpy(x)).item() == value == describe(x)["massive_activation"]


def tokens(entries):
    """1,000 tokens of length about √64, with massive entries planted: (row, dimension, value)."""
    x = np.random.default_rng(0).normal(size=(1000, 64)) * 0.1
    for row, dimension, value in entries:
        x[row, dimension] = value
    return x


def notes(x):
    return [note for note in describe(x, twonn=False)["warnings"] if note.startswith("massive_activation")]


def test_massive_entries_are_counted_with_their_share_of_the_squares():
    planted = [(0, 5, 300.0), (100, 5, -250.0), (7, 9, 120.0)]
    x = tokens(planted)
    assert massive_activation(x) == pytest.approx(300 / np.median(np.abs(x)), rel=1e-4)
    share = sum(value**2 for *_, value in planted) / (x**2).sum()
    assert 0.99 < share < 1
    (note,) = notes(x)
    assert f"finds 3 entries above 100 and 1,000 times the median, with {share:.0%} of" in note
    (note,) = notes(tokens(planted[:1]))
    assert "finds 1 entry above" in note

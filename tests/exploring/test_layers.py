"""Valleys of known depth, and neighbours against loops and the matrix of shared neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from isoviz.exploring import layers, similarity
from isoviz.statistics import intervals


def curve(*means: float) -> NDArray[np.float64]:
    """Entropies (layers, 50 texts) with these means; texts differ by the same amount at each layer."""
    texts = np.random.default_rng(0).normal(size=50) / 100
    return np.array(means)[:, None] + texts - texts.mean()


@pytest.mark.parametrize(
    "means, layer, depth",
    [
        ((0.9, 0.3, 0.8), 1, 0.5),  # the lower side is after it
        ((0.6, 0.9, 0.2, 0.5, 0.95), 2, 0.7),  # the highest layers of both sides
        ((0.5, 0.4, 0.1, 0.9), 2, 0.4),
    ],
)
def test_a_valley_has_the_depth_of_its_lower_side(means: tuple[float, ...], layer: int, depth: float) -> None:
    found = layers.valley(curve(*means))
    assert found is not None and found.layer == layer and found.depth == pytest.approx(depth)
    assert found.interval is not None  # texts that differ alike at each layer say exactly how deep it is
    assert (found.interval.low, found.interval.high) == pytest.approx((depth, depth))


def test_texts_without_an_entropy_are_left_out_at_all_layers() -> None:
    values = curve(0.9, 0.3, 0.8)
    values[0, 3] = np.nan
    found = layers.valley(values)
    differences = np.delete(values[2] - values[1], 3)
    assert found is not None and found.depth == pytest.approx(differences.mean())
    assert layers.valley(np.full((3, 4), np.nan)) is None and layers.valley(np.zeros((3, 0))) is None


def by_loops(one: NDArray[np.float64], other: NDArray[np.float64]) -> list[float]:
    shares = []
    near = []
    for cloud in (one, other):
        unit = cloud / np.linalg.norm(cloud, axis=1, keepdims=True)
        near.append(
            [
                {j for _, j in sorted((-(a @ b), j) for j, b in enumerate(unit) if j != i)[:10]}
                for i, a in enumerate(unit)
            ]
        )
    for first, second in zip(*near, strict=True):
        shares.append(len(first & second) / 10)
    return shares


def test_against_loops_and_the_matrix_of_shared_neighbours() -> None:
    rng = np.random.default_rng(0)
    first = rng.normal(size=(40, 6))
    clouds = [first, first + rng.normal(size=(40, 6)) / 2, rng.normal(size=(40, 9))]
    kept = layers.retention(clouds)
    assert kept is not None and kept.rows == 40 and kept.by_chance == pytest.approx(10 / 39)
    np.testing.assert_allclose(kept.shares, similarity.matrix(clouds, clouds, "neighbours"), atol=1e-6)
    for layer, (value, interval) in enumerate(kept.from_before, start=1):
        shares = by_loops(clouds[layer - 1], clouds[layer])
        assert value == pytest.approx(np.mean(shares)) and interval == pytest.approx(intervals.of_mean(shares))
    assert [value for value, _ in kept.to_last] == pytest.approx([kept.shares[0, 2], kept.shares[1, 2]])
    assert kept.to_last[0][0] == pytest.approx(10 / 39, abs=0.06)  # unrelated clouds


def test_a_layer_whose_rows_are_equal_has_neighbours_by_chance_whatever_the_rounding() -> None:
    rng = np.random.default_rng(0)
    last = rng.normal(size=(60, 8))
    for noise in (0, 1e-9, 1e-8):
        kept = layers.retention([1 + noise * rng.normal(size=(60, 8)), last])
        assert kept is not None
        assert kept.from_before[0] == kept.to_last[0] == (pytest.approx(kept.by_chance), pytest.approx([10 / 59] * 2))


def test_the_choice_is_the_layer_that_the_others_resemble() -> None:
    rng = np.random.default_rng(0)
    middle = rng.normal(size=(60, 8))
    clouds = [middle + rng.normal(size=(60, 8)) for _ in range(2)]
    found = [layers.retention([*clouds[:at], middle, *clouds[at:]]) for at in range(3)]
    assert [kept and kept.choice for kept in found] == [0, 1, 2]

"""Rogue dimensions: planted ones are found, and their shares follow from the definition."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from isoviz import metrics
from isoviz.exploring.rogue import RogueDimensions, rogue_dimensions

RNG = np.random.default_rng(3)
N, D = 300, 64


def of(points: np.ndarray) -> RogueDimensions:
    return rogue_dimensions(points.mean(axis=0), points.std(axis=0), points)


def test_a_shifted_and_a_wide_dimension_are_found_with_their_distances_and_shares():
    points = RNG.normal(size=(N, D))
    points[:, 9] += 12.0
    points[:, 40] *= 9.0
    found = of(points)
    assert sorted(found.numbers) == [9, 40]
    at = {number: place for place, number in enumerate(found.numbers)}
    assert found.of_mean[at[9]] and not found.of_spread[at[9]] and found.of_spread[at[40]]
    means, spreads = points.mean(axis=0), points.std(axis=0)
    mad = 1.4826 * np.median(np.abs(means - np.median(means)))
    assert found.mean_distance[at[9]] == pytest.approx((means[9] - np.median(means)) / mad)
    assert found.variance[at[40]] == pytest.approx(spreads[40] ** 2 / (spreads**2).sum())

    unit = points / np.linalg.norm(points, axis=1)[:, None]
    pairs = np.array([unit[i] * unit[j] for i, j in itertools.combinations(range(N), 2)])
    assert found.mean_cosine == pytest.approx(metrics.mean_cosine(points), abs=1e-6)
    assert found.cosine[at[9]] == pytest.approx(pairs[:, 9].mean() / pairs.sum(axis=1).mean(), abs=1e-4)
    rest = np.delete(points, [9, 40], axis=1)
    assert found.mean_cosine_without == pytest.approx(metrics.mean_cosine(rest), abs=1e-6)
    assert found.overlap is not None and found.overlap.value < 0.9


def test_a_cloud_without_rogue_dimensions():
    points = np.random.default_rng(1).uniform(-1, 1, size=(N, D))
    points -= points.mean(axis=0)
    points /= points.std(axis=0)
    assert len(of(points).numbers) == 0
    points[:, 5] *= 30.0
    assert of(points[:, :8]).numbers.size == 0, "in so few dimensions, none can be three deviations out"
    assert len(of(np.ones((20, D))).numbers) == 0

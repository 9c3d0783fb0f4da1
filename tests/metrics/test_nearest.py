"""Nearest neighbours against all distances in double precision, on clouds where single precision is not enough."""

from __future__ import annotations

import numpy as np
import pytest

from isoviz.metrics.nearest import nearest

RNG = np.random.default_rng(0)
CLOUDS = {
    "isotropic": RNG.normal(size=(300, 768)),
    "few dimensions": RNG.normal(size=(500, 3)),
    "two tight and distant clusters": np.repeat([[1.0], [-1.0]], 120, axis=0) * 1e5 + RNG.normal(size=(240, 40)),
    "one rogue dimension": RNG.normal(size=(300, 60)) * np.r_[3e4, np.ones(59)],
    "tiny beside one huge point": np.concatenate([RNG.normal(size=(200, 8)) * 1e-22, [[1.0] * 8]]),
    "copies": np.repeat(RNG.normal(size=(40, 5)), 2, axis=0),
    "all equal": np.ones((30, 4)),
    "three points": RNG.normal(size=(3, 2)),
}


@pytest.mark.parametrize("k", [1, 2, 10, 25])
@pytest.mark.parametrize("name", CLOUDS)
def test_distances_match_a_full_search(name, k):
    x = CLOUDS[name]
    distances = nearest(x, k)
    k = min(k, len(x) - 1)
    centred = x - x.mean(axis=0)
    unit = np.abs(centred).max() or 1.0
    between = np.sqrt(((centred[:, None] - centred[None]) ** 2).sum(axis=2)) / unit
    np.fill_diagonal(between, np.inf)
    np.testing.assert_allclose(distances.distances, np.sort(between, axis=1)[:, :k], rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(
        np.take_along_axis(between, distances.indices, axis=1), distances.distances, rtol=1e-9, atol=1e-300
    )
    assert all(len(set(row)) == k and i not in row for i, row in enumerate(distances.indices.tolist()))

"""TwoNN against the reference package, and on its traps."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from isoviz.metrics import twonn


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


def test_it_finds_the_dimension_of_a_curved_surface():
    rng = np.random.default_rng(0)
    sphere = rng.normal(size=(1000, 3))
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    assert twonn(sphere @ rng.normal(size=(3, 50))) == pytest.approx(2.0, abs=0.2)

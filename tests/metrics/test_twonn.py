"""TwoNN against the reference package, and on its traps."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reference_clouds import equal_but_for_rounding, equally_far

from isoviz.metrics import UndefinedWarning, twonn


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


def test_duplicates_count_once():
    x = np.random.default_rng(0).normal(size=(80, 20))
    once = twonn(x)
    assert twonn(np.concatenate([x, x[:50], x[:50]])) == pytest.approx(once, rel=1e-12)
    with_zero = np.concatenate([x, [[0.0] * 20], [[-0.0] * 20]])
    assert twonn(with_zero) == pytest.approx(twonn(with_zero[:-1]), rel=1e-12)


def test_twins_within_rounding_count_once():
    """A distance of 1e-15 to a twin would give a ratio of 1e15 and an estimate near 0."""
    x = np.random.default_rng(0).normal(size=(80, 20))
    twins = np.concatenate([x, x[:40] * (1 + 4e-16), x[:40] * (1 - 4e-16)])
    assert len(np.unique(twins, axis=0)) > 100
    assert twonn(twins) == pytest.approx(twonn(x), rel=1e-6)


def test_the_mean_does_not_blur_the_distances():
    x = np.random.default_rng(0).normal(size=(100, 20))
    assert twonn(x + 1e8) == pytest.approx(twonn(x), rel=1e-5)


def test_blocks_do_not_show(monkeypatch):
    x = np.random.default_rng(0).normal(size=(101, 6))
    in_one_block = twonn(x)
    monkeypatch.setattr("isoviz.metrics.nearest._BLOCK", 1000)
    assert twonn(x) == pytest.approx(in_one_block, rel=1e-12)


def test_it_finds_the_dimension_of_a_curved_surface():
    rng = np.random.default_rng(0)
    sphere = rng.normal(size=(1000, 3))
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    assert twonn(sphere @ rng.normal(size=(3, 50))) == pytest.approx(2.0, abs=0.2)


@pytest.mark.parametrize(
    "x, reason",
    [
        (np.ones((50, 4)), "all points are equal"),
        (np.tile(np.eye(4)[:2], (9, 1)), "at least 3 distinct points, got 2"),
        (np.eye(10), "no point's second neighbour is farther"),
        (equally_far(30, 64), "no point's second neighbour is farther"),
        (equal_but_for_rounding(40, 8), "all points are equal"),
        (np.zeros((0, 4)), "at least 3 distinct points, got 0"),
    ],
)
def test_undefined_cases(x, reason):
    with pytest.warns(UndefinedWarning, match=reason):
        assert np.isnan(twonn(x))


def test_bad_options_are_refused():
    with pytest.raises(ValueError, match=r"discard_fraction must lie in \[0, 1\), got 1"):
        twonn(np.eye(5), discard_fraction=1)

"""Copies up to rounding count once in measures of neighbours; genuinely close points stay."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from isoviz import metrics
from isoviz.metrics.copies import TOLERANCES, distinct_rows

RNG = np.random.default_rng(0)
NEIGHBOUR_MEASURES = ("twonn", "local_dimension", "hubness", "reciprocity")


def unit_cloud(n: int, d: int, shift: float = 0.3) -> np.ndarray:
    """Directions of decaying spread, as encoders give them, in single precision."""
    x = np.random.default_rng(1).standard_normal((n, d)) * np.geomspace(3, 0.2, d) + shift
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


def twonn_by_hand(x: np.ndarray) -> float:
    distances = np.sort(cdist(x, x), axis=1)
    ratios = np.log(np.sort(distances[:, 2] / distances[:, 1])[: int(0.9 * len(x))])
    heights = -np.log(1 - np.arange(1, len(ratios) + 1) / len(x))
    return float(ratios @ heights / (ratios @ ratios))


CLEAN = unit_cloud(300, 24)
OTHER_BATCH = CLEAN * (1 + 2e-7 * RNG.standard_normal(CLEAN.shape)).astype(np.float32)
REPEATED = {
    "noise of 1e-7": np.concatenate([CLEAN, CLEAN[:100] + 1e-7 * RNG.standard_normal((100, 24))]),
    "other batches": np.concatenate([CLEAN, OTHER_BATCH]),
    "half precision": np.concatenate([CLEAN, CLEAN.astype(np.float16)]),
    "all of these": np.concatenate([CLEAN, OTHER_BATCH, CLEAN.astype(np.float16), CLEAN[:7]]),
    "far from the origin": 10 + np.concatenate([CLEAN, CLEAN[:100] + 1e-6 * RNG.standard_normal((100, 24))]),
    "half precision at a mean cosine of 0.99": (10 / 24**0.5 + np.concatenate([CLEAN, CLEAN])).astype(np.float16),
}


@pytest.mark.parametrize("name", REPEATED)
def test_near_copies_count_once(name):
    x = REPEATED[name].astype(np.float64)
    assert distinct_rows(x).tolist() == list(range(300))
    assert metrics.twonn(x) == pytest.approx(twonn_by_hand(x[:300]), rel=1e-6)
    assert metrics.twonn(x) == pytest.approx(twonn_by_hand(CLEAN), rel=0.02)
    for slug in NEIGHBOUR_MEASURES:
        assert getattr(metrics, slug)(x) == pytest.approx(getattr(metrics, slug)(x[:300]), rel=1e-6)
    assert f"twonn leaves out {len(x) - 300} copies" in metrics.describe(x)["warnings"]


def test_the_order_of_rows_scale_and_rotation_do_not_change_what_is_left_out():
    x = REPEATED["all of these"].astype(np.float64)
    turn = np.linalg.qr(RNG.standard_normal((24, 24)))[0]
    for other in (x[RNG.permutation(len(x))], x * 1e-200, x * 1e200, x @ turn):
        assert len(distinct_rows(other)) == 300


CLOSE = {
    "a curve": np.c_[RNG.random(2000), np.ones(2000)],
    "a surface": np.c_[RNG.random((2000, 2)), np.ones(2000)],
    "a collapsed cloud": 1 + 3e-5 * RNG.standard_normal((1000, 24)),
    "tight clusters": np.repeat(RNG.standard_normal((20, 50)), 50, axis=0) + 1e-3 * RNG.standard_normal((1000, 50)),
    "far from the origin": 1e6 + RNG.standard_normal((500, 5)),
}


@pytest.mark.parametrize("name", CLOSE)
def test_genuinely_close_points_stay(name):
    assert len(distinct_rows(CLOSE[name])) == len(CLOSE[name])


def test_few_rows_of_a_curve_are_left_out():
    angles = RNG.random(2000) * 2 * np.pi
    circle = np.c_[np.cos(angles), np.sin(angles)]
    ray = np.outer(1 + 0.1 * RNG.random(80), RNG.standard_normal(8)) + 1e-8 * RNG.standard_normal((80, 8))
    for curve in (circle, ray):
        assert len(distinct_rows(curve)) > 0.98 * len(curve)
        assert metrics.twonn(curve) == pytest.approx(twonn_by_hand(curve), rel=0.04)


def test_a_chain_of_near_copies_is_one_point():
    step = 0.9 * TOLERANCES[0]
    chain = np.array([[1.0, 0.0], [1.0, step], [1.0, 2 * step]])  # the ends are farther apart than the tolerance
    others = np.array([[np.cos(a), np.sin(a)] for a in np.linspace(0.5, 5, 10)])
    for order in ([0, 1, 2], [0, 2, 1], [1, 0, 2]):
        assert len(distinct_rows(np.concatenate([chain[order], others]))) == 11


def test_few_distinct_vectors_are_said():
    few = np.repeat(RNG.standard_normal((4, 9)), [200, 200, 60, 5], axis=0)
    warnings = metrics.describe(few.astype(np.float32))["warnings"]
    assert "hubness is undefined: with k = 10 it needs at least 12 distinct points, got 4 in 465 rows" in warnings

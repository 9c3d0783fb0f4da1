"""What each metric must not see: shift, scale, rotation, the order of the points."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoviz import metrics

pytestmark = pytest.mark.filterwarnings("ignore::isoviz.metrics.SmallSampleWarning")
quick = settings(max_examples=25, deadline=None, derandomize=True)
IGNORES = {
    "isoscore": {"shift", "scale", "rotation", "order"},
    "isoscore_unbiased": {"shift", "scale", "rotation", "order"},
    "explained_variance": {"shift", "scale", "rotation", "order"},
    "participation_ratio": {"shift", "scale", "rotation", "order"},
    "effective_rank": {"shift", "scale", "rotation", "order"},
    "twonn": {"shift", "scale", "rotation", "order"},
    "mean_cosine": {"scale", "rotation", "order"},
    "abs_correlation": {"shift", "scale", "stretch", "order"},
    "dimension_std": {"shift", "order"},
    "mean_activation": {"order"},
}
CHANGES = {"shift", "scale", "rotation", "stretch", "order"}


@st.composite
def clouds(draw):
    n, d = draw(st.integers(8, 40)), draw(st.integers(2, 20))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return rng.normal(size=(n, d)) * rng.uniform(0.1, 3, size=d) + rng.normal(size=d), rng


def change(kind, cloud, rng):
    d = cloud.shape[1]
    match kind:
        case "shift":
            return cloud + rng.normal(size=d) * 100
        case "scale":
            return cloud * 10.0 ** rng.uniform(-3, 3)
        case "rotation":
            return cloud @ np.linalg.qr(rng.normal(size=(d, d)))[0]
        case "stretch":
            return cloud * 10.0 ** rng.uniform(-2, 2, size=d)
    return rng.permutation(cloud)


@pytest.mark.parametrize("name, kind", [(name, kind) for name, kinds in IGNORES.items() for kind in sorted(kinds)])
@quick
@given(drawn=clouds())
def test_it_ignores(name, kind, drawn):
    cloud, rng = drawn
    metric = getattr(metrics, name)
    np.testing.assert_allclose(metric(change(kind, cloud, rng)), metric(cloud), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name, kind", [(name, kind) for name in IGNORES for kind in sorted(CHANGES - IGNORES[name])])
def test_it_sees_everything_else(name, kind):
    """So that an invariance is not just a metric that never moves."""
    rng = np.random.default_rng(5)
    cloud = rng.normal(size=(30, 5)) * np.arange(1, 6) + 1
    before = getattr(metrics, name)(cloud)
    after = getattr(metrics, name)(change(kind, cloud, rng))
    assert not np.allclose(before, after, rtol=1e-3)


@quick
@given(drawn=clouds(), zeta=st.floats(0, 1))
def test_isoscore_star_turns_with_its_shrinkage_matrix(drawn, zeta):
    cloud, rng = drawn
    d = cloud.shape[1]
    cov = np.cov(rng.normal(size=(50, d)).T)
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    score = metrics.isoscore_star(cloud, cov, zeta)
    assert metrics.isoscore_star(cloud @ turn, turn.T @ cov @ turn, zeta) == pytest.approx(score, abs=1e-10)
    assert -1e-12 <= score <= 1 + 1e-12


@quick
@given(drawn=clouds())
def test_ranges(drawn):
    cloud, _ = drawn
    n, d = cloud.shape
    ratio, rank = metrics.participation_ratio(cloud), metrics.effective_rank(cloud)
    assert 1 - 1e-9 <= ratio <= rank + 1e-9 <= min(d, n - 1) + 2e-9
    assert metrics.isoscore(cloud) == pytest.approx((ratio - 1) / (d - 1), abs=1e-12)
    assert -1 <= metrics.mean_cosine(cloud) <= 1
    assert 0 <= metrics.partition(cloud)[0] <= 1

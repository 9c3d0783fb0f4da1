"""Every claim of the catalogue, measured in both directions."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_clouds import cross, extra, spread_cloud, value_of, whitened

from isoviz import metrics
from isoviz.metrics import SmallSampleWarning, UndefinedWarning
from isoviz.metrics.protocol import CHANGES

pytestmark = pytest.mark.filterwarnings("ignore::isoviz.metrics.SmallSampleWarning")
quick = settings(max_examples=20, deadline=None, derandomize=True)
DIFFERENTIABLE = {"isoscore", "isoscore_star", "isoscore_unbiased", "participation_ratio"}
every = pytest.mark.parametrize("metric", metrics.catalogue().values(), ids=metrics.catalogue().keys())


# The catalogue itself


@every
def test_every_entry_is_complete(metric):
    assert metrics.catalogue()[metric.slug] is metric
    sentences = (metric.sees, metric.blind_to)
    assert all(text[0].isupper() and text.endswith(".") for text in sentences)
    assert metric.blind_to.startswith("Cannot ")
    texts = (
        metric.title,
        metric.symbol,
        metric.equation,
        metric.range.text,
        metric.at_isotropy.text,
        metric.enough.text,
    )
    assert all(texts)
    assert metric.unchanged_by <= set(CHANGES)
    assert "order" in metric.unchanged_by
    assert str(metric.paper.year) in metric.paper.text
    assert str(metric.paper.year) in metric.paper.key
    assert (metric.at_isotropy.value is None) == (metric.at_isotropy.of is None)
    assert (metric.enough.tolerance is None) == (metric.enough.bias in ("none", "exact", "unknown"))
    assert (metric.kinds == {"weights"}) == (metric.enough.bias == "exact")


@every
def test_evaluate_is_the_public_function(metric):
    cloud = np.random.default_rng(0).normal(size=(40, 5)) + 0.3
    value = getattr(metrics, metric.function.__name__)(cloud, **metric.options, **extra(metric, np.eye(5), cloud))
    expected = value if metric.part is None else value[metric.part]
    np.testing.assert_array_equal(value_of(metric, cloud), expected)
    shape = {"number": (), "curve": (5,), "per dimension": (5,), "per pair of dimensions": (5, 5)}[metric.gives]
    assert np.shape(expected) == shape


@every
def test_differentiable_or_not(metric):
    points = torch.from_numpy(np.random.default_rng(0).normal(size=(40, 5))).requires_grad_()
    value = metric.evaluate(points, **extra(metric, torch.eye(5, dtype=torch.float64), points))
    assert value.requires_grad == (metric.slug in DIFFERENTIABLE)
    if value.requires_grad:
        value.backward()
        assert points.grad.abs().max() > 0


# What leaves it unchanged, and what does not


@st.composite
def clouds(draw, least_n=8):
    n, d = draw(st.integers(least_n, 40)), draw(st.integers(2, 20))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return rng.normal(size=(n, d)) * rng.uniform(0.1, 3, size=d) + rng.normal(size=d), rng


def fit_for(metric, cloud):
    """Weights with rows of length about 1: from length 30 on, I1 is 0 in every number format."""
    return cloud / np.sqrt((cloud**2).sum(1).mean()) if metric.kinds == {"weights"} else cloud


def changed(kind, cloud, cov, rng):
    """The changed cloud, the shrinkage matrix that has seen the same change, and which rows of the cloud are left in which order."""
    n, d = cloud.shape
    rows = np.arange(n)
    match kind:
        case "shift":
            return cloud + rng.normal(size=d) * 100, cov, rows
        case "scale":
            factor = 10.0 ** (rng.choice([-1, 1]) * rng.uniform(0.3, 3))
            return cloud * factor, cov * factor**2, rows
        case "rotation":
            turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
            return cloud @ turn, turn.T @ cov @ turn, rows
        case "stretch":
            factors = 10.0 ** rng.uniform(-2, 2, size=d)
            return cloud * factors, cov * np.outer(factors, factors), rows
        case "order":
            return cloud, cov, rng.permutation(rows)
    return cloud, cov, np.repeat(rows, rng.integers(2, 5))


def before_and_after(metric, kind, drawn):
    cloud, rng = drawn
    cloud = fit_for(metric, cloud)
    d = cloud.shape[1]
    cov = np.cov(rng.normal(size=(50, d)).T * rng.uniform(0.5, 3, size=(d, 1)))
    before, after = value_of(metric, cloud, cov), value_of(metric, *changed(kind, cloud, cov, rng))
    if before.shape != after.shape:  # a curve of min(n, d) values grows with n, by ones
        before, after = (np.pad(v, (0, cloud.shape[1] - len(v)), constant_values=1.0) for v in (before, after))
    return before, after


def pairs(claimed):
    chosen = [
        (m, kind) for m in metrics.catalogue().values() for kind in CHANGES if (kind in m.unchanged_by) == claimed
    ]
    return pytest.mark.parametrize("metric, kind", chosen, ids=[f"{m.slug}-{kind}" for m, kind in chosen])


def drawn_for(metric):
    """Twenty clouds on which it is defined."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(max(8, metric.minimum), metric.minimum + 40)), int(rng.integers(2, 21))
        yield rng.normal(size=(n, d)) * rng.uniform(0.1, 3, size=d) + rng.normal(size=d), rng


@pairs(claimed=True)
def test_it_is_unchanged(metric, kind):
    for drawn in drawn_for(metric):
        before, after = before_and_after(metric, kind, drawn)
        assert np.isfinite(before).all()
        np.testing.assert_allclose(after, before, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("unit", [1e-300, 1e-120, 1e120, 1e300])
@pytest.mark.parametrize(
    "slug", sorted(slug for slug, m in metrics.catalogue().items() if "scale" in m.unchanged_by and m.jointly != "Σ_S")
)
def test_any_unit_of_length(slug, unit):
    metric, cloud = metrics.catalogue()[slug], spread_cloud(60, 5)
    np.testing.assert_allclose(value_of(metric, cloud * unit), value_of(metric, cloud), rtol=1e-9)


@pairs(claimed=False)
def test_it_sees_every_other_change(metric, kind):
    """So that no invariance is missing from a claim, and none is that of a metric that never moves. (A count may by chance be the
    same after a change.)"""
    pairs_ = [before_and_after(metric, kind, drawn) for drawn in drawn_for(metric)]
    seen = [np.abs(after - before).max() > 1e-5 * np.abs(before).max() for before, after in pairs_]
    assert sum(seen) >= 16


# Ranges


@every
def test_it_stays_in_its_range(metric):
    for cloud, rng in drawn_for(metric):
        cloud = fit_for(metric, cloud) * rng.choice([0.1, 1, 3])
        n, d = cloud.shape
        value = value_of(metric, cloud, np.cov(rng.normal(size=(50, d)).T))
        assert np.isfinite(value).all()
        if metric.range.low is not None:
            assert (value >= metric.range.low(n, d) - 1e-9).all()
        if metric.range.high is not None:
            assert (value <= metric.range.high(n, d) + 1e-9).all()


@quick
@given(drawn=clouds(least_n=4))
def test_how_the_metrics_bound_each_other(drawn):
    cloud, _ = drawn
    n, d = cloud.shape
    ratio, rank = metrics.participation_ratio(cloud), metrics.effective_rank(cloud)
    assert 1 - 1e-9 <= ratio <= rank + 1e-9 <= min(d, n - 1) + 2e-9
    assert metrics.isoscore(cloud) == pytest.approx((ratio - 1) / (d - 1), abs=1e-12)
    assert metrics.explained_variance(cloud)[0] <= 1 / np.sqrt(ratio) + 1e-9
    i1, i2 = metrics.partition(cloud / np.abs(cloud).max())
    assert i2 <= (1 - i1) / (2 * np.sqrt(i1)) + 1e-12


# Where it begins


@every
def test_it_begins_at_its_minimum(metric):
    for seed in range(5):
        cloud = np.random.default_rng(seed).normal(size=(metric.minimum, 3))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", SmallSampleWarning)
            assert np.isfinite(value_of(metric, cloud)).all()
        with pytest.warns(UndefinedWarning):
            assert np.isnan(value_of(metric, cloud[:-1])).all()


@every
def test_it_begins_at_its_minimum_dimension(metric):
    line = np.random.default_rng(0).normal(size=(20, 1))
    if metric.minimum_d == 1:
        assert np.isfinite(value_of(metric, line)).all()
        return
    assert metric.minimum_d == 2
    with pytest.warns(UndefinedWarning):
        assert np.isnan(value_of(metric, line)).all()
    assert np.isfinite(value_of(metric, np.random.default_rng(0).normal(size=(20, 2)))).all()


# What perfect isotropy gives


def of_isotropy(kind):
    chosen = [m for m in metrics.catalogue().values() if m.at_isotropy.of == kind]
    return pytest.mark.parametrize("metric", chosen, ids=[m.slug for m in chosen])


@of_isotropy("sample")
@pytest.mark.parametrize("d", [2, 7])
def test_an_isotropic_sample_has_exactly_the_value(metric, d):
    for cloud in (cross(d), whitened(50, d), whitened(9, d, seed=1) * 1e4):
        cov = np.cov(cloud.T)
        expected = metric.at_isotropy.value(*cloud.shape)
        np.testing.assert_allclose(value_of(metric, cloud, cov), expected, rtol=1e-9, atol=1e-9)
        uneven = cloud * np.arange(1, d + 1) @ np.linalg.qr(np.random.default_rng(0).normal(size=(d, d)))[0]
        assert not np.allclose(value_of(metric, uneven, np.cov(uneven.T)), expected, rtol=1e-3)


@of_isotropy("population")
@pytest.mark.parametrize("d, tolerance", [(2, 0.04), (5, 0.04)])
def test_an_isotropic_population_has_the_value_on_average(metric, d, tolerance):
    rng = np.random.default_rng(0)
    values = [value_of(metric, rng.normal(size=(400, d))) for _ in range(30)]
    assert np.mean(values) == pytest.approx(metric.at_isotropy.value(400, d), rel=tolerance, abs=tolerance / 20)


@of_isotropy(None)
def test_isotropic_clouds_can_have_different_values(metric):
    one, other = cross(9) + 0.5, 3 * whitened(18, 9) + 1.5
    assert not np.allclose(value_of(metric, one), value_of(metric, other), rtol=1e-2)


# What it cannot see: two clouds that differ, one value


def blind_pairs():
    rng = np.random.default_rng(0)
    gauss = rng.normal(size=(400, 4))
    heavy = whitened(400, 4, draw=lambda r, shape: r.standard_t(3, size=shape))
    mirrored = np.concatenate([gauss, -gauss])
    copies = np.repeat(gauss[:, :1], 4, axis=1)
    few_of_many = np.concatenate([gauss, np.zeros((400, 20))], axis=1)
    led = gauss * [5, 1, 1, 1]
    return {
        "isoscore": (cross(4), heavy + 1e3),
        "isoscore_star": (cross(4), heavy + 1e3),
        "ev": (led, led[:, ::-1] + 7),
        "ev_1": (whitened(50, 4) * np.sqrt([6, 4, 1, 1]), whitened(50, 4) * np.sqrt([6, 2, 2, 2]) + 7),
        "mean_cosine": (mirrored, mirrored * [100, 1, 1, 1]),
        "participation_ratio": (gauss, few_of_many),
        "effective_rank": (gauss, few_of_many),
        "alpha_req": (whitened(60, 20) * [9, 3, *np.ones(18)], whitened(60, 20) * [5, 5, *np.full(18, 2.0)] + 7),
        "dimension_std": (whitened(400, 4), copies / copies[:, 0].std(ddof=1) + 3),
        "mean_activation": (np.zeros((1, 4)), mirrored * 50),
        "rogue_share": (whitened(50, 4) * np.sqrt([6, 4, 1, 1]), whitened(50, 4) * np.sqrt([6, 2, 2, 2]) + 7),
        "abs_correlation": (gauss, gauss * [1000, -1, 1, 1]),
        "massive_activation": (mirrored, -mirrored[::-1, ::-1]),
    }


@pytest.mark.parametrize("slug", blind_pairs())
def test_what_it_cannot_see(slug):
    one, other = blind_pairs()[slug]
    metric = metrics.catalogue()[slug]
    a, b = (
        value_of(metric, x, np.eye(x.shape[1]) * np.var(x[:, 0], ddof=1) if metric.inputs else None)
        for x in (one, other)
    )
    common = min(np.size(a), np.size(b))  # the longer curve or list goes on
    tolerance = 2 / 800 if slug == "mean_cosine" else 1e-9  # of a symmetric cloud: −1/(n − 1) and what doubling adds
    np.testing.assert_allclose(a.ravel()[:common], b.ravel()[:common], atol=tolerance)


# Autocast


@every
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_autocast_changes_neither_value_nor_gradient(metric, dtype):
    cloud = np.random.default_rng(3).normal(size=(40, 6)) * [3, 2, 1, 1, 1, 0.5] + 0.2
    results = []
    for enabled in (False, True):
        points = torch.tensor(fit_for(metric, cloud), dtype=dtype, requires_grad=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            value = metric.evaluate(points, **extra(metric, torch.eye(6), points.detach()))
        if value.requires_grad:
            value.backward()
        results.append((value.detach(), points.grad))
    torch.testing.assert_close(*results, rtol=1e-6, atol=1e-7, equal_nan=True)


def test_autocast_does_not_change_the_score_of_a_covariance():
    points = torch.randn(64, 6, generator=torch.Generator().manual_seed(0)) * torch.arange(1, 7) + 0.3
    covariance = points.T @ points
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = metrics.isoscore_from_covariance(covariance)
    torch.testing.assert_close(value, metrics.isoscore_from_covariance(covariance), rtol=1e-6, atol=1e-7)

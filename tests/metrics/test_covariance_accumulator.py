"""Streaming sums agree with the whole cloud however it is split."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest
import torch
from reference_clouds import spread_cloud

from isoviz import metrics
from isoviz.metrics import CovarianceAccumulator, UndefinedWarning, isoscore, isoscore_unbiased

SPLITS = {"at once": [500], "row by row": [1] * 500, "uneven": [3, 250, 0, 1, 46, 200]}


def accumulate(cloud, sizes):
    accumulator = CovarianceAccumulator(cloud.shape[1])
    start = 0
    for size in sizes:
        accumulator.update(cloud[start : start + size])
        start += size
    assert start == len(cloud) == accumulator.count
    return accumulator


FAR = {
    "mean of 10⁴": np.random.default_rng(0).normal(size=(500, 6)) + 1e4,
    "drift": np.random.default_rng(1).normal(size=(500, 6)) + 1e4 + np.linspace(0, 30, 500)[:, None],
    "mean of -10⁸": np.random.default_rng(2).normal(size=(500, 6)) * np.arange(1, 7) - 1e8,
}


def check_against_long_doubles(accumulator, cloud, rtol=1e-12):
    """An oracle with more digits: at a mean of 10⁴ a covariance from float64 means is itself off by 1e-12."""
    x = np.asarray(cloud).astype(np.longdouble)
    mean = x.mean(axis=0)
    x = x - mean
    cov = (x.T @ x / (len(x) - 1)).astype(float)
    np.testing.assert_allclose(np.asarray(accumulator.covariance), cov, rtol=rtol, atol=rtol * np.abs(cov).max())
    np.testing.assert_allclose(np.asarray(accumulator.mean), mean.astype(float), rtol=1e-15, atol=1e-14 * np.trace(cov))
    centred = x.astype(float)
    assert accumulator.isoscore() == pytest.approx(isoscore(centred), rel=rtol)
    assert accumulator.isoscore_unbiased() == pytest.approx(isoscore_unbiased(centred), rel=rtol)


def tree(parts):
    """Merged two by two, the halves first."""
    if len(parts) == 1:
        merged = CovarianceAccumulator(parts[0].d)
        merged.merge(parts[0])
        return merged
    merged = tree(parts[: len(parts) // 2])
    merged.merge(tree(parts[len(parts) // 2 :]))
    return merged


@pytest.mark.parametrize("name", FAR)
@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
def test_far_from_the_origin_any_split_any_order_any_tree(name, kind):
    cloud = FAR[name]
    for sizes in SPLITS.values():
        check_against_long_doubles(accumulate(kind(cloud), sizes), cloud)
    borders = [0, 3, 250, 251, 300, 301, 480, 500]
    parts = [accumulate(kind(cloud[a:b]), [b - a]) for a, b in pairwise(borders)]
    check_against_long_doubles(tree(parts), cloud)
    check_against_long_doubles(tree(parts[::-1]), cloud)
    one_by_one = CovarianceAccumulator(6)
    for index in np.random.default_rng(0).permutation(len(parts)):
        one_by_one.merge(parts[index])
    check_against_long_doubles(one_by_one, cloud)


def test_reducing_leaves_the_parts_alone():
    cloud = FAR["drift"]
    parts = [accumulate(torch.from_numpy(cloud[:100]), [100]), accumulate(torch.from_numpy(cloud[100:]), [400])]
    parts.append(CovarianceAccumulator(6))
    states = []
    for part in parts:
        part.reduce(lambda state: states.append(state) or [state])
    totals = [part.reduce(lambda _: states) for part in parts]
    assert [part.count for part in parts] == [100, 400, 0]
    for total in totals:
        check_against_long_doubles(total, cloud)
        np.testing.assert_array_equal(total.covariance, totals[0].covariance)


def test_points_equal_up_to_rounding_are_collapsed_here_too():
    cloud = np.full((50, 4), 0.1)
    cloud[::2, 1] = np.nextafter(0.1, 1)
    for kind in (np.asarray, torch.from_numpy):
        with pytest.warns(UndefinedWarning, match="all points are equal"):
            assert np.isnan(accumulate(kind(cloud), [20, 30]).isoscore())


@pytest.mark.parametrize("scale", [1e-90, 1e90])
def test_overflowing_sums_are_undefined(scale):
    """Fourth powers of 1e90 leave float64; a silent zero or infinity would give a wrong unbiased score."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        accumulator = accumulate(spread_cloud(40, 3) * scale, [40])
        with pytest.warns(UndefinedWarning, match="out of range for its sums; rescale the points"):
            assert np.isnan(accumulator.isoscore_unbiased())


@pytest.mark.parametrize("dtype, rtol", [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
def test_lower_precision_batches_sum_in_float64(dtype, rtol):
    cloud = np.random.default_rng(0).normal(size=(4000, 8)) * np.arange(1, 9) + 100
    exact = cloud if dtype == torch.float32 else torch.from_numpy(cloud).to(dtype).double().numpy()
    accumulator = accumulate(torch.from_numpy(cloud).to(dtype), [64] * 62 + [32])
    assert accumulator.covariance.dtype == torch.float64
    cov = np.cov(exact.T)
    np.testing.assert_allclose(accumulator.covariance, cov, atol=rtol * np.abs(cov).max())
    assert accumulator.isoscore() == pytest.approx(isoscore(exact), rel=rtol)


def test_autocast_and_gradients_stay_out():
    batch = torch.randn(300, 8, generator=torch.Generator().manual_seed(0)).requires_grad_()
    plain, cast = CovarianceAccumulator(8), CovarianceAccumulator(8)
    plain.update(batch)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast.update(batch)
    assert torch.equal(plain.covariance, cast.covariance)
    assert not cast.covariance.requires_grad


def test_undefined_measures_below_two_points():
    accumulator = CovarianceAccumulator(3)
    for read in (lambda a: a.mean, lambda a: a.covariance, lambda a: a.isoscore()):
        with pytest.warns(UndefinedWarning):
            assert np.isnan(read(accumulator)).all()
    accumulator.update(np.ones((1, 3)))
    np.testing.assert_array_equal(accumulator.mean, 1.0)
    with pytest.warns(UndefinedWarning, match="at least 2 points, got 1"):
        assert np.isnan(accumulator.covariance).all()
    accumulator.update(np.ones((4, 3)))
    np.testing.assert_array_equal(accumulator.covariance, 0.0)
    with pytest.warns(UndefinedWarning, match="all points are equal"):
        assert np.isnan(accumulator.isoscore())


# IsoScore* from running sums


def streamed(points, parts=3):
    return accumulate(points, [len(part) for part in np.array_split(points, parts)])


def star(stream, sigma, zeta):
    estimate = metrics.get("isoscore_star").estimate
    assert estimate is not None
    return estimate(stream.sample(shrinkage_cov=sigma, zeta=zeta))


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")  # of the sums behind isoscore_unbiased
@pytest.mark.parametrize("zeta", [0.0, 0.2, 1.0])
@pytest.mark.parametrize(("n", "scale"), [(40, 1.0), (40, 1e90), (4, 1e-90)])  # fourth powers of these have no number
def test_in_batches_as_at_once(zeta, n, scale):
    random = np.random.default_rng(0)
    points = (random.normal(size=(n, 6)) * np.arange(1, 7) + 3) * scale
    sigma = np.cov(random.normal(size=(30, 6)).T) * scale**2
    estimate = star(streamed(points), sigma, zeta)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", metrics.SmallSampleWarning)
        expected = metrics.isoscore_star(points / scale, sigma / scale**2, zeta)
    assert estimate.problem is None and estimate.value == pytest.approx(expected, rel=1e-12)


def test_copies_of_a_point_have_the_score_of_sigma_s_as_long_as_it_weighs_anything():
    sigma = np.diag([3.0, 1.0, 1.0])
    copies = streamed(np.full((5, 3), 7.0))
    assert star(copies, sigma, 0.2).value == pytest.approx(metrics.isoscore_from_covariance(sigma))
    assert star(copies, sigma, 0.0).problem == "all points are equal"
    assert star(copies, np.zeros((3, 3)), 0.2).problem == "all points are equal"

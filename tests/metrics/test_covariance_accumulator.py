"""Streaming sums agree with the whole cloud however it is split."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reference_clouds import spread_cloud

from isoviz.metrics import CovarianceAccumulator, UndefinedWarning, isoscore, isoscore_unbiased

SPLITS = {
    "at once": [500],
    "row by row": [1] * 500,
    "uneven": [3, 250, 0, 1, 46, 200],
}


def accumulate(cloud, sizes):
    accumulator = CovarianceAccumulator(cloud.shape[1])
    start = 0
    for size in sizes:
        accumulator.update(cloud[start : start + size])
        start += size
    assert start == len(cloud) == accumulator.count
    return accumulator


def check(accumulator, cloud, rtol):
    np.testing.assert_allclose(accumulator.mean, cloud.mean(0), rtol=rtol)
    cov = np.cov(cloud.T)
    np.testing.assert_allclose(accumulator.covariance, cov, rtol=rtol, atol=rtol * np.abs(cov).max())
    assert accumulator.trace == pytest.approx(np.trace(cov), rel=rtol)
    assert accumulator.isoscore() == pytest.approx(isoscore(cloud), rel=rtol)
    assert accumulator.isoscore_unbiased() == pytest.approx(isoscore_unbiased(cloud), rel=rtol)


@pytest.mark.parametrize("sizes", SPLITS.values(), ids=SPLITS.keys())
@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
def test_any_split_gives_the_whole(kind, sizes):
    cloud = spread_cloud(500, 12) * np.linspace(0.01, 5, 12)
    check(accumulate(kind(cloud), sizes), cloud, rtol=1e-12)


def test_far_from_the_origin_and_drifting():
    rng = np.random.default_rng(0)
    cloud = rng.normal(size=(500, 6)) + 1e4 + np.linspace(0, 30, 500)[:, None]
    check(accumulate(cloud, SPLITS["uneven"]), cloud, rtol=1e-10)


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
def test_merging_processes_and_leaving_the_parts_alone(kind):
    cloud = spread_cloud(500, 12)
    parts = [accumulate(kind(cloud[a:b]), [b - a]) for a, b in ((0, 40), (40, 41), (41, 500))]
    before = np.array(parts[1].mean)
    whole = CovarianceAccumulator(12)
    for part in (*parts, CovarianceAccumulator(12)):
        whole.merge(part)
    check(whole, cloud, rtol=1e-12)
    np.testing.assert_array_equal(parts[1].mean, before)
    assert [part.count for part in parts] == [40, 1, 459]
    again = parts[2]
    again.merge(parts[0])
    again.merge(parts[1])
    check(again, cloud, rtol=1e-12)
    check(whole, cloud, rtol=1e-12)


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


def test_what_is_undefined_before_two_points():
    accumulator = CovarianceAccumulator(3)
    for read in (lambda a: a.mean, lambda a: a.covariance, lambda a: a.trace, lambda a: a.isoscore()):
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


def test_one_tensor_leaves_an_undefined_tensor():
    accumulator = CovarianceAccumulator(3)
    accumulator.update(torch.ones(1, 3))
    with pytest.warns(UndefinedWarning):
        covariance = accumulator.covariance
    assert torch.is_tensor(covariance)
    assert covariance.isnan().all()


def test_wrong_widths_are_refused():
    accumulator = CovarianceAccumulator(3)
    with pytest.raises(ValueError, match="batch must have 3 dimensions, got shape"):
        accumulator.update(np.ones((2, 4)))
    with pytest.raises(ValueError, match="cannot merge 4 dimensions into 3"):
        accumulator.merge(CovarianceAccumulator(4))
    with pytest.raises(ValueError, match="finite"):
        accumulator.update(np.full((2, 3), np.nan))
    with pytest.raises(ValueError, match="d must be at least 1, got 0"):
        CovarianceAccumulator(0)

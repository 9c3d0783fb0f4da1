"""IsoScore* from running sums equals that of the points held together, and is undefined where that is."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from isoviz import metrics
from isoviz.metrics.cloud import Estimate
from isoviz.metrics.streaming import CloudStream


def streamed(points: np.ndarray, parts: int = 3) -> CloudStream:
    stream = CloudStream(points.shape[1], float(np.finfo(np.float64).eps))
    for part in np.array_split(points, parts):
        stream.update(part)
    return stream


def star(stream: CloudStream, sigma: np.ndarray, zeta: float) -> Estimate:
    estimate = metrics.get("isoscore_star").estimate
    assert estimate is not None
    return estimate(stream.sample(shrinkage_cov=sigma, zeta=zeta))


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")  # of the sums behind isoscore_unbiased
@pytest.mark.parametrize("zeta", [0.0, 0.2, 1.0])
@pytest.mark.parametrize(("n", "scale"), [(40, 1.0), (40, 1e90), (4, 1e-90)])  # fourth powers of these have no number
def test_in_batches_as_at_once(zeta: float, n: int, scale: float) -> None:
    random = np.random.default_rng(0)
    points = (random.normal(size=(n, 6)) * np.arange(1, 7) + 3) * scale
    sigma = np.cov(random.normal(size=(30, 6)).T) * scale**2
    estimate = star(streamed(points), sigma, zeta)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", metrics.SmallSampleWarning)
        expected = metrics.isoscore_star(points / scale, sigma / scale**2, zeta)
    assert estimate.problem is None and estimate.value == pytest.approx(expected, rel=1e-12)


def test_tensors() -> None:
    points = torch.from_numpy(np.random.default_rng(1).normal(size=(20, 4)))
    stream = CloudStream(4)
    stream.update(points)
    expected = float(metrics.isoscore_star(points, torch.eye(4, dtype=torch.float64), 0.3))
    assert star(stream, np.eye(4), 0.3).value == pytest.approx(expected, rel=1e-12)


def test_copies_of_a_point_have_the_score_of_sigma_s_as_long_as_it_weighs_anything() -> None:
    sigma = np.diag([3.0, 1.0, 1.0])
    copies = streamed(np.full((5, 3), 7.0))
    assert star(copies, sigma, 0.2).value == pytest.approx(metrics.isoscore_from_covariance(sigma))
    assert star(copies, sigma, 0.0).problem == "all points are equal"
    assert star(copies, np.zeros((3, 3)), 0.2).problem == "all points are equal"


def test_undefined_for_one_point_or_one_dimension() -> None:
    one = star(streamed(np.ones((1, 3)), parts=1), np.eye(3), 0.2)
    assert one.problem == "it needs at least 2 points, got 1" and np.isnan(one.value)
    line = star(streamed(np.arange(4.0)[:, None]), np.eye(1), 0.2)
    assert line.problem is not None and line.problem.startswith("d = 1")


@pytest.mark.parametrize(
    ("sigma", "zeta", "message"),
    [(np.eye(2), 0.2, "must be"), (np.eye(3), 1.5, "zeta"), (-np.eye(3), 0.2, "positive semidefinite")],
)
def test_an_invalid_shrinkage_matrix_is_refused(sigma: np.ndarray, zeta: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        star(streamed(np.random.default_rng(2).normal(size=(9, 3))), sigma, zeta)

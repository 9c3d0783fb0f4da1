"""Every metric of a cloud on the inputs that break implementations."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest
import torch
from reference_clouds import spread_cloud

from isoviz import metrics
from isoviz.metrics import UndefinedWarning


def in_kind(points, value):
    """Intervals hold plain floats: as the other metrics answer, for the tests of the input's kind."""
    if not torch.is_tensor(points):
        return value
    return torch.tensor(value, dtype=torch.float64 if points.dtype in (torch.float64, torch.int64) else torch.float32)


OF_A_CLOUD = {
    "isoscore": metrics.isoscore,
    "isoscore_star": lambda x: metrics.isoscore_star(x, np.eye(np.shape(x)[-1] or 1), 0.0),
    "isoscore_unbiased": metrics.isoscore_unbiased,
    "explained_variance": metrics.explained_variance,
    "mean_cosine": metrics.mean_cosine,
    "partition": lambda w: metrics.partition(w)[1],
    "twonn": metrics.twonn,
    "local_dimension": metrics.local_dimension,
    "dimension_std": metrics.dimension_std,
    "mean_activation": metrics.mean_activation,
    "abs_correlation": metrics.abs_correlation,
    "participation_ratio": metrics.participation_ratio,
    "effective_rank": metrics.effective_rank,
    "alpha_req": metrics.alpha_req,
    "isoscore_interval": lambda x: in_kind(x, metrics.isoscore_interval(x).low),
    "participation_ratio_interval": lambda x: in_kind(x, metrics.participation_ratio_interval(x).high),
    "rogue_share": metrics.rogue_share,
    "massive_activation": metrics.massive_activation,
    "hubness": metrics.hubness,
    "reciprocity": metrics.reciprocity,
    "rankme": metrics.rankme,
    "uniformity": metrics.uniformity,
    "epps_pulley": metrics.epps_pulley,
    "std_histogram": lambda x: metrics.std_histogram(x, 5).percent,
    "outlier_dimensions": metrics.outlier_dimensions,
    "row_norms": metrics.row_norms,
}
SPECTRAL = [  # what is read from the covariance
    "isoscore",
    "isoscore_star",
    "isoscore_unbiased",
    "explained_variance",
    "participation_ratio",
    "effective_rank",
    "isoscore_interval",
    "participation_ratio_interval",
]
every = pytest.mark.parametrize("name", OF_A_CLOUD)
pytestmark = pytest.mark.filterwarnings("ignore::isoviz.metrics.SmallSampleWarning")


KINDS = (np.asarray, torch.from_numpy)
BAD = (
    (np.ones(5), r"shape \(points, dimensions\).*got \(5,\)"),
    (np.ones((2, 3, 4)), r"got \(2, 3, 4\)"),
    (np.ones((4, 0)), "at least one dimension"),
    (np.array([[1.0, 2.0], [np.nan, 1.0], [0.0, 0.0]]), "finite, got 1 of 6"),
    (np.array([[np.inf, 2.0], [-np.inf, 1.0], [0.0, 0.0]]), "finite, got 2 of 6"),
)


@every
def test_bad_clouds_are_refused(name):
    for kind, (cloud, reason) in product(KINDS, BAD):
        with pytest.raises(ValueError, match=reason):
            OF_A_CLOUD[name](kind(cloud))


@pytest.mark.parametrize("cloud", [[["a", "b"], ["c", "d"]], [[1, 2], [3]], [[None, 1], [2, 3]]])
def test_a_non_numeric_array_is_refused(cloud):
    with pytest.raises(ValueError, match="points must be"):
        metrics.isoscore(cloud)


@pytest.mark.parametrize("name", sorted(set(OF_A_CLOUD) - {"row_norms"}))  # of no rows there are no norms
def test_no_rows_are_undefined(name):
    for kind in KINDS:
        with pytest.warns(UndefinedWarning) as caught:
            value = OF_A_CLOUD[name](kind(np.zeros((0, 3))))
        assert np.isnan(np.asarray(value)).all()
        assert torch.is_tensor(value) == (kind is torch.from_numpy)
        if name not in ("outlier_dimensions", "explained_variance"):  # as long as what there is
            assert np.asarray(value).size > 0
        assert caught[0].filename == __file__  # the caller's line, not the library's


@pytest.mark.parametrize("name", SPECTRAL)
def test_equal_points_are_undefined(name):
    """0.1 and 1/3 have no exact mean: a naive centring leaves rounding behind and scores it."""
    for n, dtype, kind in product((1, 2, 7, 100), (np.float32, np.float64), KINDS):
        cloud = np.tile(np.array([0.1, 1 / 3, -7e5, 0.0], dtype=dtype), (n, 1))
        with pytest.warns(UndefinedWarning):
            value = OF_A_CLOUD[name](kind(cloud))
        assert np.isnan(np.asarray(value)).all()


@pytest.mark.parametrize("name", SPECTRAL)
def test_points_equal_up_to_rounding_are_undefined(name):
    for dtype, kind in product((np.float32, np.float64), KINDS):
        cloud = np.full((50, 4), 0.1, dtype=dtype)
        cloud[::2, 1] = np.nextafter(dtype(0.1), dtype(1))
        assert len(np.unique(cloud, axis=0)) == 2
        with pytest.warns(UndefinedWarning):
            assert np.isnan(np.asarray(OF_A_CLOUD[name](kind(cloud)))).all()
        cloud[::2, 1] += dtype(1e-3)
        assert np.isfinite(np.asarray(OF_A_CLOUD[name](kind(cloud)))).all()


def test_an_undefined_score_stays_connected_to_the_graph():
    points = torch.ones(4, 3, requires_grad=True)
    with pytest.warns(UndefinedWarning):
        metrics.isoscore(points).backward()
    assert points.grad.isnan().all()


@every
def test_every_kind_of_array_gives_the_same(name):
    metric = OF_A_CLOUD[name]
    cloud = np.round(spread_cloud(30, 6) * 2)
    expected = np.asarray(metric(cloud))
    locked = cloud.copy()
    locked.flags.writeable = False
    padded = np.zeros((60, 12))
    padded[::2, ::2] = cloud
    for same in (
        locked,
        np.asfortranarray(cloud),
        padded[::2, ::2],
        cloud.astype(np.int32),
        cloud.astype(np.float16),
        cloud.astype(">f8"),
        cloud.tolist(),
    ):
        np.testing.assert_allclose(metric(same), expected, rtol=1e-12, atol=1e-12)
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.int64):
        tensor = torch.from_numpy(cloud).to(dtype)
        assert torch.equal(tensor.double(), torch.from_numpy(cloud)), "the cloud must be exact in every type"
        value = metric(tensor)
        if name != "outlier_dimensions":  # indices
            assert value.dtype == (torch.float64 if dtype in (torch.float64, torch.int64) else torch.float32)
        np.testing.assert_allclose(value, expected, rtol=2e-5, atol=1e-6)


@every
def test_the_input_is_left_alone(name):
    cloud = spread_cloud(20, 6)
    copy, tensor = cloud.copy(), torch.from_numpy(cloud.copy())
    OF_A_CLOUD[name](cloud)
    OF_A_CLOUD[name](tensor)
    np.testing.assert_array_equal(cloud, copy)
    np.testing.assert_array_equal(tensor, copy)


@every
def test_a_constant_dimension_is_no_problem(name):
    cloud = spread_cloud(40, 4)
    cloud[:, 1] = 0.1
    for kind in KINDS:
        assert np.isfinite(np.asarray(OF_A_CLOUD[name](kind(cloud)))).all()


WARNS = ["isoscore", "isoscore_star", "explained_variance", "participation_ratio", "effective_rank", "alpha_req"]


@pytest.mark.filterwarnings("default::isoviz.metrics.SmallSampleWarning")
@pytest.mark.parametrize("name", [*WARNS, "participation_ratio_interval", "isoscore_unbiased", "isoscore_interval"])
def test_a_transposed_cloud_is_reported_where_it_matters(name):
    """Fewer points than dimensions: what a transposed array looks like. The unbiased score is made for it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        OF_A_CLOUD[name](spread_cloud(40, 8).T)
    small_sample = [warning for warning in caught if issubclass(warning.category, metrics.SmallSampleWarning)]
    expected = name in WARNS
    assert bool(small_sample) == expected
    if expected:
        assert "n = 8 points in d = 40" in str(small_sample[0].message)


@pytest.mark.parametrize(
    "cov, reason",
    [
        (np.diag([1.0, 1.0, -0.5]), "positive semidefinite, got a smallest eigenvalue of -0.5"),
        (np.array([[1.0, 0.5, 0], [0.1, 1, 0], [0, 0, 1]]), "symmetric, got entries that differ by 0.4"),
        (np.full((3, 3), np.nan), "finite"),
        (np.ones((3, 2)), "square"),
    ],
)
@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
def test_an_invalid_covariance_is_refused(cov, reason, kind):
    with pytest.raises(ValueError, match=reason):
        metrics.isoscore_star(kind(spread_cloud(9, 3)), kind(cov), 0.2)
    with pytest.raises(ValueError, match=reason):
        metrics.isoscore_from_covariance(kind(cov))

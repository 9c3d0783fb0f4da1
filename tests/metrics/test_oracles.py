"""Every metric against an oracle that goes another way, on one table of clouds, in numpy and in torch (float64)."""

from __future__ import annotations

import math
from itertools import combinations, permutations

import numpy as np
import pytest
import torch
from IsoScore.IsoScore import IsoScore
from reference_clouds import ORACLE_CLOUDS, isoscore_by_eigenvalues
from scipy.spatial.distance import cdist, pdist
from scipy.stats import entropy
from sklearn.decomposition import PCA

from isoviz import metrics

pytestmark = pytest.mark.filterwarnings("ignore::isoviz.metrics.SmallSampleWarning")

# Absolute for values within [−1, 1], relative for larger ones. What each cloud costs in digits, in the oracle as much as
# in the metric: a mean of 10⁴ is not exact to more than 1e-12 of the spread in the numbers themselves.
TOLERANCE = {
    "isotropic Gaussian": 1e-12,
    "I-STAR's diagonal": 1e-11,
    "low rank": 1e-12,
    "fewer points than dimensions": 1e-12,
    "rogue dimension": 1e-11,
    "heavy tails": 1e-12,
    "duplicates": 1e-12,
    "two dimensions": 1e-12,
    "mean of 10⁴": 1e-10,
}


def exactly_centred(x):
    """The column means by exact summation, subtracted in extended precision."""
    means = np.array([math.fsum(column) for column in x.T], dtype=np.longdouble) / len(x)
    return (x.astype(np.longdouble) - means).astype(np.float64)


def spectrum(x):
    """The d eigenvalues of the covariance, from scikit-learn's PCA, which takes singular values."""
    variances = PCA(svd_solver="full").fit(exactly_centred(x)).explained_variance_
    return np.concatenate([variances, np.zeros(x.shape[1] - len(variances))])


def isoscore(x):
    return isoscore_by_eigenvalues(np.diag(spectrum(x)))


def shrinkage(d):
    """A Σ_S with correlations, of another shape than any of the clouds."""
    index = np.arange(d)
    return 0.7 ** np.abs(index[:, None] - index) * np.sqrt(np.outer(1 + index % 3, 1 + index % 3))


def isoscore_star(x):
    centred = exactly_centred(x)
    covariance = sum(np.outer(row, row) for row in centred) / (len(x) - 1)
    return isoscore_by_eigenvalues(0.8 * covariance + 0.2 * shrinkage(x.shape[1]))


def over_triples(a):
    """Σ a_ij a_jk over distinct i, j, k of a symmetric matrix, its diagonal unread."""
    off = a - np.diag(np.diag(a))
    return sum(off[j].sum() ** 2 - off[j] @ off[j] for j in range(len(a)))


def over_quadruples(a):
    """Σ a_ij a_kl over distinct i, j, k, l: all pairs of pairs, less those that share one index or both."""
    off = a - np.diag(np.diag(a))
    return off.sum() ** 2 - 4 * over_triples(a) - 2 * (off**2).sum()


def isoscore_unbiased(x):
    """From off-diagonal entries only: of the inner products for tr(Σ²) (Chen, Zhang & Zhong 2010), of the halved squared
    distances for tr(Σ)². The metric has neither matrix; it corrects the traces of Σ and Σ² by fourth powers."""
    centred = exactly_centred(x)
    n, d = x.shape
    inner, halved = centred @ centred.T, cdist(centred, centred) ** 2 / 2
    of_2, of_3, of_4 = n * (n - 1), n * (n - 1) * (n - 2), n * (n - 1) * (n - 2) * (n - 3)
    squares = (inner**2).sum() - (np.diag(inner) ** 2).sum()
    trace_of_square = squares / of_2 - 2 * over_triples(inner) / of_3 + over_quadruples(inner) / of_4
    square_of_trace = over_quadruples(halved) / of_4
    return (square_of_trace / trace_of_square - 1) / (d - 1)


def explained_variance(x):
    values = spectrum(x)
    return [math.fsum(values[:k]) / math.fsum(values) for k in range(1, min(x.shape) + 1)]


def mean_cosine(x):
    return 1 - pdist(x, "cosine").mean() if np.abs(x).max() < 1e3 else mean_cosine_far_from_the_origin(x)


def mean_cosine_far_from_the_origin(x):
    """1 − cos = ‖û − v̂‖²/2, because 1 − û·v̂ loses all digits where the vectors nearly agree."""
    x = x.astype(np.longdouble)
    unit = x / np.sqrt((x**2).sum(axis=1, keepdims=True))
    return 1 - float(np.mean([((a - b) ** 2).sum() / 2 for a, b in combinations(unit, 2)]))


def twonn(x):
    """Paper's definition over the full matrix of distances; copies are taken out first."""
    points = np.unique(exactly_centred(np.unique(x, axis=0)), axis=0)
    nearest = np.sort(cdist(points, points), axis=1)[:, 1:3]
    ratios = sorted(second / first for first, second in nearest)
    n = len(ratios)
    above = below = 0.0
    for rank, ratio in enumerate(ratios[: int(0.9 * n)], start=1):
        above += math.log(ratio) * -math.log(1 - rank / n)
        below += math.log(ratio) ** 2
    return above / below


def participation_ratio(x):
    values = spectrum(x)
    return math.fsum(values) ** 2 / math.fsum(values**2)


def effective_rank(x):
    return math.exp(entropy(spectrum(x)))


def dimension_std(x):
    centred = exactly_centred(x)
    return [math.sqrt(math.fsum(v * v for v in column) / len(x)) for column in centred.T]


def rogue_share(x):
    squares = [math.fsum(v * v for v in column) for column in exactly_centred(x).T]
    return max(squares) / math.fsum(squares)


def mean_activation(x):
    return [math.fsum(column) / len(x) for column in x.T]


def abs_correlation(x):
    return np.abs(np.corrcoef(exactly_centred(x).T))


ORACLES = {
    "isoscore": isoscore,
    "isoscore_star": isoscore_star,
    "isoscore_unbiased": isoscore_unbiased,
    "ev": explained_variance,
    "ev_1": lambda x: np.linalg.norm(exactly_centred(x), 2) ** 2 / (exactly_centred(x) ** 2).sum(),
    "mean_cosine": mean_cosine,
    "twonn": twonn,
    "participation_ratio": participation_ratio,
    "effective_rank": effective_rank,
    "dimension_std": dimension_std,
    "mean_activation": mean_activation,
    "rogue_share": rogue_share,
    "abs_correlation": abs_correlation,
}


@pytest.mark.parametrize("cloud", ORACLE_CLOUDS)
@pytest.mark.parametrize("slug", ORACLES)
def test_it_is_its_oracle(slug, cloud):
    x, metric = ORACLE_CLOUDS[cloud], metrics.catalogue()[slug]
    inputs = {"shrinkage_cov": shrinkage(x.shape[1]), "zeta": 0.2} if metric.inputs else {}
    expected, close = ORACLES[slug](x), {"rtol": TOLERANCE[cloud], "atol": TOLERANCE[cloud]}
    value = metric.evaluate(x, **inputs)
    np.testing.assert_allclose(value, expected, **close)
    tensor = metric.evaluate(torch.from_numpy(x), **inputs)
    assert tensor.dtype == torch.float64
    np.testing.assert_allclose(tensor.detach(), expected, **close)


# The U-statistics, literally


@pytest.mark.parametrize(
    "cloud", ["isotropic Gaussian", "rogue dimension", "heavy tails", "two dimensions", "mean of 10⁴"]
)
def test_the_unbiased_score_and_its_oracle_are_the_mean_over_all_quadruples(cloud):
    x = ORACLE_CLOUDS[cloud][:7]
    squares, products = [], []
    for i, j, k, m in permutations(exactly_centred(x), 4):
        a, b = i - j, k - m
        squares.append(float(a @ b) ** 2 / 4)
        products.append(float(a @ a) * float(b @ b) / 4)
    expected = (math.fsum(products) / math.fsum(squares) - 1) / (x.shape[1] - 1)
    tolerance = 10 * TOLERANCE[cloud]
    assert metrics.isoscore_unbiased(x) == pytest.approx(expected, rel=tolerance)
    assert isoscore_unbiased(x) == pytest.approx(expected, rel=tolerance)


# The authors' package


@pytest.mark.parametrize("cloud", ORACLE_CLOUDS)
def test_isoscore_is_the_authors_package_1_0(cloud):
    """It wants (dimensions, points) and refuses n < d, so such a cloud is repeated: that leaves IsoScore as it is. It does
    not centre in extended precision: 1e-11 at a mean of 10⁴."""
    x = ORACLE_CLOUDS[cloud]
    repeated = np.tile(x, (-(-x.shape[1] // len(x)), 1))
    assert metrics.isoscore(x) == pytest.approx(IsoScore(repeated.T), abs=1e-11)


def test_the_score_of_a_covariance_by_hand():
    """diag{10, 6, 4, 4, 1, …, 1} of 768: T = 788, F = 932, as fractions."""
    covariance = np.diag([10.0, 6.0, 4.0, 4.0] + [1.0] * 764)
    expected = (788**2 / 932 - 1) / 767
    assert expected == pytest.approx(0.86734, abs=5e-6)  # printed as 0.86 in the paper
    assert metrics.isoscore_from_covariance(covariance) == pytest.approx(expected, rel=1e-14)
    assert metrics.isoscore_from_covariance(torch.from_numpy(covariance)).item() == pytest.approx(expected, rel=1e-14)

"""IsoScore, IsoScore* and the unbiased score: (PR − 1)/(d − 1) with PR = T²/F, without eigendecomposition.

The spectral algorithms that define IsoScore (Rudman et al. 2022) and IsoScore* (Rudman & Eickhoff 2024, Algorithm 1) reduce
exactly to this closed form. Values are not clamped: round-off may give −1e-16.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from isoviz.errors import InputError
from isoviz.metrics.cloud import (
    Estimate,
    Points,
    Value,
    answer,
    is_tensor,
    sum_dtype,
    symmetric_matrix,
    too_few,
    undefined,
    warn_if_small,
    working_dtype,
)
from isoviz.metrics.moments import (
    Moments,
    covariance_moments,
    estimated,
    plug_in_estimate,
    plug_in_score,
    ratio_estimate,
    unbiased_estimate,
)
from isoviz.metrics.protocol import (
    COVARIANCE_ONLY,
    AtIsotropy,
    Citation,
    EnoughPoints,
    Metric,
    Range,
    Reference,
    constant,
    highest_rank,
)
from isoviz.metrics.sample import Sample

if TYPE_CHECKING:
    from isoviz.metrics.intervals import Interval

REPORTED_ZETA = 0.2
"""ζ of every reported IsoScore*, the same for all methods so that they can be compared (as in I-STAR's figures)."""


def isoscore(points: Points) -> Value:
    """IsoScore of a cloud (n, d); differentiable for a tensor.

    0: one direction carries all variance; 1: all directions carry the same. For n points it is at most (n − 2)/(d − 1), and it
    is biased low unless n is many times d.
    """
    return _of_cloud("isoscore", points, plug_in_estimate)


def participation_ratio(points: Points) -> Value:
    """PR = T²/F of the covariance of a cloud (n, d), between 1 and min(d, n − 1); differentiable for a tensor."""
    return _of_cloud("participation_ratio", points, ratio_estimate)


def isoscore_unbiased(points: Points) -> Value:
    """IsoScore of the population behind a small sample: (V/U − 1)/(d − 1); differentiable for a tensor.

    U and V are the distribution-free unbiased estimates of tr(Σ²) and tr(Σ)² (Himeno & Yamada 2014). Their ratio is consistent
    but not exactly unbiased: at n = 64 its mean was 1 % (d = 768), 2 % (d = 32) and 6 % (d = 2) too high on Gaussian data, and
    two to three times as much on heavy tails; at n = 16, d = 2 it was a quarter too high. It may exceed 1. It assumes
    independent points, so use one token per sentence. Undefined for n < 4 and for U = 0.
    """
    return _of_cloud("isoscore_unbiased", points, unbiased_estimate)


def isoscore_star(points: Points, shrinkage_cov: Points, zeta: float) -> Value:
    """IsoScore of Σ_ζ = (1 − ζ)Σ_X + ζΣ_S; differentiable in `points` for a tensor, with Σ_S constant.

    Args:
        points: (n, d).
        shrinkage_cov: Σ_S, (d, d), symmetric positive semidefinite, with divisor n − 1 as Σ_X.
        zeta: weight of the shrinkage matrix, in [0, 1]; at 1 the value does not depend on `points`.

    Raises:
        ValueError: wrong shapes, non-finite entries, Σ_S not symmetric positive semidefinite, or
            ζ outside [0, 1].
    """
    if is_tensor(points):
        from isoviz.metrics.backward import checked_cloud
        from isoviz.metrics.penalties import star_moments

        tensor: Any = points
        zeta, shrinkage = checked_zeta(zeta), symmetric_matrix(shrinkage_cov, "shrinkage_cov")
        cloud = checked_cloud(tensor)
        n, d = cloud.shape
        check_width(shrinkage.shape[0], d)
        estimate = estimated(plug_in_estimate, star_moments(cloud, shrinkage, zeta) if n >= 2 else None, n)
    else:
        sample = Sample(points, inputs={"shrinkage_cov": shrinkage_cov, "zeta": zeta})
        n, d = sample.n, sample.d
        estimate = _star(sample)
    if zeta == 0 and not estimate.problem:
        warn_if_small("isoscore_star", n, d)
    return answer("isoscore_star", points, estimate)


def isoscore_from_covariance(cov: Points) -> Value:
    """IsoScore of a covariance matrix (d, d), symmetric positive semidefinite; differentiable for a tensor."""
    matrix = symmetric_matrix(cov, "cov")
    if len(matrix) < 2 or not matrix.any():
        problem = "d = 1" if len(matrix) < 2 else "the matrix is zero"
        return answer("isoscore_from_covariance", cov, undefined(problem))
    if not is_tensor(cov):
        return float(plug_in_score(covariance_moments(matrix)))
    tensor: Any = cov
    scaled = tensor.to(working_dtype(tensor)) / float(np.abs(matrix).max())
    wide = sum_dtype(tensor.device)
    trace, frobenius = scaled.diagonal().sum(dtype=wide), scaled.square().sum(dtype=wide)
    score: Value = plug_in_score(Moments(0, len(matrix), trace, frobenius, None, None, False)).to(scaled.dtype)
    return score


def checked_zeta(zeta: float) -> float:
    zeta = float(zeta)
    if not 0.0 <= zeta <= 1.0:
        raise InputError(f"zeta must lie in [0, 1], got {zeta}")
    return zeta


def _of_cloud(metric: str, points: Points, estimator: Callable[[Moments], Estimate]) -> Value:
    wants_quartic = estimator is unbiased_estimate
    if is_tensor(points):
        from isoviz.metrics.backward import checked_cloud, tensor_moments

        tensor: Any = points
        cloud = checked_cloud(tensor)
        n, d = cloud.shape
        moments = tensor_moments(cloud, quartic=wants_quartic) if n >= 2 else None
    else:
        sample = Sample(points)
        n, d, moments = sample.n, sample.d, sample.moments
    estimate = estimated(estimator, moments, n)
    if not wants_quartic and not estimate.problem:
        warn_if_small(metric, n, d, depth=2)
    value: Value = answer(metric, points, estimate, depth=2)
    return value


def check_width(shrinkage_d: int, d: int) -> None:
    if shrinkage_d != d:
        raise InputError(f"shrinkage_cov must be ({d}, {d}) for points of {d} dimensions, got {shrinkage_d}")


# ------------------------------------------------------------------------------------------------- catalogue


def _from_moments(estimator: Callable[[Moments], Estimate]) -> Callable[[Sample], Estimate]:
    return lambda sample: estimated(estimator, sample.moments, sample.n)


def _star(sample: Sample) -> Estimate:
    zeta = checked_zeta(sample.inputs["zeta"])
    shrinkage = symmetric_matrix(sample.inputs["shrinkage_cov"], "shrinkage_cov")
    check_width(shrinkage.shape[0], sample.d)
    if sample.n < 2:
        return undefined(too_few(sample.n))
    covariance = sample.true_covariance
    moments = covariance_moments((1 - zeta) * covariance + zeta * shrinkage)
    # a collapsed cloud has the score of Σ_S if ζ > 0
    collapsed = zeta == 0 and bool(np.all(covariance.diagonal() <= (sample.eps * sample.mean) ** 2))
    return plug_in_estimate(replace(moments, collapsed=moments.collapsed or collapsed))


def _unbiased_interval(sample: Sample) -> Interval:
    from isoviz.metrics.intervals import Interval, interval_of

    if sample.moments is None or sample.moments.centred is None:
        problem = too_few(sample.n) if sample.n < 2 else "it needs the whole cloud in memory"
        return Interval.missing(problem, sample.n, sample.d)
    return interval_of(sample.moments)


ISOSCORE = Metric(
    slug="isoscore",
    place=10,
    title="IsoScore",
    symbol="ι",
    sees="How evenly the variance is spread over all d directions.",
    blind_to="Cannot see the mean or anything beyond second moments: tails, clusters and copies of points do not change it.",
    range=Range("0 … 1, at most (n − 2)/(d − 1)", constant(0.0), lambda n, d: (highest_rank(n, d) - 1) / (d - 1)),
    at_isotropy=AtIsotropy("1", constant(1.0), "sample"),
    unchanged_by=COVARIANCE_ONLY,
    enough=EnoughPoints(
        "5 d, at least 40: up to 25 % low, worst for an isotropic cloud, because 1/PR is too large by 1/(n − 1)",
        "falls",
        lambda d: max(5 * d, 40),
        0.25,
        reads="low",
    ),
    paper=Citation("Rudman et al. 2022", "rudman2022isoscore", 2022, "arXiv:2108.07344"),
    equation=r"\iota = \frac{(\operatorname{tr}\Sigma)^2 / \lVert\Sigma\rVert_F^2 - 1}{d - 1}",
    function=isoscore,
    estimate=_from_moments(plug_in_estimate),
    minimum_d=2,
    headline=True,
    # recorded in docs/embeddings.json and isoviz/demo/examples
    references=(
        Reference("all-MiniLM-L6-v2 on STS-B sentences", 0.3105, 2910, 384),
        Reference("demo/tiny-bert on demo/acceptability, layer 4, mean", 0.1591, 500, 128),
        Reference("the same model fine-tuned, classifier input", 0.0282, 500, 128),
    ),
)

ISOSCORE_STAR = replace(
    ISOSCORE,
    slug="isoscore_star",
    place=20,
    title="IsoScore*",
    symbol="ι*",
    sees="IsoScore of the cloud's covariance mixed with a shrinkage matrix Σ_S, which stabilises it with few points.",
    blind_to="Cannot see what IsoScore cannot, and sees less of the cloud as ζ grows: at ζ = 1, nothing.",
    help=(
        f"Reported for all layers' tokens with ζ = {REPORTED_ZETA} and Σ_S from training tokens, so that methods can be "
        "compared."
    ),
    references=(),
    range=Range("0 … 1", constant(0.0), constant(1.0)),
    at_isotropy=AtIsotropy("1, if Σ_S is isotropic too", constant(1.0), "sample"),
    # Repeating points changes the divisor n − 1, which matters relative to Σ_S.
    unchanged_by=COVARIANCE_ONLY - {"duplicates"},
    jointly="Σ_S",
    enough=EnoughPoints(
        "3.2 d at ζ = 0.2 with an exact Σ_S, at least 26: IsoScore's 5 d times (1 − ζ)²; up to 25 % low",
        "falls",
        lambda d: max(math.ceil(3.2 * d), 26),
        0.25,
    ),
    paper=Citation("Rudman & Eickhoff 2024", "rudman2024istar", 2024, "arXiv:2305.19358"),
    equation=r"\iota(\Sigma_\zeta), \quad \Sigma_\zeta = (1 - \zeta)\Sigma_X + \zeta\Sigma_S",
    function=isoscore_star,
    estimate=_star,
    inputs=("shrinkage_cov", "zeta"),
    kinds=frozenset({"tokens"}),
)

ISOSCORE_UNBIASED = replace(
    ISOSCORE,
    slug="isoscore_unbiased",
    place=30,
    title="IsoScore, unbiased",
    label="unbiased",
    symbol="ι̂",
    sees="IsoScore of the population from which the points are drawn, even with few points.",
    blind_to="Cannot see dependence between points: it treats tokens of one sentence as independent, which makes it too low.",
    range=Range("0 and above; scatters around the true value and may exceed 1", constant(0.0)),
    at_isotropy=AtIsotropy("1, on average", constant(1.0), "population"),
    unchanged_by=COVARIANCE_ONLY - {"duplicates"},  # a repeated point is not an independent one
    enough=EnoughPoints("64 at any d: up to 10 % high, worst for d = 2", "falls", lambda d: 64, 0.1),
    paper=Citation("Himeno & Yamada 2014", "himeno2014estimations", 2014, "J. Multivariate Anal. 130"),
    equation=r"\hat\iota = \frac{V/U - 1}{d - 1}, \quad"
    r" \mathbb{E}\,U = \operatorname{tr}(\Sigma^2),\ \mathbb{E}\,V = (\operatorname{tr}\Sigma)^2",
    function=isoscore_unbiased,
    estimate=_from_moments(unbiased_estimate),
    interval=_unbiased_interval,
    minimum=4,
    references=(),
    independent=True,
)

PARTICIPATION_RATIO = replace(
    ISOSCORE,
    slug="participation_ratio",
    place=60,
    title="Participation ratio",
    label="PR",
    symbol="PR",
    unit="directions",
    sees="How many directions would hold the variance if they shared it equally.",
    blind_to=(
        "Cannot see what IsoScore cannot, because it is 1 + (d − 1) · IsoScore. Ten directions out of 10 and out of "
        "768 look the same."
    ),
    range=Range("1 … min(d, n − 1)", constant(1.0), highest_rank),
    at_isotropy=AtIsotropy("d", lambda n, d: d, "sample"),
    enough=EnoughPoints("5 d, at least 40: up to 20 % low", "falls", lambda d: max(5 * d, 40), 0.2, reads="low"),
    paper=Citation("Gao et al. 2017", "gao2017multineuronal", 2017, "doi:10.1101/214262"),
    equation=r"\mathrm{PR} = (\operatorname{tr}\Sigma)^2 / \lVert\Sigma\rVert_F^2",
    function=participation_ratio,
    estimate=_from_moments(ratio_estimate),
    minimum_d=1,
    references=(),
    headline=False,
    axis="log",
    decimals=1,
)

METRICS = (ISOSCORE, ISOSCORE_STAR, ISOSCORE_UNBIASED, PARTICIPATION_RATIO)

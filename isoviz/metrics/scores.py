"""IsoScore, IsoScore* and the unbiased score: (PR − 1)/(d − 1) with PR = T²/F, without eigendecomposition.

The steps through the spectrum that define IsoScore (Rudman et al. 2022) and IsoScore* (Rudman & Eickhoff 2024,
Algorithm 1) collapse to this closed form exactly. Values are not clamped: round-off may give −1e-16.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from isoviz.errors import InputError
from isoviz.metrics.cloud import (
    Estimate,
    float64_matrix,
    is_tensor,
    resolution,
    symmetric_matrix,
    too_few,
    undefined,
    warn_if_small,
    warn_undefined,
)
from isoviz.metrics.moments import (
    Moments,
    cloud_moments,
    is_usable,
    mixed_moments,
    plug_in_score,
    sum_of_squares,
    unbiased_sums,
)

if TYPE_CHECKING:
    from isoviz.metrics.cloud import Points, Value

COLLAPSED = "all points are equal"
REPORTED_ZETA = 0.2
"""ζ of every IsoScore* that is reported, the same for every method so that methods compare (paper 001's figures)."""


def isoscore(points: Points) -> Value:
    """IsoScore of a cloud (n, d); differentiable for a tensor.

    0: one direction carries all variance; 1: all directions carry the same. For n points it never exceeds
    (n − 2)/(d − 1), and it is biased low unless n is many times d.
    """
    return _of_cloud("isoscore", points, plug_in_estimate)


def participation_ratio(points: Points) -> Value:
    """PR = T²/F of the covariance of a cloud (n, d), between 1 and min(d, n − 1); differentiable for a tensor."""
    return _of_cloud("participation_ratio", points, ratio_estimate)


def isoscore_unbiased(points: Points) -> Value:
    """IsoScore of the population behind a small sample: (V/U − 1)/(d − 1); differentiable for a tensor.

    U and V are the distribution-free unbiased estimates of tr(Σ²) and tr(Σ)² (Himeno & Yamada 2014). Their ratio is
    consistent rather than exactly unbiased: at n = 64 its mean was 1 % (d = 768), 2 % (d = 32), 6 % (d = 2) too
    high on Gaussian data and twice to three times that on heavy tails; at n = 16, d = 2 by a quarter. It may exceed
    1, and it assumes independent points (so one token per sentence). Undefined for n < 4 and for U = 0.
    """
    return _of_cloud("isoscore_unbiased", points, unbiased_estimate)


def isoscore_star(points: Points, shrinkage_cov: Points, zeta: float) -> Value:
    """IsoScore of Σ_ζ = (1 − ζ)Σ_X + ζΣ_S; differentiable in `points` for a tensor, Σ_S is a constant.

    Args:
        points: (n, d).
        shrinkage_cov: Σ_S, (d, d), symmetric positive semidefinite, with divisor n − 1 as Σ_X.
        zeta: weight of the shrinkage matrix, in [0, 1]; at 1 the value does not depend on `points`.

    Raises:
        ValueError: wrong shapes, non-finite entries, Σ_S not symmetric positive semidefinite, or
            ζ outside [0, 1].
    """
    zeta = checked_zeta(zeta)
    shrinkage = symmetric_matrix(shrinkage_cov, "shrinkage_cov")
    moments: Moments | None = None
    if is_tensor(points):
        from isoviz.metrics.backward import checked_cloud
        from isoviz.metrics.penalties import star_moments

        tensor: Any = points
        cloud = checked_cloud(tensor)
        n, d = cloud.shape
        check_width(shrinkage.shape[0], d)
        if n >= 2:
            moments = star_moments(cloud, shrinkage, zeta)
    else:
        x = float64_matrix(points)
        n, d = x.shape
        check_width(shrinkage.shape[0], d)
        if n >= 2:
            moments = mixed_moments(x, resolution(points), shrinkage, zeta)
    estimate = undefined(too_few(n)) if moments is None else plug_in_estimate(moments)
    if estimate.problem:
        warn_undefined("isoscore_star", estimate.problem)
        return _nan(points)
    if zeta == 0:
        warn_if_small("isoscore_star", n, d)
    return _answer(points, estimate.value)


def isoscore_from_covariance(cov: Points) -> Value:
    """IsoScore of a covariance matrix (d, d), symmetric positive semidefinite; differentiable for a tensor."""
    matrix = symmetric_matrix(cov, "cov")
    d = matrix.shape[0]
    biggest = float(np.abs(matrix).max())
    if d < 2 or biggest == 0:
        warn_undefined("isoscore_from_covariance", "d = 1" if d < 2 else "the matrix is zero")
        return _nan(cov)
    if is_tensor(cov):
        from isoviz.metrics.backward import sum_dtype, working_dtype

        tensor: Any = cov
        scaled = tensor.to(working_dtype(tensor)) / biggest
        wide = sum_dtype(tensor.device)
        trace, frobenius = scaled.diagonal().sum(dtype=wide), scaled.square().sum(dtype=wide)
    else:
        matrix = matrix / biggest  # the score does not depend on the unit, its fourth powers do
        trace, frobenius = matrix.diagonal().sum(), sum_of_squares(matrix)
    score = plug_in_score(Moments(0, d, trace, frobenius, None, None, False))
    return _answer(cov, score)


def checked_zeta(zeta: float) -> float:
    zeta = float(zeta)
    if not 0.0 <= zeta <= 1.0:
        raise InputError(f"zeta must lie in [0, 1], got {zeta}")
    return zeta


def plug_in_estimate(m: Moments) -> Estimate:
    problem = _problem(m)
    return undefined(problem) if problem else Estimate(plug_in_score(m))


def ratio_estimate(m: Moments) -> Estimate:
    if bool(m.collapsed):
        return undefined(COLLAPSED)
    return Estimate(m.trace * m.trace / m.frobenius)


def unbiased_estimate(m: Moments) -> Estimate:
    problem = _problem(m)
    if problem:
        return undefined(problem)
    if m.n < 4:
        return undefined(f"it needs at least 4 points, got {m.n}")
    u, v = unbiased_sums(m)
    if not is_usable(u, m):
        return undefined(f"the {m.n} points differ in mutually orthogonal directions only; it needs more points")
    return Estimate((v / u - 1.0) / (m.d - 1))


def _problem(m: Moments) -> str | None:
    if m.d < 2:
        return "d = 1, there is only one direction"
    return COLLAPSED if bool(m.collapsed) else None


def _of_cloud(metric: str, points: Points, estimator: Callable[[Moments], Estimate]) -> Value:
    wants_quartic = estimator is unbiased_estimate
    moments: Moments | None = None
    if is_tensor(points):
        from isoviz.metrics.backward import checked_cloud, tensor_moments

        tensor: Any = points
        cloud = checked_cloud(tensor)
        n, d = cloud.shape
        if n >= 2:
            moments = tensor_moments(cloud, quartic=wants_quartic)
    else:
        x = float64_matrix(points)
        n, d = x.shape
        if n >= 2:
            moments = cloud_moments(x, resolution(points), quartic=wants_quartic)
    estimate = undefined(too_few(n)) if moments is None else estimator(moments)
    if estimate.problem:
        warn_undefined(metric, estimate.problem, depth=2)
        return _nan(points)
    if not wants_quartic:
        warn_if_small(metric, n, d, depth=2)
    return _answer(points, estimate.value)


def check_width(shrinkage_d: int, d: int) -> None:
    if shrinkage_d != d:
        raise InputError(f"shrinkage_cov must be ({d}, {d}) for points of {d} dimensions, got {shrinkage_d}")


def _answer(points: Points, value: Any) -> Value:
    if is_tensor(points):
        from isoviz.metrics.backward import working_dtype

        tensor: Any = points
        return value.to(working_dtype(tensor))
    return float(value)


def _nan(points: Points) -> Value:
    if is_tensor(points):
        from isoviz.metrics.backward import working_dtype

        tensor: Any = points
        return tensor.sum().to(working_dtype(tensor)) * float("nan")  # connected to the graph
    return float("nan")

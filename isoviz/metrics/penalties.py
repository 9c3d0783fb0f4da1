"""The penalties that training adds to a loss: 1 − IsoScore*, 1 − the unbiased score, and CosReg.

Values are not checked, and nothing synchronises with the device. A batch on which a penalty is undefined (equal points, or too
few) gives zero with zero gradient, still connected to the graph, so that the step continues without the term.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from isoviz.errors import InputError
from isoviz.metrics.backward import tensor_moments
from isoviz.metrics.cloud import sum_dtype, working_dtype
from isoviz.metrics.moments import Moments, is_usable, unbiased_sums


class Shrinkage:
    """Σ_S (d, d) as a constant, with its trace and squared Frobenius norm computed once.

    It is assumed to be symmetric positive semidefinite, because it comes from an accumulator; `isoscore_star` validates user
    input.
    """

    def __init__(self, covariance: Tensor) -> None:
        self.covariance = covariance.detach().to(sum_dtype(covariance.device))
        self.trace = self.covariance.diagonal().sum()
        self.frobenius = self.covariance.square().sum()
        self._single = self.covariance.float()  # for products with a float32 batch

    def sums(self, points: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Σ_S in the precision of the products with this batch, its trace, its squared Frobenius norm."""
        covariance = self._single if points.dtype == torch.float32 else self.covariance
        return covariance, self.trace, self.frobenius


def star_moments(points: Tensor, shrinkage: NDArray[np.float64], zeta: float) -> Moments:
    """T and F of Σ_ζ for a validated tensor cloud (n >= 2, d) and a validated Σ_S (d, d)."""
    constant = Shrinkage(torch.tensor(shrinkage, dtype=sum_dtype(points.device), device=points.device))
    return _defined(tensor_moments(points, constant.sums(points), zeta), zeta)


def istar_penalty(points: Tensor, shrinkage: Shrinkage | Tensor | None, zeta: float) -> Tensor:
    """1 − IsoScore*(X, ζ, Σ_S), the term that I-STAR multiplies by λ: a scalar in float32, not clamped.

    In float64 for float64 points.

    Args:
        points: (n, d), any float type; under autocast it is computed outside it.
        shrinkage: Σ_S on the device of `points`; a `Shrinkage` saves recomputing its sums. None is
            allowed when ζ = 0.
        zeta: weight of Σ_S, in [0, 1]. The gradient scales with 1 − ζ.
    """
    if not 0.0 <= zeta <= 1.0:
        raise InputError(f"zeta must lie in [0, 1], got {zeta}")
    if shrinkage is None and zeta != 0.0:
        raise InputError(f"zeta = {zeta} needs a shrinkage covariance")
    cloud = points.to(working_dtype(points))
    n, d = cloud.shape
    if n < 2 or d < 2:
        return _nothing(cloud)
    if isinstance(shrinkage, Tensor):
        shrinkage = Shrinkage(shrinkage)
    moments = tensor_moments(cloud, None if shrinkage is None else shrinkage.sums(cloud), zeta)
    moments = _defined(moments, zeta)
    return _one_minus(moments.trace * moments.trace, moments.frobenius, ~moments.collapsed, cloud)


def istar_unbiased_penalty(points: Tensor) -> Tensor:
    """1 − `isoscore_unbiased`, a scalar that needs no Σ_S; use batches of at least 64 independent points. Zero for n < 4 and if
    the estimate of tr(Σ²) vanishes. May be negative.
    """
    cloud = points.to(working_dtype(points))
    n, d = cloud.shape
    if n < 4 or d < 2:
        return _nothing(cloud)
    moments = tensor_moments(cloud, quartic=True)
    u, v = unbiased_sums(moments)
    return _one_minus(v, u, ~moments.collapsed & is_usable(u, moments), cloud)


def cosine_penalty(vectors: Tensor) -> Tensor:
    """CosReg: the sum of cosines over ordered pairs i ≠ j, divided by M²; a scalar.

    Computed as (‖Σû‖² − M)/M² in O(Md), never from the M × M matrix. The divisor is M², as published,
    not M(M − 1); the minimum is −1/M. Rows shorter than 1e-12 have no direction: they are left out and not
    counted in M.

    Args:
        vectors: (M, d), any float type; under autocast it is computed outside it.
    """
    rows = vectors.to(working_dtype(vectors))
    if rows.shape[0] == 0:
        return _nothing(rows)
    wide, unit = sum_dtype(rows.device), unit_rows(rows)
    total = unit.sum(0, dtype=wide)
    count = unit.detach().any(dim=1).sum().to(wide)
    penalty = (total.square().sum() - count) / count.clamp_min(1.0).square()
    return penalty.to(rows.dtype)


def unit_rows(points: Tensor) -> Tensor:
    """Rows (n, d) of length 1, and zeros for rows shorter than 1e-12, whose gradient stays finite."""
    lengths = torch.linalg.vector_norm(points, dim=1, keepdim=True)
    return points * torch.where(lengths > 1e-12, 1 / lengths.clamp_min(1e-12), 0.0)


def _defined(m: Moments, zeta: float) -> Moments:
    """With ζ > 0 a collapsed batch still has the score of Σ_S; only a zero Σ_ζ is undefined."""
    collapsed = (m.frobenius <= 0) if zeta > 0 else m.collapsed | (m.frobenius <= 0)
    return Moments(m.n, m.d, m.trace, m.frobenius, m.quartic, None, collapsed)


def _one_minus(numerator: Tensor, denominator: Tensor, defined: Tensor, points: Tensor) -> Tensor:
    """1 − (ratio − 1)/(d − 1) if defined, else zero; the inner where() keeps 0/0 out of the gradient."""
    ratio = numerator / torch.where(defined, denominator, torch.ones_like(denominator))
    penalty = 1.0 - (ratio - 1.0) / (points.shape[1] - 1)
    return torch.where(defined, penalty, torch.zeros_like(penalty)).to(points.dtype)


def _nothing(points: Tensor) -> Tensor:
    return points.sum() * 0.0

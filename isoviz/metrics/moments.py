"""The three sums behind every IsoScore, without any eigenvalue: T = tr Σ, F = ‖Σ‖²_F and Q = Σ‖x̃‖⁴/(n − 1); the scores that
follow from them; and other quantities of a centred cloud that several estimators share.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz.metrics.cloud import Estimate, too_few, undefined

COLLAPSED = "all points are equal"
WHITENED = "these rows were whitened on themselves, so they are not independent draws"


@dataclass(frozen=True)
class Moments:
    """Sums over a centred cloud, up to one common unit of length (scores do not depend on it).

    trace, frobenius, quartic: T, F, Q with the divisor n − 1; floats, or 0-d tensors from
        `backward.tensor_moments`. None for Q where `fourth` computes it.
    matrix: Σ (d, d), or the Gram matrix X̃X̃ᵀ/(n − 1) (n, n), which has the same nonzero eigenvalues.
    collapsed: all points are equal up to the resolution of their number type.
    centred: X̃ (n, d) in the same unit as the sums, where the points are known.
    """

    n: int
    d: int
    trace: Any
    frobenius: Any
    quartic: Any
    matrix: NDArray[np.float64] | None
    collapsed: Any
    centred: NDArray[np.float64] | None = None

    @cached_property
    def fourth(self) -> Any:
        """Q, from the centred points if nothing else is known; most scores do without."""
        if self.quartic is not None or self.centred is None:
            return self.quartic
        squares = np.einsum("ij,ij->i", self.centred, self.centred)
        return float(squares @ squares) / (self.n - 1)


def prefers_gram(n: int, d: int) -> bool:
    """Whether the (n, n) matrix is cheaper; measured, the direct form is still faster for n between d/2 and d."""
    return 2 * n < d


def centre(x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The centred cloud, and the mean. Subtracting the first point first preserves the digits of a cloud far from the origin
    and makes equal points exactly zero."""
    centred = x - x[0]
    offset = np.ones(len(x)) @ centred / len(x)
    centred -= offset
    return centred, x[0] + offset


def sum_of_squares(matrix: NDArray[np.float64]) -> float:
    flat = matrix.ravel(order="K")
    return float(flat @ flat)


def cloud_moments(x: NDArray[np.float64], eps: float) -> Moments:
    """T, F, the matrix and X̃ of a cloud (n >= 2, d) in float64.

    Args:
        eps: `cloud.resolution` of the input before it became float64.
    """
    n, d = x.shape
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        centred, mean = centre(x)
        matrix = _second_moment(centred)
        frobenius = sum_of_squares(matrix)
        if not 1e-250 < frobenius < 1e250:  # fourth powers overflow float64 long before the points do
            unit = max(float(np.abs(x).max()), 1.0)
            centred, mean = centre(x / unit)
            spread = float(np.abs(centred).max()) or 1.0
            centred, mean = centred / spread, mean / spread
            matrix = _second_moment(centred)
            frobenius = sum_of_squares(matrix)
    gram = prefers_gram(n, d)
    variances = np.einsum("ij,ij->j", centred, centred) / (n - 1) if gram else matrix.diagonal()
    return Moments(
        n=n,
        d=d,
        trace=float(matrix.diagonal().sum()),
        frobenius=frobenius,
        quartic=None,
        matrix=matrix,
        collapsed=bool(np.all(variances <= (eps * mean) ** 2)),
        centred=centred,
    )


def covariance_moments(covariance: NDArray[np.float64]) -> Moments:
    """T and F of a covariance matrix (d, d), in a unit in which fourth powers do not overflow; n is not known and 0."""
    biggest = float(covariance.diagonal().max())
    scaled = covariance / (biggest or 1.0)
    trace = float(scaled.diagonal().sum())
    return Moments(0, len(scaled), trace, sum_of_squares(scaled), None, scaled, biggest == 0)


def _second_moment(centred: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numpy computes AᵀA with the symmetric kernel, at half the cost of a general product."""
    n, d = centred.shape
    product = centred @ centred.T if prefers_gram(n, d) else centred.T @ centred
    product /= n - 1
    return product


def plug_in_score(m: Moments) -> Any:
    """(PR − 1)/(d − 1) with PR = T²/F: IsoScore (Rudman & Eickhoff 2024) in closed form, exactly."""
    return (m.trace * m.trace / m.frobenius - 1.0) / (m.d - 1)


def unbiased_sums(m: Moments) -> tuple[Any, Any]:
    """Distribution-free unbiased estimates U of tr(Σ²) and V of tr(Σ)² (Himeno & Yamada 2014), n >= 4.

    U is the mean of ((x_i − x_j)·(x_k − x_l))²/4 over quadruples of distinct points, hence non-negative up to round-off.
    """
    n = m.n
    c = (n - 1) / (n * (n - 2) * (n - 3))
    square = m.trace * m.trace
    u = c * ((n - 1) * (n - 2) * m.frobenius + square - n * m.fourth)
    v = c * (2 * m.frobenius + (n * n - 3 * n + 1) * square - n * m.fourth)
    return u, v


def is_usable(u: Any, m: Moments) -> Any:
    """Whether U exceeds round-off: it vanishes if the points differ in mutually orthogonal directions only."""
    return u > 1e-6 * m.frobenius


def estimated(estimator: Callable[[Moments], Estimate], m: Moments | None, n: int) -> Estimate:
    """Of the moments of n points; undefined without them."""
    return undefined(too_few(n)) if m is None else estimator(m)


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
    if isinstance(m.fourth, float) and math.isnan(m.fourth):  # running sums, which cannot be rescaled afterwards
        return undefined("the fourth powers of the points are out of range for its sums; rescale the points")
    u, v = unbiased_sums(m)
    if not is_usable(u, m):
        return undefined(f"the {m.n} points differ in mutually orthogonal directions only; use more points")
    if _is_white(m):
        return undefined(WHITENED)
    return Estimate((v / u - 1.0) / (m.d - 1))


def _is_white(m: Moments) -> bool:
    """Whether the covariance is a multiple of a projection of rank 2 or more, which independent draws never give."""
    if not isinstance(m.matrix, np.ndarray):
        return False
    ratio, mean = m.trace * m.trace / m.frobenius, m.frobenius / m.trace
    if round(ratio) < 2 or abs(ratio - round(ratio)) > 1e-7 * ratio:  # second order in the spread of the eigenvalues
        return False
    difference = m.matrix @ m.matrix - mean * m.matrix
    return sum_of_squares(difference) <= (1e-3 * mean) ** 2 * m.frobenius


def _problem(m: Moments) -> str | None:
    if m.d < 2:
        return "d = 1, there is only one direction"
    return COLLAPSED if bool(m.collapsed) else None


def eigenvalues(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """The eigenvalues of a covariance or Gram matrix in decreasing order; values within round-off of zero are set to zero."""
    values: Any = np.linalg.eigvalsh(matrix)[::-1]
    values[values <= len(matrix) * np.finfo(np.float64).eps * values[0]] = 0.0
    return values


def std_of(centred: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scales each dimension by its largest entry first, so that the variance of tiny dimensions does not underflow."""
    biggest = np.abs(centred).max(axis=0)
    unit = centred / np.where(biggest > 0, biggest, 1.0)
    return biggest * np.sqrt(np.einsum("ij,ij->j", unit, unit) / len(centred))

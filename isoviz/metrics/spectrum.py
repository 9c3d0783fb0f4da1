"""What is read from the eigenvalues of the covariance: explained variance and effective rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import InputError
from isoviz.metrics.cloud import (
    Estimate,
    float64_matrix,
    like,
    resolution,
    too_few,
    undefined,
    warn_if_small,
    warn_undefined,
)
from isoviz.metrics.moments import cloud_moments, prefers_gram

if TYPE_CHECKING:
    from isoviz.metrics.cloud import Array, Points, Value


def explained_variance(points: Points, k: int | None = None, centre: bool = True) -> Array:
    """Cumulative share of the variance in the first 1, ..., k principal directions, shape (k,).

    EV_k = Σ_{i≤k} σ_i² / Σσ_i² (paper 002, equation 9). The paper takes the singular values of the raw matrix
    but claims invariance to the mean, which holds only after centring; `centre=False` gives the raw form.

    Args:
        points: (n, d).
        k: how many, default min(n, d). Beyond the rank the value is 1.
    """
    if k is not None and k < 1:
        raise InputError(f"k must be at least 1, got {k}")
    x = float64_matrix(points)
    n, d = x.shape
    count = min(n, d) if k is None else k
    spectrum: NDArray[np.float64] | None = None
    problem = too_few(n)
    if not centre:
        problem = "all entries are zero" if n else "it needs at least 1 point, got 0"
        biggest = float(np.abs(x).max()) if n else 0.0
        if biggest > 0:
            raw = x / biggest
            spectrum = eigenvalues(raw @ raw.T if prefers_gram(n, d) else raw.T @ raw)
    elif n >= 2:
        moments = cloud_moments(x, resolution(points))
        problem = "all points are equal"
        if not moments.collapsed and moments.matrix is not None:
            spectrum = eigenvalues(moments.matrix)
    if spectrum is None:
        warn_undefined("explained_variance", problem)
        return like(points, np.full(count, np.nan))
    warn_if_small("explained_variance", n, d)
    return like(points, cumulative_shares(spectrum, count))


def effective_rank(points: Points) -> Value:
    """exp of the entropy of the variance shares λ_i/Σλ (Roy & Vetterli 2007, applied to the covariance matrix).

    Between the participation ratio, which is its counterpart of order 2 on the same shares, and the rank.
    """
    x = float64_matrix(points)
    n, d = x.shape
    if n < 2:
        estimate = undefined(too_few(n))
    else:
        moments = cloud_moments(x, resolution(points))
        if moments.collapsed or moments.matrix is None:
            estimate = undefined("all points are equal")
        else:
            estimate = effective_rank_of(eigenvalues(moments.matrix))
    if estimate.problem:
        warn_undefined("effective_rank", estimate.problem)
    else:
        warn_if_small("effective_rank", n, d)
    return like(points, estimate.value)


def eigenvalues(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of a covariance or Gram matrix, falling; what lies within round-off of zero is zero."""
    values: Any = np.linalg.eigvalsh(matrix)[::-1]
    values[values <= len(matrix) * np.finfo(np.float64).eps * values[0]] = 0.0
    return values


def cumulative_shares(spectrum: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """(k,): rising to exactly 1 at the rank, and 1 from there on."""
    shares = np.cumsum(spectrum)
    shares /= shares[-1]
    return np.concatenate([shares, np.ones(max(k - len(shares), 0))])[:k]


def effective_rank_of(spectrum: NDArray[np.float64]) -> Estimate:
    shares = spectrum[spectrum > 0] / spectrum.sum()
    return Estimate(float(np.exp(-(shares @ np.log(shares)))))

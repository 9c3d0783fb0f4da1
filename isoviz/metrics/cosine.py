"""The average cosine similarity, exact in O(nd)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isoviz.metrics.cloud import Estimate, float64_matrix, like, undefined, warn_undefined

if TYPE_CHECKING:
    from isoviz.metrics.cloud import Points, Value


def mean_cosine(points: Points) -> Value:
    """Mean cosine over the distinct pairs of a cloud (n, d): (‖Σû‖² − n)/(n(n − 1)), zero vectors left out.

    It sees the mean of the cloud above all, which IsoScore ignores: a cloud of IsoScore 1 can have any
    average cosine.
    """
    estimate, _ = mean_cosine_estimate(float64_matrix(points))
    if estimate.problem:
        warn_undefined("mean_cosine", estimate.problem)
    return like(points, estimate.value)


def mean_cosine_estimate(x: NDArray[np.float64]) -> tuple[Estimate, int]:
    """The estimate and how many zero vectors were left out."""
    biggest = np.abs(x).max(axis=1)  # first, so that squares neither overflow nor vanish
    kept = biggest > 0
    dropped = int(len(x) - kept.sum())
    n = len(x) - dropped
    if n < 2:
        return undefined(f"it needs at least 2 vectors that are not zero, got {n}"), dropped
    unit = x[kept] if dropped else x
    unit = unit / biggest[kept][:, None]
    lengths = np.sqrt(np.einsum("ij,ij->i", unit, unit))
    total = (1.0 / lengths) @ unit
    return Estimate(float((total @ total - n) / (n * (n - 1)))), dropped

"""The principal directions of a cloud, and which of them exceed rounding error."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoviz.metrics.moments import centre

SMALLEST = 1e-100
"""A smaller spread counts as 0: its inverse, times a point, could overflow float64."""


class Axes(NamedTuple):
    """Principal directions in order of decreasing spread.

    Attributes:
        mean: (d,).
        std: (r,) standard deviation (divisor n − 1) along each direction; exactly 0 if it is only rounding error.
        directions: (d, r) orthonormal columns, each with its largest entry positive.
    """

    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    directions: NDArray[np.float64]

    @property
    def rank(self) -> int:
        return int(np.count_nonzero(self.std))

    def leading(self, count: int) -> NDArray[np.float64]:
        """At most `count` leading directions, as columns of height d. Directions without variance are arbitrary and never
        included."""
        return self.directions[:, : min(count, self.rank)]


def principal_axes(x: NDArray[np.float64], eps: float, full: bool = False) -> Axes:
    """The principal directions of a cloud (n >= 1, d).

    Args:
        eps: `cloud.resolution` of the input before it became float64: a direction along which the spread is below that fraction
            of the largest mean coordinate holds only rounding error.
        full: return all d directions, including those that n < d points do not span.
    """
    n, d = x.shape
    centred, mean = centre(x)
    unit = float(np.abs(centred).max())
    if n < 2 or unit < SMALLEST:
        count = d if full or n >= d else n
        return Axes(mean, np.zeros(count), np.eye(d, count))
    centred /= unit  # so that squares neither overflow nor underflow
    if n >= d or full:
        variances, directions = np.linalg.eigh(centred.T @ centred / (n - 1))
        variances, directions = variances[::-1], directions[:, ::-1]
        std = unit * std_above_rounding(variances, d, mean / unit, eps)
    else:
        _, lengths, rows = np.linalg.svd(centred, full_matrices=False)  # O(n²d), and no d × d matrix
        directions = rows.T
        lengths = np.where(lengths > d * np.finfo(np.float64).eps * lengths[0], lengths, 0.0)
        std = unit * lengths / np.sqrt(n - 1)
        std = np.where(std > eps * np.abs(mean).max(), std, 0.0)
    return Axes(mean, std, directions * peak_signs(directions))


def std_above_rounding(
    variances: NDArray[np.float64], d: int, mean: NDArray[np.float64], eps: float
) -> NDArray[np.float64]:
    """(r,) roots of a covariance's eigenvalues; 0 where rounding of products or of coordinates can explain the eigenvalue.

    Args:
        variances: (r,) eigenvalues of a d × d covariance.
        mean, eps: (d,) and the `cloud.resolution` of the coordinates.
    """
    floor = d * np.finfo(np.float64).eps * variances.max(initial=0.0)
    std = np.sqrt(np.where(variances > floor, variances, 0.0))
    return np.where(std > eps * np.abs(mean).max(), std, 0.0)


def peak_signs(directions: NDArray[np.float64]) -> NDArray[np.float64]:
    """(r,): −1 for each column of (d, r) whose entry of largest size is negative, else 1."""
    peaks = directions[np.abs(directions).argmax(axis=0), np.arange(directions.shape[1])]
    return np.where(peaks < 0, -1.0, 1.0)


def surrogate_points(
    mean: NDArray[np.float64], covariance: NDArray[np.float64], n: int, divisor: Literal["sample", "population"]
) -> NDArray[np.float64]:
    """2d points with the mean and covariance of a cloud of n points, for fits that depend on nothing else.

    Args:
        mean, covariance: (d,) and (d, d) of the cloud, divisor n − 1.
        divisor: `sample` matches the covariances with divisors n − 1 and 2d − 1; `population` those with divisors n and 2d.
    """
    variances, directions = np.linalg.eigh(covariance)
    count = 2 * len(mean)
    scale = (count - 1) / 2 if divisor == "sample" else count * (n - 1) / (2 * n)
    offsets = directions.T * np.sqrt(scale * np.clip(variances, 0.0, None))[:, None]
    return np.concatenate([mean + offsets, mean - offsets])

"""The principal directions of a cloud, and which of them are more than rounding."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoviz.metrics.moments import centre

SMALLEST = 1e-100
"""A spread below this counts as none: its inverse, times a point, could leave float64."""


class Axes(NamedTuple):
    """Principal directions, by falling spread.

    Attributes:
        mean: (d,).
        std: (r,) standard deviation (divisor n − 1) along each direction; exactly 0 where it is only round-off.
        directions: (d, r) orthonormal columns, each with its largest entry positive.
    """

    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    directions: NDArray[np.float64]

    @property
    def rank(self) -> int:
        return int(np.count_nonzero(self.std))

    def leading(self, count: int) -> NDArray[np.float64]:
        """(d, at most count): directions without variance are arbitrary, so they are never among the leading ones."""
        return self.directions[:, : min(count, self.rank)]


def principal_axes(x: NDArray[np.float64], eps: float, full: bool = False) -> Axes:
    """Of a cloud (n >= 1, d).

    Args:
        eps: `cloud.resolution` of the input before it became float64: a direction along which the cloud spreads less
            than that fraction of its largest mean coordinate holds the rounding of the coordinates, nothing else.
        full: give all d directions, also those that n < d points do not reach.
    """
    n, d = x.shape
    centred, mean = centre(x)
    unit = float(np.abs(centred).max())
    if n < 2 or unit < SMALLEST:
        count = d if full or n >= d else n
        return Axes(mean, np.zeros(count), np.eye(d, count))
    centred /= unit  # so that squares neither overflow nor vanish
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
    """(r,) roots of a covariance's eigenvalues; 0 for those that only the rounding of products or of coordinates explains.

    Args:
        variances: (r,) eigenvalues of a d × d covariance.
        mean, eps: (d,) and the `cloud.resolution` of the coordinates.
    """
    floor = d * np.finfo(np.float64).eps * variances.max(initial=0.0)
    std = np.sqrt(np.where(variances > floor, variances, 0.0))
    return np.where(std > eps * np.abs(mean).max(), std, 0.0)


def peak_signs(directions: NDArray[np.float64]) -> NDArray[np.float64]:
    """(r,): −1 for each column of (d, r) whose largest entry is negative, else 1."""
    peaks = directions[np.abs(directions).argmax(axis=0), np.arange(directions.shape[1])]
    return np.where(peaks < 0, -1.0, 1.0)


def stand_in(
    mean: NDArray[np.float64], covariance: NDArray[np.float64], n: int, divisor: Literal["sample", "population"]
) -> NDArray[np.float64]:
    """2d points with the mean and the covariance of n others: what a fit that sees no more learns the same from.

    Args:
        mean, covariance: (d,) and (d, d), divisor n − 1, of the others.
        divisor: `sample`: the covariances with the divisors n − 1 and 2d − 1 are equal; `population`: those with n and 2d.
    """
    variances, directions = np.linalg.eigh(covariance)
    count = 2 * len(mean)
    scale = (count - 1) / 2 if divisor == "sample" else count * (n - 1) / (2 * n)
    arms = directions.T * np.sqrt(scale * np.clip(variances, 0.0, None))[:, None]
    return np.concatenate([mean + arms, mean - arms])

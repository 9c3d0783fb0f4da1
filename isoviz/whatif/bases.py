"""A cloud in orthonormal coordinates, and what is computed of it once: covariances, squares, its principal directions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from isoviz.metrics.moments import centre

Matrix = NDArray[np.float64]


class Base:
    """Both splits of a cloud, without the training split's mean, as coordinates in one orthonormal basis.

    Args:
        train: gives (n, d); asked for only where training points themselves are needed (a refitted head, a rebuilt base).
        validation: (m, d).
        covariance: of the training split, divisor n − 1: (d, d), or (d,) where it is diagonal.
        n_train: n.
        turned: the rotation (d, d) that made these coordinates of those of another base, where one did.
    """

    def __init__(
        self,
        train: Callable[[], Matrix],
        validation: Matrix,
        covariance: Matrix,
        n_train: int,
        *,
        turned: Matrix | None = None,
        origin: Base | None = None,
    ) -> None:
        self._train = train
        self.validation = validation
        self.covariance = covariance
        self.n_train = n_train
        self.turned = turned
        self.origin = origin

    @property
    def d(self) -> int:
        return self.validation.shape[1]

    @property
    def diagonal(self) -> bool:
        """Whether the coordinates are principal directions of the training split."""
        return self.covariance.ndim == 1

    @cached_property
    def train(self) -> Matrix:
        """(n, d)."""
        return self._train()

    @cached_property
    def validation_mean(self) -> Matrix:
        """(d,)."""
        return centre(self.validation)[1]

    @cached_property
    def validation_covariance(self) -> Matrix:
        """(d, d), divisor m − 1."""
        if self.origin is not None and self.turned is not None:
            found: Matrix = self.turned.T @ self.origin.validation_covariance @ self.turned
            return found
        centred, _ = centre(self.validation)
        return centred.T @ centred / max(1, len(centred) - 1)

    @cached_property
    def validation_squares(self) -> Matrix:
        """(m, d): how far each point lies from the mean, squared, along each coordinate."""
        return np.square(self.validation - self.validation_mean)

    @cached_property
    def principal(self) -> Base:
        """The same cloud in the training split's principal directions."""
        if self.diagonal:
            return self
        values, directions = np.linalg.eigh(self.covariance)
        return Base(
            lambda: self.train @ directions,
            self.validation @ directions,
            np.maximum(values, 0.0),
            self.n_train,
            turned=directions,
            origin=self,
        )

    @property
    def has_principal(self) -> bool:
        """Whether `principal` was asked for before."""
        return self.diagonal or "principal" in self.__dict__

    def warm(self) -> Base:
        """Compute what every answer on this base needs; returns itself."""
        _ = self.validation_mean, self.validation_covariance, self.validation_squares
        return self


def base_of(train: Matrix, validation: Matrix) -> tuple[Base, Matrix]:
    """The base of two splits as they are, and the training split's mean (d,).

    Args:
        train: (n, d), float64.
        validation: (m, d), float64.
    """
    centred, mean = centre(train)
    covariance = centred.T @ centred / max(1, len(centred) - 1)
    return Base(lambda: centred, validation - mean, covariance, len(train)), mean

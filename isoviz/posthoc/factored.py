"""A cloud stored as factors on orthonormal coordinates, so that a transform can act on it without moving points.

The image of a point is y = (z ∘ f)Bᵀ + μ: z holds its centred coordinates, f one factor for each coordinate, B orthonormal
columns, and μ the image of the training mean. Quantities that a rotation does not change (covariance spectrum, lengths,
distances) are read from z ∘ f, so a changed parameter costs O(nd + d³) and no product of an (n, d) by a (d, d) matrix.

A transform supports this by naming the coordinates that it needs and defining how it changes f, B and μ:

    coordinates = "own"

    def act(self, cloud):
        return cloud.scaled(self._factors(cloud.std), mean=np.zeros(cloud.width))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from isoviz.metrics.dimensions import dead_dimensions
from isoviz.metrics.moments import centre
from isoviz.posthoc.directions import std_above_rounding

Matrix = NDArray[np.float64]

Kind = Literal["any", "own", "principal"]
"""Coordinates that a transform needs: any, the image's own dimensions, or the principal directions of its training split."""


class Coordinates:
    """Both splits of a cloud as coordinates in one orthonormal basis, with the training split's mean subtracted.

    Args:
        train: returns (n, d); called only if the training points are needed (to refit a head or change coordinates).
        validation: (m, d).
        covariance: of the training split, divisor n − 1: (d, d), or (d,) if it is diagonal.
        n_train: n.
        validation_covariance: the same of the validation split, (d, d), divisor m − 1.
        source, rotation: the original coordinates and the (d, d) rotation from them to these, if any.
    """

    def __init__(
        self,
        train: Callable[[], Matrix],
        validation: Matrix,
        covariance: Matrix,
        n_train: int,
        validation_covariance: Matrix,
        *,
        source: Coordinates | None = None,
        rotation: Matrix | None = None,
    ) -> None:
        self._train = train
        self.validation = validation
        self.covariance = covariance
        self.n_train = n_train
        self.validation_covariance = validation_covariance
        self.source = source
        self.rotation = rotation

    @property
    def d(self) -> int:
        return self.validation.shape[1]

    @property
    def diagonal(self) -> bool:
        """Whether these are the training split's principal directions."""
        return self.covariance.ndim == 1

    @property
    def train(self) -> Matrix:
        """(n, d); recomputed on each access, because it is large and rarely needed."""
        return self._train()

    @cached_property
    def validation_mean(self) -> Matrix:
        """(d,)."""
        return centre(self.validation)[1]

    @cached_property
    def principal(self) -> Coordinates:
        """The same cloud along the training split's principal directions."""
        if self.diagonal:
            return self
        variances, directions = np.linalg.eigh(self.covariance)
        return Coordinates(
            lambda: self.train @ directions,
            self.validation @ directions,
            np.maximum(variances, 0.0),
            self.n_train,
            directions.T @ self.validation_covariance @ directions,
            source=self,
            rotation=directions,
        )

    @property
    def has_principal(self) -> bool:
        """Whether `principal` is already computed."""
        return self.diagonal or "principal" in self.__dict__

    @property
    def nbytes(self) -> int:
        """Bytes in memory, not counting `source`."""
        arrays = (self.validation, self.covariance, self.validation_covariance, self.rotation)
        return sum(array.nbytes for array in arrays if array is not None)


@dataclass(frozen=True)
class FactoredCloud:
    """Both splits of a cloud after the transforms applied so far.

    Attributes:
        base: the coordinates z.
        factors: f, (d,).
        basis: B, (w, d), orthonormal in the columns with non-zero factors, or None for the identity.
        mean: μ, (w,), the image of the training split's mean.
        resolution: `isoviz.metrics.cloud.resolution` of the stored vectors.
        only_rounding: whether the training points vary only by rounding error in every remaining direction.
        notes: what the user must know of the transforms, as `Learnt.notes`.
        whitened: whether one of them is a whitening, after which training points are not independent draws.
        simplex: whether the last one puts all training points equally far from each other.
    """

    base: Coordinates
    factors: Matrix
    basis: Matrix | None
    mean: Matrix
    resolution: float
    only_rounding: bool = False
    notes: tuple[str, ...] = ()
    whitened: bool = False
    simplex: bool = False

    @classmethod
    def of_points(cls, train: Matrix, validation: Matrix, resolution: float) -> Self:
        """The untransformed cloud of two splits, (n, d) and (m, d), float64."""
        centred, mean = centre(train)
        base = Coordinates(
            lambda: centred, validation - mean, _covariance(centred), len(train), _covariance(centre(validation)[0])
        )
        return cls(base, np.ones(base.d), None, mean, resolution)

    # ------------------------------------------------------------------ what a transform reads

    @property
    def width(self) -> int:
        """w, the dimensions of the image."""
        return len(self.mean)

    @property
    def variances(self) -> Matrix:
        """(d,): variance (divisor n − 1) of the training image along each coordinate."""
        base = self.base.covariance if self.base.diagonal else self.base.covariance.diagonal()
        scaled: Matrix = base * self.factors**2
        return scaled

    @property
    def std(self) -> Matrix:
        """(d,): population standard deviation (divisor n) of the training image along each coordinate."""
        n = self.base.n_train
        deviations: Matrix = np.sqrt(self.variances * ((n - 1) / n))
        return deviations

    @property
    def spread(self) -> float:
        """Root mean square of the population standard deviations of the dimensions."""
        n = self.base.n_train
        return float(np.sqrt(self.variances.sum() * (n - 1) / n / self.width))

    @property
    def dead(self) -> list[int]:
        """The image's own dimensions that do not vary over the training points."""
        if self.basis is None:
            variances = self.variances
        elif self.base.diagonal:
            variances = self.basis**2 @ self.variances
        else:
            variances = self.train_covariance.diagonal()
        return dead_dimensions(np.sqrt(np.maximum(variances, 0.0)), self.mean, self.resolution).tolist()

    @property
    def principal_std(self) -> Matrix:
        """(d,): standard deviation (divisor n − 1) along each principal direction; 0 if it is only rounding error."""
        return std_above_rounding(self.variances, self.width, self.mean, self.resolution)

    @property
    def train_covariance(self) -> Matrix:
        """(w, w) covariance of the training image in its own dimensions, divisor n − 1."""
        inner = np.diag(self.base.covariance) if self.base.diagonal else self.base.covariance
        scaled: Matrix = self.factors[:, None] * inner * self.factors
        return scaled if self.basis is None else self.basis @ scaled @ self.basis.T

    @property
    def directions(self) -> Matrix:
        """(w, d): the coordinates' directions as columns, in the image's own dimensions."""
        return np.eye(self.base.d) if self.basis is None else self.basis

    # ------------------------------------------------------------------ what a transform changes

    def scaled(self, factors: Matrix | float, *, mean: Matrix) -> Self:
        """Multiply each coordinate by its factor; `mean` (w,) is the image of the training mean."""
        return replace(self, factors=self.factors * factors, mean=mean)

    def shifted(self, by: Matrix | float) -> Self:
        """Add `by` (w,) to every point."""
        return replace(self, mean=self.mean + by)

    def rotated(self, matrix: Matrix) -> Self:
        """Rotate about the origin: multiply every point by an orthogonal (w, w) matrix."""
        basis = matrix.T if self.basis is None else matrix.T @ self.basis
        return replace(self, basis=basis, mean=self.mean @ matrix)

    # ------------------------------------------------------------------ the image

    @property
    def uniform(self) -> bool:
        """Whether all factors are equal, so that the image has the shape of the base cloud."""
        return bool(np.all(self.factors == self.factors[0]))

    @property
    def shift(self) -> Matrix:
        """μ in the coordinates of the base, (d,)."""
        return self.mean if self.basis is None else self.mean @ self.basis

    @property
    def validation(self) -> Matrix:
        """(m, d): the validation image, rotated into the base's coordinates and shifted by −μ, which preserves its shape."""
        return self.base.validation * self.factors

    @property
    def train(self) -> Matrix:
        """(n, d): the same for the training split."""
        return self.base.train * self.factors

    @property
    def validation_covariance(self) -> Matrix:
        """(d, d) in the base's coordinates."""
        return self.factors[:, None] * self.base.validation_covariance * self.factors

    def image(self, points: Matrix) -> Matrix:
        """The (n, w) image of the (n, d) points `validation` or `train`; one large matrix product."""
        return (points if self.basis is None else points @ self.basis.T) + self.mean

    def logit_weights(self, weight: Matrix) -> Matrix:
        """(d, labels): the factor by which `validation` gives the logits of a head (labels, w), up to constants."""
        return weight.T if self.basis is None else self.basis.T @ weight.T

    # ------------------------------------------------------------------ other coordinates

    def has(self, kind: Kind) -> bool:
        """Whether the coordinates are of this kind."""
        if kind == "principal":
            return self.base.diagonal
        return kind == "any" or self.basis is None

    def has_cached(self, kind: Kind) -> bool:
        """Whether `along` is free because these coordinates are already computed."""
        if kind == "principal":
            return self.uniform and self.base.has_principal
        return self.uniform and self.base.source is not None and self.basis is self.base.rotation

    def along(self, kind: Kind) -> Self:
        """The same image in coordinates of this kind; rotates both splits unless `has_cached(kind)`."""
        if self.has(kind):
            return self
        return self._along_principal() if kind == "principal" else self._along_own()

    def _along_principal(self) -> Self:
        factors = np.ones(self.base.d)
        if self.uniform:  # the image has the base's shape, whose directions may be computed already
            base, factors = self.base.principal, factors * self.factors[0]
            assert base.rotation is not None
            directions = base.rotation
        else:
            variances, directions = np.linalg.eigh(self.factors[:, None] * self.base.covariance * self.factors)
            base = Coordinates(  # no source: it would keep a second copy of the points in memory
                lambda: self.train @ directions,
                self.validation @ directions,
                np.maximum(variances, 0.0),
                self.base.n_train,
                directions.T @ self.validation_covariance @ directions,
            )
        basis = directions if self.basis is None else self.basis @ directions
        return replace(self, base=base, factors=factors, basis=basis)

    def _along_own(self) -> Self:
        basis = self.basis
        assert basis is not None
        if self.has_cached("own"):
            assert self.base.source is not None
            # the rotated coordinates have equal factors, so these apply to the source too
            return replace(self, base=self.base.source, basis=None)
        base = Coordinates(
            lambda: self.train @ basis.T,
            self.validation @ basis.T,
            self.train_covariance,
            self.base.n_train,
            basis @ self.validation_covariance @ basis.T,
        )
        return replace(self, base=base, factors=np.ones(self.width), basis=None)


def _covariance(centred: Matrix) -> Matrix:
    return centred.T @ centred / max(1, len(centred) - 1)

"""The image of a cloud under a chain of affine transforms, never multiplied out: y = (z ∘ f)Bᵀ + o.

z are the coordinates of a `Base`, f one factor for each, B orthonormal columns, o where the training mean goes. Everything that
a rotation leaves alone (covariance spectrum, lengths, distances) is read from z ∘ f, so that a move of a slider costs O(nd + d³)
and no product of an (n, d) by a (d, d) matrix. The rules are those of `isoviz.posthoc`, and tests hold the two together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from isoviz.errors import InputError
from isoviz.methods.isobn import isobn_scale
from isoviz.posthoc.directions import SMALLEST
from isoviz.posthoc.isotropic_scaling import DEFAULT_EPS
from isoviz.posthoc.principal_removal import AllButTheTopParams
from isoviz.posthoc.random_rotation import rotation_matrix
from isoviz.posthoc.whitening import TOLERANCE
from isoviz.whatif.bases import Base, Matrix
from isoviz.whatif.chains import Step

SPECTRAL = ("zca", "pca_whitening", "all_but_the_top")
DIAGONAL = ("isobn", "batch_norm")


@dataclass(frozen=True)
class Frame:
    """An image.

    Attributes:
        base: the coordinates.
        factors: f, (d,).
        basis: B, (w, d) with orthonormal columns (of those whose factor is not 0), or None for the identity.
        offset: o, (w,), the image of the training split's mean.
        hollow: whether all-but-the-top took every direction in which the training points vary beyond their rounding.
    """

    base: Base
    factors: Matrix
    basis: Matrix | None
    offset: Matrix
    hollow: bool = False

    @property
    def width(self) -> int:
        """w, the dimensions of the image."""
        return len(self.offset)

    @property
    def even(self) -> bool:
        """Whether all factors are the same, so that the image has the shape of the base's cloud."""
        return bool(np.all(self.factors == self.factors[0]))

    @property
    def shift(self) -> Matrix:
        """o in the coordinates of the base, (d,)."""
        return self.offset if self.basis is None else self.offset @ self.basis

    @property
    def validation(self) -> Matrix:
        """(m, d): the image, turned into the base's coordinates and shifted by −o: the same shape in every sense."""
        return self.base.validation * self.factors

    @property
    def train(self) -> Matrix:
        """(n, d): the same of the training split."""
        return self.base.train * self.factors

    @property
    def validation_covariance(self) -> Matrix:
        """(d, d) in the base's coordinates."""
        return self.factors[:, None] * self.base.validation_covariance * self.factors

    def image(self, points: Matrix) -> Matrix:
        """The image itself of (n, d) points `validation` or `train`, (n, w): one large product."""
        return (points if self.basis is None else points @ self.basis.T) + self.offset

    def read_by(self, weight: Matrix) -> Matrix:
        """(d, labels): the factor by which `validation` gives the logits of a head (labels, w), but for constants."""
        return weight.T if self.basis is None else self.basis.T @ weight.T

    def train_covariance(self) -> Matrix:
        """(w, w) of the image itself."""
        inner = np.diag(self.base.covariance) if self.base.diagonal else self.base.covariance
        scaled = self.factors[:, None] * inner * self.factors
        return scaled if self.basis is None else self.basis @ scaled @ self.basis.T

    def train_spread(self) -> float:
        """The root mean square of the image's population standard deviations."""
        variances = self.base.covariance if self.base.diagonal else self.base.covariance.diagonal()
        n = self.base.n_train
        return float(np.sqrt((variances * self.factors**2).sum() * (n - 1) / n / self.width))


def start(base: Base, mean: Matrix) -> Frame:
    """The cloud itself."""
    return Frame(base, np.ones(base.d), None, mean)


def needs(frame: Frame, step: Step) -> str | None:
    """Which coordinates a step needs that the frame's are not: `principal` or `plain`; None if it can go on from here."""
    if step.slug in SPECTRAL and not frame.base.diagonal:
        return "principal"
    if step.slug in DIAGONAL and frame.basis is not None:
        return "plain"
    return None


def is_cheap(frame: Frame, wanted: str) -> bool:
    """Whether the coordinates that a step needs are known already, so that no point has to be moved."""
    if wanted == "principal":
        return frame.even and frame.base.has_principal
    return frame.even and frame.base.origin is not None and frame.basis is frame.base.turned


def principal(frame: Frame) -> Frame:
    """The same image in principal directions of its training split."""
    if frame.even:  # the shape is the base's own, whose directions may be known
        base, factors = frame.base.principal, np.full(frame.base.d, frame.factors[0])
    else:
        scaled = frame.factors[:, None] * frame.base.covariance * frame.factors
        base = Base(lambda: frame.train, frame.validation, scaled, frame.base.n_train).principal
        factors = np.ones(frame.base.d)
    directions = base.turned
    assert directions is not None
    basis = directions if frame.basis is None else frame.basis @ directions
    return replace(frame, base=base, factors=factors, basis=basis)


def plain(frame: Frame) -> Frame:
    """The same image in its own coordinates."""
    if frame.basis is None:
        return frame
    if is_cheap(frame, "plain"):
        assert frame.base.origin is not None
        return replace(frame, base=frame.base.origin, basis=None)
    basis = frame.basis
    base = Base(lambda: frame.train @ basis.T, frame.validation @ basis.T, frame.train_covariance(), frame.base.n_train)
    return replace(frame, base=base, factors=np.ones(frame.width), basis=None)


def advance(frame: Frame, step: Step, resolution: float) -> Frame:
    """One affine step further, in coordinates that `needs` nothing of.

    Args:
        resolution: `cloud.resolution` of the vectors as they are kept.

    Raises:
        InputError: as the transform's own `fit`.
    """
    p = step.params.model_dump()
    if step.slug == "scale":
        return replace(frame, factors=frame.factors * p["factor"], offset=frame.offset * p["factor"])
    if step.slug == "shift":
        return replace(frame, offset=frame.offset + p["by"] * frame.train_spread())
    if step.slug == "rotation":
        turn = rotation_matrix(frame.width, p["seed"])
        basis = turn.T if frame.basis is None else turn.T @ frame.basis
        return replace(frame, basis=basis, offset=frame.offset @ turn)
    if step.slug == "batch_norm":
        return _batch_norm(frame, p["eps"], resolution)
    if step.slug == "isobn":
        return _isobn(frame, p)
    std = _spread_along(frame, resolution)
    if step.slug == "all_but_the_top":
        return _all_but_the_top(frame, std, step)
    factors = _whitening_factors(std, p["strength"], p["eps"], frame.width)
    whitened = replace(frame, factors=frame.factors * factors, offset=np.zeros(frame.width))
    return whitened if step.slug == "zca" else _turned_to_axes(whitened, std, p["components"])


def _spread_along(frame: Frame, resolution: float) -> Matrix:
    """(d,) standard deviation of the training image along each coordinate, 0 where `principal_axes` would say 0."""
    variances = frame.base.covariance * frame.factors**2
    variances = np.where(variances > frame.width * np.finfo(np.float64).eps * variances.max(), variances, 0.0)
    std = np.sqrt(variances)
    return np.where(std > resolution * np.abs(frame.offset).max(), std, 0.0)


def _whitening_factors(std: Matrix, strength: float, eps: float, width: int) -> Matrix:
    """As `isoviz.posthoc.whitening.scaled_axes`."""
    if strength == 0:
        return np.ones_like(std)
    if eps > 0:
        return np.hypot(std, np.sqrt(eps)) ** -strength
    kept = std > std.max() * np.sqrt(TOLERANCE * np.sqrt(width))
    return np.where(kept, np.where(kept, std, 1.0) ** -strength, 0.0)


def _turned_to_axes(frame: Frame, std: Matrix, components: int | None) -> Frame:
    """PCA whitening's own coordinates: principal directions by falling spread, each with its largest entry positive."""
    width = frame.width
    count = width if components is None else components
    if count > width:
        raise InputError(f"components must be at most {width}, the dimensions of the points, got {count}")
    basis = np.eye(frame.base.d) if frame.basis is None else frame.basis
    order = np.argsort(-std, kind="stable")[:count]
    chosen = basis[:, order]
    signs = np.where(chosen[np.abs(chosen).argmax(axis=0), np.arange(count)] < 0, -1.0, 1.0)
    turned = np.zeros((count, frame.base.d))
    turned[np.arange(count), order] = signs
    kept = np.zeros(frame.base.d)
    kept[order] = frame.factors[order]
    return replace(frame, factors=kept, basis=turned, offset=np.zeros(count))


def _all_but_the_top(frame: Frame, std: Matrix, step: Step) -> Frame:
    assert isinstance(step.params, AllButTheTopParams)
    width, params = frame.width, step.params
    count = max(1, round(width / 100)) if params.remove is None else params.remove
    if count > width:
        raise InputError(f"remove must be at most {width}, the dimensions of the points, got {count}")
    varying = int(np.count_nonzero(std))
    gone = np.argsort(-std, kind="stable")[: min(count, varying)]
    factors = frame.factors.copy()
    factors[gone] = 0.0
    offset = np.zeros(width)
    if params.literal:
        directions = np.eye(frame.base.d)[:, gone] if frame.basis is None else frame.basis[:, gone]
        offset = -(frame.offset @ directions) @ directions.T
    return replace(frame, factors=factors, offset=offset, hollow=frame.hollow or count >= varying)


def _batch_norm(frame: Frame, eps: float, resolution: float) -> Frame:
    n = frame.base.n_train
    std = np.sqrt(frame.base.covariance.diagonal() * frame.factors**2 * ((n - 1) / n))
    spread = np.hypot(std, np.sqrt(eps))
    if eps == 0:
        spread = np.where(std > resolution * np.abs(frame.offset), std, 0.0)
    scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > SMALLEST)
    return replace(frame, factors=frame.factors * scale, offset=np.zeros(frame.width))


def _isobn(frame: Frame, p: dict[str, object]) -> Frame:
    n = frame.base.n_train
    covariance = frame.train_covariance() * ((n - 1) / n)
    form, beta, eps = str(p["form"]), p["beta"], p["eps"]
    floor = DEFAULT_EPS[form] if eps is None else eps
    scale = isobn_scale(covariance, np.sqrt(covariance.diagonal()), beta, floor, form)  # type: ignore[arg-type]
    return replace(frame, factors=frame.factors * scale, offset=frame.offset * scale)

"""ZCA whitening, the whitening that moves points the least; with a ridge, soft-ZCA. PCA whitening, which can keep only k columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz.bibliography import entries
from isoviz.errors import InputError
from isoviz.posthoc.directions import Axes, peak_signs, principal_axes
from isoviz.posthoc.factored import FactoredCloud
from isoviz.posthoc.protocol import CataloguedTransform, Learnt, Paper, Params, parameter
from isoviz.posthoc.ridge import RidgeParams, words

TOLERANCE = 1e-7
SIMPLEX = "any two of the {} rows that it is fitted on get the same cosine, −1/{}. Their neighbours are gone; this is no rise of isotropy"


class StrengthParams(Params):
    """How far a whitening goes."""

    strength: float = parameter(
        1.0,
        label="Strength",
        symbol="s",
        help="Divides each direction by the s-th power of its standard deviation: 0 only centres, 1 whitens.",
        source="Our interpolation between centring and whitening",
        ge=0,
        le=1,
        slider=(0, 1, 0.05),
        start=0.5,
    )


class WhiteningParams(RidgeParams, StrengthParams):  # in chains, the strength comes first
    """Parameters of both whitenings."""


class Whitening(CataloguedTransform):
    """Base of both whitenings: centre, then multiply each principal direction by a factor.

    Learnt: `mean` (d,), `matrix` (d, width of the image). `dropped`: the number of the image's directions that are 0 for lack of
    variance.
    """

    params: WhiteningParams
    COUNTS = ("dropped",)
    coordinates = "principal"
    fits_on = "sample"
    training = "it needs the full covariance, which changes at every step; batch normalisation and IsoBN scale single dimensions"

    def _axes(self, x: NDArray[np.float64], eps: float) -> tuple[Axes, NDArray[np.float64]]:
        """The principal axes of a cloud (n, d) and the factor of each, (r,); for directions beyond the r axes it is 0."""
        axes = principal_axes(x, eps, full=self.params.strength == 0 or self.params.floor(1.0) > 0)
        return axes, self._factors(axes.std, x.shape[1])

    def _floor(self, std: NDArray[np.float64], d: int) -> float:
        """ε from the standard deviations of the principal directions."""
        return self.params.floor(float(std @ std) / d)

    def _factors(self, std: NDArray[np.float64], d: int) -> NDArray[np.float64]:
        """The factor (λ + ε)^(−s/2) of each principal direction from its standard deviation, both (r,).

        Without a ridge it is 0 for a direction whose variance is at most 1e-7 · √d · λ_max. At s = 0 nothing is dropped: this
        is plain centring, also for points outside the span of the fit set.
        """
        if self.params.strength == 0:
            return np.ones_like(std)
        if (floor := self._floor(std, d)) > 0:
            ridged: NDArray[np.float64] = np.hypot(std, np.sqrt(floor)) ** -self.params.strength
            return ridged
        nonzero = std > std.max() * np.sqrt(TOLERANCE * np.sqrt(d))
        return np.where(nonzero, np.where(nonzero, std, 1.0) ** -self.params.strength, 0.0)

    def _notes(self, std: NDArray[np.float64], kept: int, n: int, d: int, width: int) -> tuple[str, ...]:
        """What an image of `width` directions of which `kept` are not 0 owes to few points, to directions without variance or to ε."""
        if self.params.strength == 0:
            return ()
        if self._white_simplex(kept, n):
            return (SIMPLEX.format(n, n - 1),)
        dropped = (
            f"{width - kept} of {width} directions hold almost no variance and are dropped" if kept < width else ""
        )
        swamped = words(self._floor(std, d), std**2, d, self.params.strength)
        return tuple(filter(None, [dropped, swamped]))

    def _white_simplex(self, kept: int, n: int) -> bool:
        """Whether the n points of the fit set come out equally far from each other."""
        return self.params.strength == 1 and self.params.floor(1.0) == 0 and kept == n - 1 > 1

    def _whitened(self, cloud: FactoredCloud, std: NDArray[np.float64], kept: int, width: int) -> FactoredCloud:
        """The image with its notes."""
        if self.params.strength == 0:
            return cloud
        n = cloud.base.n_train
        notes = self._notes(std, kept, n, len(std), width)
        return replace(cloud, notes=(*cloud.notes, *notes), whitened=True, simplex=self._white_simplex(kept, n))


SOFT = "Soft-ZCA whitening"


class ZCAParams(WhiteningParams):
    ridge: float | None = parameter(
        None,
        label="Ridge",
        symbol="ε / mean variance",
        help=(
            "ε, added to every eigenvalue, as a multiple of the mean variance. Above 0 this is soft-ZCA, which whitens strong "
            "directions and stretches weak ones less. Empty: the absolute ε counts."
        ),
        source="Soft-ZCA: Diera et al. 2024, arXiv 2411.17538, with ε in the unit of a variance",
        sweep=(0.1, 1.0),
        suggested=True,
        ge=0,
        le=1e6,
    )


class ZCA(Whitening):
    """Centres, then gives every direction equal variance without rotating: y = (x − μ)(Σ + εI)^(−s/2).

    With ε > 0 and s = 1 it is soft-ZCA (Diera et al. 2024).

    Learnt: `mean` (d,), `matrix` (d, d). Directions dropped for lack of variance map to 0.
    """

    slug = "zca"
    title = "ZCA whitening"
    summary = (
        "Centres and rescales so that all directions have equal variance, without rotating the dimensions. With a ridge "
        "(soft-ZCA), weak directions are stretched less."
    )
    equation = r"y = (x - \mu)\,(\Sigma + \epsilon I)^{-s/2}"
    paper = Paper("Bell & Sejnowski 1997", entries()["bell1997independent"])
    variants = {SOFT: Paper("Diera et al. 2024", entries()["diera2024isotropy"])}
    Params = ZCAParams
    params: ZCAParams
    traps = (
        "With fewer points than dimensions the fit set becomes perfectly white in its own span; other points do not.",
        "Without a ridge, directions with almost no variance are dropped, not stretched; see `dropped`.",
        "`ridge` is a multiple of the mean variance. `eps` has the unit of a variance: the same `eps` can have no effect on one "
        "cloud, a mild effect on another, and swamp the variance of a third.",
        "At full strength the directions with the least variance, often noise, get the same weight as those with the most.",
    )
    ARRAYS = {"mean": "d", "matrix": "dd"}

    def learn(self, x: NDArray[np.float64], eps: float) -> Learnt:
        axes, factors = self._axes(x, eps)
        matrix = (axes.directions * factors) @ axes.directions.T
        (n, d), kept = x.shape, int(np.count_nonzero(factors))
        notes = self._notes(axes.std, kept, n, d, d)
        return Learnt({"mean": axes.mean, "matrix": matrix}, {"dropped": d - kept}, notes)

    def act(self, cloud: FactoredCloud) -> FactoredCloud:
        std, d = cloud.principal_std, cloud.width
        factors = self._factors(std, d)
        return self._whitened(cloud.scaled(factors, mean=np.zeros(d)), std, int(np.count_nonzero(factors)), d)

    @classmethod
    def name(cls, params: Any) -> str:
        if params.strength == 0:
            return f"Centring ({cls.title} at strength 0)"
        return SOFT if params.floor(1.0) > 0 else cls.title


class PCAWhiteningParams(WhiteningParams):
    components: int | None = parameter(
        None,
        label="Components",
        symbol="k",
        help="Keep the k directions of largest variance. Empty keeps all.",
        source="Su et al. 2021 (256 for base encoders, 384 for large ones)",
        sweep=(256, 384),
        ge=1,
    )


class PCAWhitening(Whitening):
    """Centres, rotates to the principal directions and gives them equal variance: y = (x − μ)UΛ^(−s/2).

    Learnt: `mean` (d,), `matrix` (d, k). The width is k (default d) at any rank: a direction dropped for lack of variance is a
    column of zeros. Each column of U has its largest entry positive, which fixes the signs.
    """

    slug = "pca_whitening"
    title = "PCA whitening"
    summary = "Rotates to the principal directions and rescales them to equal variance; can keep only the first k."
    equation = r"y = (x - \mu)\,U_k \Lambda_k^{-s/2}"
    paper = Paper("Su et al. 2021", entries()["su2021whitening"])
    Params = PCAWhiteningParams
    params: PCAWhiteningParams
    traps = (
        "The coordinates are rotated: a classifier trained on the original coordinates cannot read the new ones. ZCA does not "
        "rotate them.",
        "With fewer points than dimensions the fit set becomes perfectly white in its own span; other points do not.",
        "Directions with almost no variance become columns of zeros; see `dropped`.",
    )
    ARRAYS = {"mean": "d", "matrix": "dk"}

    def learn(self, x: NDArray[np.float64], eps: float) -> Learnt:
        d = x.shape[1]
        count = self.image_width(d)
        axes, factors = self._axes(x, eps)
        matrix = np.zeros((d, count))  # n < d points span fewer directions than requested
        available = min(count, len(factors))
        matrix[:, :available] = axes.directions[:, :available] * factors[:available]
        kept = int(np.count_nonzero(factors[:count]))
        notes = self._notes(axes.std, kept, len(x), d, count)
        return Learnt({"mean": axes.mean, "matrix": matrix}, {"dropped": count - kept}, notes)

    def image_width(self, d: int) -> int:
        count = d if self.params.components is None else self.params.components
        if count > d:
            raise InputError(f"components must be at most {d}, the dimensions of the points, got {count}")
        return count

    def act(self, cloud: FactoredCloud) -> FactoredCloud:
        std = cloud.principal_std
        count = self.image_width(cloud.width)
        leading = np.argsort(-std, kind="stable")[:count]
        factors = np.zeros(len(std))
        factors[leading] = self._factors(std, cloud.width)[leading]
        basis = np.zeros((count, len(std)))
        basis[np.arange(count), leading] = peak_signs(cloud.directions[:, leading])
        image = replace(cloud.scaled(factors, mean=np.zeros(count)), basis=basis)
        return self._whitened(image, std, int(np.count_nonzero(factors)), count)

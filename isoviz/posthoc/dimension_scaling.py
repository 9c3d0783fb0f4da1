"""Scalings of single dimensions: batch normalisation without its affine part, and IsoBN's scaling, both computed once from a fit set."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from isoviz.formatting import number
from isoviz.methods import batchnorm as methods
from isoviz.methods.isobn import SCALE, IsoBN, IsoBNParams, isobn_scale
from isoviz.metrics.dimensions import dimension_std
from isoviz.metrics.moments import centre
from isoviz.parameters import declared_in
from isoviz.posthoc.directions import SMALLEST
from isoviz.posthoc.factored import FactoredCloud
from isoviz.posthoc.protocol import CataloguedTransform, InTraining, Learnt, Paper, Params, parameter
from isoviz.posthoc.ridge import EVEN, RidgeParams, words


class BatchNormParams(RidgeParams):
    ridge: float | None = parameter(
        None,
        label="Floor",
        symbol="ε / mean variance",
        help=(
            "ε, added to the variance under the root, as a multiple of the mean variance. Dimensions with a variance far "
            "below it end up below unit variance. Empty: the absolute ε counts."
        ),
        source="our addition: the same effect on a cloud in any unit",
        ge=0,
        le=1e6,
        start=1e-5,
    )
    eps: float = parameter(
        1e-5,
        label="Floor, absolute",
        symbol="ε",
        help="ε in the unit of a variance; it counts only if the multiple is empty.",
        source="Ioffe & Szegedy 2015, algorithm 1; the usual default in frameworks",
        ge=0,
        le=1e6,
    )


class BatchNorm(CataloguedTransform):
    """y = (x − μ)/√(σ² + ε) in each dimension; population variance (divisor n), no affine part.

    Learnt: `mean` (d,), `scale` (d,). With ε = 0 a dimension without variance maps to 0. `tiny_dimensions`: the number of
    dimensions with a σ of at most 1e-6 of the median σ.
    """

    slug = "batch_norm"
    title = "Batch normalisation"
    summary = "Centres every dimension and divides it by its standard deviation."
    equation = r"y_i = (x_i - \mu_i) / \sqrt{\sigma_i^2 + \epsilon}"
    paper = cast(Paper, methods.BatchNorm.paper)  # only the baseline has none
    Params = BatchNormParams
    params: BatchNormParams
    traps = (
        "Correlations do not change, so correlated dimensions still share one dominant direction.",
        "Dimensions that hardly vary hold rounding noise, which grows by up to 1/√ε times; see `tiny_dimensions`.",
    )
    ARRAYS = {"mean": "d", "scale": "d"}
    COUNTS = ("tiny_dimensions",)
    coordinates = "own"
    fits_on = "population"
    training = InTraining(
        "batchnorm", {}, "In training the statistics come from batches, and the floor is the method's fixed 1e-5."
    )

    def learn(self, x: NDArray[np.float64], eps: float) -> Learnt:
        _, mean = centre(x)
        std = np.asarray(dimension_std(x))
        scale = self._scale(std, mean, eps)
        tiny = int(np.count_nonzero(std <= 1e-6 * np.median(std)))
        return Learnt({"mean": mean, "scale": scale}, {"tiny_dimensions": tiny}, self._notes(std, scale))

    def _notes(self, std: NDArray[np.float64], scale: NDArray[np.float64]) -> tuple[str, ...]:
        """Says which dimensions ε swamps, and which hold no more than rounding noise."""
        notes = []
        if swamped := words(self.params.floor(float(np.mean(std**2))), std**2, len(std)):
            notes.append(f"{swamped}. The median σ after it is {number(float(np.median(std * scale)), 3)}, not 1")
        if len(tiny := np.flatnonzero(std <= 1e-6 * np.median(std))):
            named = f"{', '.join(map(str, tiny[:8]))}{', …' if len(tiny) > 8 else ''}"
            notes.append(f"dimensions that hold no more than rounding noise: {named}")
        return tuple(notes)

    def _scale(self, std: NDArray[np.float64], mean: NDArray[np.float64], eps: float) -> NDArray[np.float64]:
        floor = self.params.floor(float(np.mean(std**2)))
        spread = np.hypot(std, np.sqrt(floor))
        if floor == 0:
            spread = np.where(std > eps * np.abs(mean), std, 0.0)  # a spread below the input's rounding counts as 0
        scale: NDArray[np.float64] = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > SMALLEST)
        return scale

    def act(self, cloud: FactoredCloud) -> FactoredCloud:
        std = cloud.std
        scale = self._scale(std, cloud.mean, cloud.resolution)
        image = cloud.scaled(scale, mean=np.zeros(cloud.width))
        return replace(image, notes=(*cloud.notes, *self._notes(std, scale)))


DEFAULT_EPS = {"paper": 0.1, "code": 1e-3}


class IsoBNTransformParams(Params):
    beta: float = declared_in(IsoBNParams, "beta")
    eps: float | None = parameter(
        None,
        label="Floor",
        symbol="ε",
        help=(
            "Added to σγ so that dimensions with almost no variance are not amplified. Empty: 0.1 (paper) or 0.001 (code), as in "
            "training."
        ),
        source="IsoBN, section 4.1 (0.1 with γ as a sum; the authors' code uses 1e-3 with γ as a mean)",
        ge=1e-12,
        le=1000,
    )
    form: Literal["paper", "code"] = declared_in(
        IsoBNParams,
        "form",
        help="paper: γ sums ρ². code: γ averages ρ², and ε is also added under the root of equation 7.",
    )

    @property
    def floor(self) -> float:
        """ε in its unit: the given value, or the default of the form."""
        return DEFAULT_EPS[self.form] if self.eps is None else self.eps


class IsoBNTransform(CataloguedTransform):
    """y = θ̄ ⊙ x, with θ̄ from the population statistics of the fit set. The mean is not subtracted.

    Learnt: `scale` (d,). A dimension without variance counts as uncorrelated with all others and gets a finite factor; a cloud
    without variance does not change.
    """

    slug = "isobn"
    title = "IsoBN as a transform"
    summary = "Shrinks dimensions with high variance and strong correlations, preserving the total variance."
    equation = rf"y = \bar\theta \odot x,\quad {SCALE}"
    paper = cast(Paper, IsoBN.paper)  # only the baseline has none
    Params = IsoBNTransformParams
    params: IsoBNTransformParams
    traps = (
        "The scaling is diagonal: it cannot remove correlation, only shrink correlated dimensions.",
        "ε depends on the cloud's scale: if σγ is far below ε, all factors are almost equal and little changes.",
        "The same ε means different things in the two forms: up to a common factor, ε in the code form corresponds to d·ε in "
        "the paper form. Because of the ε under its root, the code form preserves a little less than the total variance.",
    )
    ARRAYS = {"scale": "d"}
    coordinates = "own"
    fits_on = "population"

    def learn(self, x: NDArray[np.float64], eps: float) -> Learnt:
        centred, _ = centre(x)
        covariance = centred.T @ centred / len(x)
        factors = self._factors(covariance)
        return Learnt({"scale": factors}, notes=self._notes(factors))

    def _factors(self, covariance: NDArray[np.float64]) -> NDArray[np.float64]:
        """θ̄ (d,) from Σ (d, d), divisor n."""
        std = np.sqrt(covariance.diagonal())
        scale: NDArray[np.float64] = isobn_scale(covariance, std, self.params.beta, self.params.floor, self.params.form)
        return scale

    def _notes(self, factors: NDArray[np.float64]) -> tuple[str, ...]:
        if self.params.beta == 0 or float(factors.max()) > EVEN * float(factors.min()):
            return ()
        return ("all factors are almost equal, so the shape hardly changes: ε is large beside σγ, or σγ is even",)

    def act(self, cloud: FactoredCloud) -> FactoredCloud:
        n = cloud.base.n_train
        factors = self._factors(cloud.train_covariance * ((n - 1) / n))
        return replace(cloud.scaled(factors, mean=cloud.mean * factors), notes=(*cloud.notes, *self._notes(factors)))

    @classmethod
    def in_training(cls, params: Any) -> InTraining | str:
        note = "In training the statistics change with the encoder, and the encoder adapts to the scaling."
        return InTraining("isobn", {"beta": params.beta, "eps": params.floor, "form": params.form}, note)

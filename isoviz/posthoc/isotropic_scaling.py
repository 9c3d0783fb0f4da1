"""IsoBN's scaling, computed once from a fit set instead of along the training."""

from __future__ import annotations

from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from isoviz.methods.isobn import IsoBN
from isoviz.metrics.moments import centre
from isoviz.posthoc.affine_map import Affine
from isoviz.posthoc.factored import FactoredCloud
from isoviz.posthoc.protocol import CataloguedTransform, InTraining, Learnt, Paper, Params, parameter

DEFAULT_EPS = {"paper": 0.1, "code": 1e-3}


class IsoBNTransformParams(Params):
    """Parameters of IsoBN as a transform."""

    beta: float = parameter(
        0.5,
        label="Strength",
        symbol="β",
        help="How strongly correlated, high-variance dimensions are scaled down. 0 changes nothing.",
        source="IsoBN, equation 5 and section 4.1",
        sweep=(0.25, 0.5, 1.0),
        ge=0,
        le=4,
        slider=(0, 4, 0.05),
    )
    eps: float | None = parameter(
        None,
        label="Floor",
        symbol="ε",
        help="Added to σγ so that dimensions with almost no variance are not blown up. Empty: 0.1 (paper) or 0.001 (code).",
        source="IsoBN, section 4.1 (0.1 with γ as a sum; the authors' code uses 1e-3 with γ as a mean)",
        ge=1e-12,
        le=1000,
    )
    form: Literal["paper", "code"] = parameter(
        "paper",
        label="Form",
        symbol="",
        help="paper: γ sums ρ². code: γ averages ρ².",
        source="methods.md §4: where the paper and the authors' code differ",
    )


class IsoBNTransform(CataloguedTransform):
    """y = θ̄ ⊙ x, with θ̄ from the population statistics of the fit set. No mean is subtracted.

    Learnt: `scale` (d,). A dimension without variance counts as uncorrelated with all others and keeps a finite factor;
    a cloud without variance is left unchanged.
    """

    slug = "isobn"
    title = "IsoBN as a transform"
    summary = "Shrinks dimensions that vary a lot and move together with others, keeping the total variance."
    equation = r"y = \bar\theta \odot x,\quad \theta_i = (\sigma_i \gamma_i + \epsilon)^{-\beta},\quad \gamma_i = \sum_j \rho_{ij}^2"
    paper = cast(Paper, IsoBN.paper)  # only the baseline has none
    Params = IsoBNTransformParams
    params: IsoBNTransformParams
    traps = (
        "The scaling is diagonal: it cannot remove correlation, only shrink dimensions that have it.",
        "ε is not scale-free: on a cloud whose σγ is far below it the factors are all alike and nothing changes.",
        "The same ε means different things in the two forms: with d dimensions, ε of the code equals d·ε of the paper.",
    )
    ARRAYS = {"scale": "d"}
    coordinates = "own"

    def learn(self, x: NDArray[np.float64], eps: float) -> Learnt:
        centred, _ = centre(x)
        covariance = centred.T @ centred / len(x)
        return Learnt({"scale": self._factors(covariance)})

    @property
    def floor(self) -> float:
        """ε: as given, or that of the form."""
        return DEFAULT_EPS[self.params.form] if self.params.eps is None else self.params.eps

    def _factors(self, covariance: NDArray[np.float64]) -> NDArray[np.float64]:
        """θ̄ (d,) from Σ (d, d), divisor n."""
        std = np.sqrt(covariance.diagonal())
        return isobn_factors(covariance, std, self.params.beta, self.floor, self.params.form)

    def apply(self, x: Any, learnt: dict[str, Any]) -> Any:
        return x * learnt["scale"]

    def act(self, cloud: FactoredCloud) -> FactoredCloud:
        n = cloud.base.n_train
        factors = self._factors(cloud.train_covariance * ((n - 1) / n))
        return cloud.scaled(factors, mean=cloud.mean * factors)

    def in_training(self) -> InTraining:
        params = {"beta": self.params.beta, "eps": self.floor, "form": self.params.form}
        note = "In training the statistics move with the encoder, and the encoder adapts to the scaling."
        return InTraining("isobn", params, note)

    def affine(self) -> Affine:
        scale = self.learnt.arrays["scale"]
        return Affine(scale, np.zeros_like(scale))


def isobn_factors(
    covariance: NDArray[np.float64], std: NDArray[np.float64], beta: float, eps: float, form: str
) -> NDArray[np.float64]:
    """θ̄, (d,), of IsoBN equations 4-7 in float64, with the square root that equation 7 lacks in print.

    The training method has the same formula in torch (`isoviz.methods.isobn.isobn_scale`); here torch is not loaded. A test
    holds the two together.

    Args:
        covariance, std: Σ (d, d) and σ (d,), divisor n.
        form: "paper" sums ρ² over j, "code" averages it.
    """
    largest = float(std.max())
    if largest == 0.0:
        return np.ones_like(std)
    dead = std <= 1e-12 * largest
    safe = np.where(dead, 1.0, std)
    rho = np.clip(covariance / safe[:, None] / safe, -1.0, 1.0)
    rho[dead, :] = 0.0
    rho[:, dead] = 0.0
    rho[dead, dead] = 1.0
    squares = rho * rho
    gamma = squares.mean(axis=1) if form == "code" else squares.sum(axis=1)  # equation 5
    theta: NDArray[np.float64] = (std * gamma + eps) ** -beta  # equation 6
    theta /= theta.max()  # the constant cancels in equation 7; without it θ²σ² could underflow
    share = std / largest
    return theta * np.sqrt((share @ share) / np.sum((share * theta) ** 2))  # equation 7 with its root

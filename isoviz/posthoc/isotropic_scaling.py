"""IsoBN's scaling, computed once from a fit set instead of along the training."""

from __future__ import annotations

from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from isoviz.methods.isobn import IsoBN, isobn_scale
from isoviz.metrics.moments import centre
from isoviz.posthoc.affine_map import Affine
from isoviz.posthoc.protocol import CataloguedTransform, Learnt, Paper, Params, parameter

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
        help="paper: γ sums ρ². code: γ averages ρ², and ε stands under the root of equation 7 too.",
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
        "The same ε means different things in the two forms: with d dimensions, ε of the code is d·ε of the paper, but for a common "
        "factor: with ε under its root, the code keeps a little less than the total variance.",
    )
    ARRAYS = {"scale": "d"}

    def learn(self, x: NDArray[np.float64], eps: float) -> Learnt:
        centred, _ = centre(x)
        covariance = centred.T @ centred / len(x)
        std = np.sqrt(covariance.diagonal())
        floor = DEFAULT_EPS[self.params.form] if self.params.eps is None else self.params.eps
        return Learnt({"scale": isobn_scale(covariance, std, self.params.beta, floor, self.params.form)})

    def apply(self, x: Any, learnt: dict[str, Any]) -> Any:
        return x * learnt["scale"]

    def affine(self) -> Affine:
        scale = self.learnt.arrays["scale"]
        return Affine(scale, np.zeros_like(scale))

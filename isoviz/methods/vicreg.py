"""VICReg's variance and covariance terms on one cloud (Bardes et al. 2022), or Barlow Twins' decorrelation (Zbontar et al. 2021)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from isoviz.bibliography import entries
from isoviz.methods.protocol import CloudParams, CloudPenalty, Paper, parameter

if TYPE_CHECKING:
    from torch import Tensor

VARIANCE_EPS = 1e-4
"""Added to a variance before its root: VICReg, equation 2, and the authors' code."""
NORM_EPS = 1e-5
"""Added to a variance before Barlow Twins divides by its root: the default of its batch normalisation."""


class VICRegParams(CloudParams):
    lam: float = parameter(
        0.001,
        label="Strength",
        symbol="λ",
        help="Multiplies both terms. 0 adds none.",
        source="ours: VICReg weights its terms against each other, not against a task loss",
        sweep=(0.001, 0.01, 0.1),
        suggested=True,
        ge=0,
        le=100,
    )
    variance: float = parameter(
        25.0,
        label="Variance weight",
        symbol="μ",
        help="How strongly each dimension's standard deviation is pulled up to the threshold. 0 leaves the variances alone.",
        source="VICReg, equation 6 (25 on ImageNet; the authors' code halves it for each view)",
        ge=0,
        le=1000,
    )
    covariance: float = parameter(
        1.0,
        label="Covariance weight",
        symbol="ν",
        help="How strongly the covariances of different dimensions are pulled to 0. 0 leaves them alone.",
        source="VICReg, equation 6 (1 on ImageNet); Barlow Twins: 0.0051 · d",
        ge=0,
        le=1000,
    )
    gamma: float = parameter(
        1.0,
        label="Threshold",
        symbol="γ",
        help="The standard deviation that each dimension should reach. Larger ones cost nothing.",
        source="VICReg, equation 1",
        gt=0,
        le=100,
    )
    decorrelation: Literal["covariance", "correlation"] = parameter(
        "covariance",
        label="Decorrelates",
        help=(
            "covariance: VICReg's squared covariances, which also shrink with the vectors. correlation: Barlow Twins' squared "
            "correlations, which do not depend on scale."
        ),
        source="VICReg, equation 4; Barlow Twins, equation 1 (arXiv 2103.03230)",
    )


class VICReg(CloudPenalty):
    """Adds λ times VICReg's variance and covariance terms to the loss."""

    slug = "vicreg"
    title = "VICReg"
    summary = "Keeps every dimension's standard deviation above a threshold and pulls the dimensions' covariances to 0."
    equation = (
        r"L = L_{\mathrm{task}} + \lambda \Bigl[\frac{\mu}{d} \sum_{i} \max\bigl(0,\, \gamma - \sqrt{C_{ii} + 10^{-4}}\bigr)"
        r" + \frac{\nu}{d} \sum_{i \ne j} C_{ij}^2\Bigr]"
    )
    paper = Paper("Bardes et al. 2022", entries()["bardes2022vicreg"])
    Params = VICRegParams
    params: VICRegParams
    effects = {"penalty": "down"}
    acts_on = "isoscore"
    traps = (
        "VICReg's invariance term needs two views of each input and is left out: the task loss takes its place.",
        "The paper adds the variance terms of its two views, the authors' code averages them; both add the covariance terms. "
        "We take the paper's 25 to 1. A variance weight of 12.5 gives the ratio of the code.",
        "A dimension's variance in a pooler that ends in tanh stays below 1: the threshold 1 is reached only by saturation.",
        "The covariance of n rows has rank below n. With n below d, dimensions that are independent still show covariances of "
        "the order of 1/√n, so the term does not reach 0.",
        "Barlow Twins correlates two views, and divides its sum by nothing; on one cloud its diagonal is 1 by construction. "
        "Its weight 0.0051 is a covariance weight of 0.0051 · d here.",
    )

    def statistic(self, points: Tensor) -> Tensor:
        """μ times the variance term plus ν times the covariance term; O(n · d · min(n, d)). Zero for fewer than two points."""
        if len(points) < 2:
            return points.sum() * 0.0
        centred = points - points.mean(dim=0)
        variances = centred.square().sum(dim=0) / (len(points) - 1)
        variance = (self.params.gamma - (variances + VARIANCE_EPS).sqrt()).clamp_min(0).mean()
        if self.params.decorrelation == "covariance":
            covariance = off_diagonal(centred, len(points) - 1)
        else:
            population = centred.square().mean(dim=0)
            covariance = off_diagonal(centred / (population + NORM_EPS).sqrt(), len(points))
        return self.params.variance * variance + self.params.covariance * covariance


def off_diagonal(points: Tensor, divisor: int) -> Tensor:
    """The squared entries off the diagonal of XᵀX/divisor, summed and divided by d: a scalar.

    From the smaller of XᵀX (d, d) and XXᵀ (n, n), which have the same squared Frobenius norm.
    """
    from isoviz.metrics.cloud import sum_dtype

    n, d = points.shape
    wide = sum_dtype(points.device)
    product = points @ points.T if n <= d else points.T @ points
    diagonal = points.square().sum(dim=0, dtype=wide).square().sum()
    total = product.square().sum(dtype=wide) - diagonal
    return (total / (d * divisor**2)).to(points.dtype)

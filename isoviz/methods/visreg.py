"""VISReg: pulls centre, scale and shape of the batch to a standard normal, each by a term of its own (Wu, Balestriero & Levine 2026)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoviz.bibliography import entries
from isoviz.methods.protocol import CloudParams, Paper, SketchedPenalty, parameter

if TYPE_CHECKING:
    from torch import Tensor

STD_EPS = 1e-6
"""The least standard deviation that the shape term divides by."""


class VISRegParams(CloudParams):
    lam: float = parameter(
        0.01,
        label="Strength",
        symbol="λ",
        help="Multiplies all three terms. 0 adds none.",
        source="ours, mild beside a task loss",
        sweep=(0.01, 0.1, 1.0),
        suggested=True,
        ge=0,
        le=100,
    )
    directions: int = parameter(
        256,
        label="Directions",
        symbol="K",
        help="Random projections per batch, drawn anew for each batch. Time grows in proportion.",
        source="VISReg",
        ge=1,
        le=16384,
    )


class VISReg(SketchedPenalty):
    """Adds λ times a centre, a scale and a shape term to the loss."""

    slug = "visreg"
    title = "VISReg"
    summary = "Pulls the batch's mean to 0, each dimension's standard deviation to 1, and random projections to a normal shape."
    equation = (
        r"L = L_{\mathrm{task}} + \lambda \Bigl[\frac{1}{d} \sum_i \mu_i^2 + \frac{1}{d} \sum_i (1 - \sigma_i)^2"
        r" + \frac{1}{Kn} \sum_{a} \sum_{k=1}^{n} \Bigl( (\tilde X a)_{(k)} - \Phi^{-1}\bigl(\tfrac{k}{n+1}\bigr) \Bigr)^2 \Bigr],"
        r"\quad \tilde x_{ji} = \frac{x_{ji} - \mu_i}{\mathrm{sg}(\sigma_i)},\ \lVert a \rVert = 1"
    )
    paper = Paper("Wu, Balestriero & Levine 2026", entries()["wu2026visreg"])
    Params = VISRegParams
    params: VISRegParams
    effects = {"penalty": "down"}
    acts_on = "isoscore"
    traps = (
        "The target fixes the scale: a vector of d dimensions must have a length of about √d. On vectors of length 1 the scale term "
        "alone acts.",
        "A pooler that ends in tanh reaches a standard deviation of 1 only by saturation. There apply the penalty to the first token or "
        "to the tokens.",
        "The shape term divides by the standard deviations, so its gradient grows as a cloud collapses.",
        "The shape term compares sorted values with quantiles at k/(n + 1): a finite batch of a Gaussian does not reach 0.",
        "n rows of more dimensions span few of them, so projections of a small batch are normal in shape before the cloud is isotropic.",
    )

    def statistic(self, points: Tensor) -> Tensor:
        """Centre plus scale plus shape; O(n · directions · (d + log n)). Zero for fewer than two points."""
        directions = self.next_directions(points, self.params.directions)
        return sum(terms(points, directions), points.new_zeros(())) if len(points) > 1 else points.sum() * 0.0


def terms(points: Tensor, directions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Centre, scale and shape of a cloud (n, d) by unit directions (d, K), three scalars."""
    import torch

    n, mean = len(points), points.mean(dim=0)
    centred = points - mean
    std = torch.linalg.vector_norm(centred, dim=0) / n**0.5
    sorted_projections = (centred / std.detach().clamp_min(STD_EPS) @ directions).sort(dim=0).values
    places = torch.arange(1, n + 1, dtype=torch.float64) / (n + 1)
    quantiles = torch.special.ndtri(places).to(points)
    shape = (sorted_projections - quantiles[:, None]).square().mean()
    return mean.square().mean(), (1 - std).square().mean(), shape

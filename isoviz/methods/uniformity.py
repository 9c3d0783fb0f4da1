"""Uniformity: spreads directions evenly over the sphere by a Gaussian potential (Wang & Isola 2020)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from isoviz.bibliography import entries
from isoviz.methods.protocol import CloudParams, CloudPenalty, Paper, parameter

if TYPE_CHECKING:
    from torch import Tensor


class UniformityParams(CloudParams):
    lam: float = parameter(
        0.01,
        label="Strength",
        symbol="λ",
        help="How strongly directions are spread over the sphere. 0 adds no term.",
        source="ours, mild beside a task loss; Wang & Isola: about 1, beside their alignment loss",
        sweep=(0.01, 0.1, 1.0),
        suggested=True,
        ge=0,
        le=100,
    )
    sharpness: float = parameter(
        2.0,
        label="Sharpness",
        symbol="t",
        help="Of the potential exp(−t‖x − y‖²). Larger values push near pairs only.",
        source="Wang & Isola 2020, section 4.1",
        gt=0,
        le=100,
    )


class Uniformity(CloudPenalty):
    """Adds λ times the log of the mean Gaussian potential of all pairs of directions to the loss."""

    slug = "uniformity"
    title = "Uniformity"
    summary = "Pushes the batch's directions apart, nearest pairs most, until they cover the sphere evenly."
    equation = r"L = L_{\mathrm{task}} + \lambda \log \frac{1}{n(n-1)} \sum_{i \ne j} e^{-t \lVert \hat x_i - \hat x_j \rVert^2}"
    paper = Paper("Wang & Isola 2020", entries()["wang2020understanding"])
    Params = UniformityParams
    params: UniformityParams
    effects = {"penalty": "down"}
    acts_on = "uniformity"
    traps = (
        "The term is negative: it is 0 where all directions are equal, and −2t where they are orthogonal.",
        "It sees directions only, and rows of one label or equal texts are pushed apart like any others.",
        "At t = 2 its value on a cloud is the measure uniformity.",
    )

    def statistic(self, points: Tensor) -> Tensor:
        """log of the mean of exp(−t‖x − y‖²) over the pairs of directions; O(n²d). Zero for fewer than two points."""
        import torch

        n = len(points)
        if n < 2:
            return points.sum() * 0.0
        lengths = torch.linalg.vector_norm(points, dim=1, keepdim=True)
        # where() after the division keeps a zero point's gradient finite
        unit = points * torch.where(lengths > 1e-12, 1 / lengths.clamp_min(1e-12), 0.0)
        exponents = 2 * self.params.sharpness * (unit @ unit.T - 1)
        others = ~torch.eye(n, dtype=torch.bool, device=points.device)
        return exponents[others].logsumexp(dim=0) - math.log(n * (n - 1))

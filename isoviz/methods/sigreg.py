"""SIGReg: pulls every random projection of the batch to a standard normal distribution (Balestriero & LeCun 2025)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from isoviz.bibliography import entries
from isoviz.methods.protocol import CloudParams, Paper, SketchedPenalty, parameter

if TYPE_CHECKING:
    from torch import Tensor


class SIGRegParams(CloudParams):
    lam: float = parameter(
        0.002,
        label="Strength",
        symbol="λ",
        help="How strongly the projections are pulled to a standard normal distribution. 0 adds no term.",
        source=(
            "ours, mild beside a task loss; authors' minimal example: 0.02, the paper: 0.05, both beside (1 − λ) times the prediction loss"
        ),
        sweep=(0.002, 0.02, 0.05),
        suggested=True,
        ge=0,
        le=100,
    )
    scale: bool = parameter(
        False,
        label="Scale to length √d",
        help=(
            "Give each vector the length √d before the test, so that only directions count. Choose it where cosines are used: "
            "vectors of length 1 are far too short for the test."
        ),
        source="ours; off: LeJEPA",
    )
    directions: int = parameter(
        256,
        label="Directions",
        symbol="M",
        help="Random projections per batch, drawn anew for each batch. Time grows in proportion.",
        source="LeJEPA, algorithm 1 (256; its text and the authors' package use 1,024)",
        ge=1,
        le=16384,
    )
    knots: int = parameter(
        17,
        label="Knots",
        help="Points of the integral over [0, t]; its other half is the same.",
        source="authors' package (17 on [0, 3]); LeJEPA, algorithm 1: 17 on [−5, 5], which is 9 on [0, 5]",
        ge=3,
        le=257,
    )
    t_max: float = parameter(
        3.0,
        label="Largest frequency",
        symbol="t",
        help="Where the integral ends. The weight there is exp(−t²/2).",
        source="authors' package (3); LeJEPA, algorithm 1: 5",
        gt=0,
        le=10,
    )


class SIGReg(SketchedPenalty):
    """Adds λ times the mean Epps–Pulley statistic of random projections to the loss."""

    slug = "sigreg"
    title = "SIGReg"
    summary = "Pulls the batch's vectors to an isotropic Gaussian with mean 0 and variance 1 in every direction."
    equation = (
        r"L = L_{\mathrm{task}} + \frac{\lambda}{M} \sum_{a} n \int \Bigl|\frac{1}{n}\sum_{j} e^{\mathrm{i} t\, a^\top x_j}"
        r" - e^{-t^2/2}\Bigr|^2 e^{-t^2/2}\, dt,\quad \lVert a \rVert = 1"
    )
    paper = Paper("Balestriero & LeCun 2025", entries()["balestriero2025lejepa"])
    Params = SIGRegParams
    for_embeddings = {"scale": True}
    params: SIGRegParams
    effects = {"penalty": "down"}
    acts_on = "isoscore"
    traps = (
        "The target fixes the scale: a vector of d dimensions must have a length of about √d. On vectors of length 1 the term "
        "is a constant that hardly depends on their directions; turn on the scale to length √d.",
        "A pooler that ends in tanh or ReLU cannot produce a Gaussian: tanh reaches variance 1 only if it saturates. There "
        "apply the penalty to the first token or to the tokens, or turn on the scale.",
        "Published λ do not carry over. LeJEPA minimises λ · SIGReg + (1 − λ) · prediction and averages SIGReg over the views "
        "of an image; other programs add λ · SIGReg, test all views as one sample, or drop the factor n. Here λ is added to "
        "the task loss and the batch is one sample.",
        "The term contains the factor n, so λ acts more strongly in larger batches, and on tokens far more than on rows.",
        "LeJEPA's text weights the integral with exp(−t²/σ²), σ = 1; its algorithm and the authors' package use exp(−t²/2). "
        "So do we.",
        "The pull fades for projections beyond a few units, so vectors much longer than √d hardly feel it.",
        "A grid of frequencies with step s cannot tell projections apart that differ by 2π/s: 33 with the default, 10 with "
        "the grid of LeJEPA's algorithm.",
        "A finite batch of a Gaussian does not reach 0: the expected value is about 1 at any n.",
    )

    def statistic(self, points: Tensor) -> Tensor:
        """The mean over the directions of the Epps–Pulley statistic; O(n · d · directions)."""
        import torch

        directions = self.next_directions(points, self.params.directions)
        if self.params.scale:
            points = torch.nn.functional.normalize(points, dim=1) * math.sqrt(points.shape[1])
        return epps_pulley(points @ directions, self.params.knots, self.params.t_max)


def epps_pulley(projections: Tensor, knots: int, t_max: float) -> Tensor:
    """n ∫ |φ̂(t) − exp(−t²/2)|² exp(−t²/2) dt of each column, and the mean over the columns: a scalar.

    φ̂ is the empirical characteristic function. The trapezoidal rule on `knots` points of [0, t_max] counts twice, because the
    integrand is even. The gradient is written out: it needs memory for a few arrays like the input, instead of one per knot.
    Second derivatives are not supported.

    Args:
        projections: (n, directions), float32 or float64.
    """
    import torch

    step = t_max / (knots - 1)
    constant = projections.detach()
    with torch.no_grad():
        value = constant.new_zeros(constant.shape[1])
        gaps: list[tuple[Tensor, Tensor]] = []
        weights: list[float] = []
        for k, cosine, sine in _waves(constant * step, knots):
            normal = math.exp(-((k * step) ** 2) / 2)
            weights.append((2 if k < knots - 1 else 1) * step * normal)
            gaps.append((cosine.mean(dim=0) - normal, sine.mean(dim=0)))
            value += weights[-1] * (gaps[-1][0].square() + gaps[-1][1].square())
        gradient = torch.zeros_like(constant)
        for (k, cosine, sine), (real, imaginary), weight in zip(
            _waves(constant * step, knots), gaps, weights, strict=True
        ):
            factor = 2 * weight * k * step / constant.shape[1]  # the n of the statistic and of the mean cancel
            gradient.addcmul_(cosine, imaginary, value=factor).addcmul_(sine, real, value=-factor)
    # The second term is 0 and carries the gradient.
    return len(constant) * value.mean() + ((projections - constant) * gradient).sum()


def _waves(angles: Tensor, knots: int) -> Iterator[tuple[int, Tensor, Tensor]]:
    """k, cos(k · angle) and sin(k · angle) for k = 1, …, knots − 1, by angle addition. At k = 0 the integrand is 0."""
    first_cosine, first_sine = angles.cos(), angles.sin()
    cosine, sine = first_cosine, first_sine
    for k in range(1, knots):
        yield k, cosine, sine
        if k < knots - 1:
            cosine, sine = cosine * first_cosine - sine * first_sine, sine * first_cosine + cosine * first_sine

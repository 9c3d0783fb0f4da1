"""IsoBN: isotropic batch normalisation of the vector that feeds the classifier (Zhou et al. 2021)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from isoviz.bibliography import entries
from isoviz.methods.protocol import Method, Paper, Params, Representations, parameter

if TYPE_CHECKING:
    from torch import Tensor

    from isoviz.models.hooks import HookedModel

SCALE = (
    r"\bar\theta = \theta \sqrt{\frac{\sum_i \sigma_i^2}{\sum_i \sigma_i^2 \theta_i^2}},\quad "
    r"\theta_i = (\sigma_i \gamma_i + \epsilon)^{-\beta},\quad \gamma_i = \sum_j \rho_{ij}^2"
)
"""The scaling's equations in LaTeX: 7 with its root, 6 and 5."""


class IsoBNParams(Params):
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
    eps: float = parameter(
        0.1,
        label="Floor",
        symbol="ε",
        help="Added to σγ so that dimensions with almost no variance are not amplified.",
        source="IsoBN, section 4.1 (0.1 with γ as a sum; the authors' code uses 1e-3 with γ as a mean)",
        gt=0,
        le=1000,
    )
    momentum: float = parameter(
        0.05,
        label="Weight of the new batch",
        symbol="1 − α",
        help="Weight of the newest batch in the moving statistics. The paper's α = 0.95 is the weight of the old statistics.",
        source="IsoBN, algorithm 1, as in the authors' code",
        gt=0,
        le=1,
    )
    form: Literal["paper", "code"] = parameter(
        "paper",
        label="Form",
        help=(
            "paper: γ sums ρ²; one moving covariance with bias correction. code, as in the authors' program: γ averages ρ²; σ "
            "and Σ start at zero and have separate moving averages; ε is also added under the root. Set ε to 0.001 for it."
        ),
        source="paper: IsoBN, equations 4 to 7; code: the authors' program",
    )


def isobn_scale(covariance: Any, std: Any, beta: float, eps: float, form: str = "paper") -> Any:
    """The diagonal scaling θ̄ of IsoBN (Zhou et al. 2021, equations 4-7), for numpy arrays and torch tensors.

    Args:
        covariance: (d, d) Σ, divisor n, float32 or better.
        std: (d,) σ; for `form="paper"` the root of Σ's diagonal.
        beta, eps: β and ε.
        form: "paper" sums ρ² over j and preserves Σσ² through the square root that is missing from the printed equation 7.
            "code" averages ρ², takes the variances of equation 7 from Σ's diagonal, whose moving average is separate from σ's,
            and adds ε under the root.

    Returns:
        (d,) factors. Dimensions without variance (σ below 1e-12 of the largest) count as uncorrelated with all others, so that
        they cannot turn the output into NaN. If no dimension has variance, all factors are 1.
    """
    largest = std.max()
    if not largest > 0:
        return std * 0 + 1
    dead = std <= 1e-12 * largest
    alive, safe = ~dead, std + dead
    rho = (covariance / safe[:, None] / safe).clip(-1, 1) * alive[:, None] * alive
    gamma = (rho**2).sum(1) + dead  # equation 5; a dimension without variance correlates only with itself
    if form == "code":
        theta = (std * gamma / len(std) + eps) ** -beta
        variance = covariance.diagonal()
        return theta * (variance.sum() / ((variance * theta**2).sum() + eps)) ** 0.5
    theta = (std * gamma + eps) ** -beta  # equation 6
    # both constants cancel below; they keep squares from underflowing
    theta, share = theta / theta.max(), std / largest
    return theta * ((share**2).sum() / ((share * theta) ** 2).sum()) ** 0.5  # equation 7 with its root


class IsoBN(Method):
    """Scales each dimension of the classifier's input by its own variance and its correlation with the others."""

    slug = "isobn"
    title = "IsoBN"
    summary = "Shrinks dimensions with high variance and strong correlations before the classifier reads them."
    equation = rf"\hat h = \bar\theta \odot h,\quad {SCALE}"
    paper = Paper("Zhou et al. 2021", entries()["zhou2021isobn"])
    Params = IsoBNParams
    params: IsoBNParams
    effects = {"isoscore": "up"}
    traps = (
        "The scaling is diagonal: it cannot remove correlation, only shrink correlated dimensions.",
        "Equation 7 of the paper lacks a square root; without it the total variance is not preserved. We take the root, as "
        "the authors' code does.",
        "The statistics come from training mode, with dropout. Where texts hardly differ, dropout causes most of the spread: "
        "on a degenerate encoder σ was 15 times its value in evaluation mode and uncorrelated with it, and EV_20 rose.",
        "On span and text tasks the points are all tokens of the batch, including similar neighbouring tokens; the paper uses "
        "one vector per text.",
    )

    def attach(self, model: HookedModel) -> None:
        """Create the moving statistics: (h, h) covariance, (h,) standard deviations, and the number of batches seen."""
        import torch

        state = torch.nn.Module()
        width = model.head_width
        state.register_buffer("covariance", torch.zeros(width, width))
        state.register_buffer("std", torch.zeros(width))
        state.register_buffer("batches", torch.zeros((), dtype=torch.long))
        self.state = state

    def transform(self, reps: Representations, training: bool) -> Tensor:
        """θ̄ ⊙ pooled. Only training updates the statistics, and no gradient flows through the scale (as in the authors'
        code)."""
        import torch

        if training:
            self._update(reps.pooled)
        if int(self.buffer("batches")) == 0:
            return reps.pooled  # without statistics the scale would be 0/0
        with torch.no_grad(), torch.autocast(reps.pooled.device.type, enabled=False):
            scale = self.scale()
        return reps.pooled * scale.to(reps.pooled.dtype)

    def scale(self) -> Tensor:
        """(h,) θ̄ from the moving statistics."""
        covariance, std = self.buffer("covariance"), self.buffer("std")
        if self.params.form == "paper":
            # Both start at zero, so they carry the factor 1 − (1 − m)^t; uncorrected, ρ would be 20 times too large at step 1.
            covariance = covariance / (1 - (1 - self.params.momentum) ** int(self.buffer("batches")))
            std = covariance.diagonal().clamp_min(0).sqrt()
        scale: Tensor = isobn_scale(covariance, std, self.params.beta, self.params.eps, self.params.form)
        return scale

    def _update(self, pooled: Tensor) -> None:
        import torch

        from isoviz.metrics.collectives import gathered

        with torch.no_grad(), torch.autocast(pooled.device.type, enabled=False):
            points = gathered(pooled.detach().float())
            if points.shape[0] < 2:
                return  # one row has no variance
            points = points - points.mean(dim=0)
            covariance = points.T @ points / points.shape[0]  # population statistics, divisor m
            weight = self.params.momentum
            self.buffer("covariance").lerp_(covariance, weight)
            self.buffer("std").lerp_(covariance.diagonal().clamp_min(0).sqrt(), weight)
            self.buffer("batches").add_(1)

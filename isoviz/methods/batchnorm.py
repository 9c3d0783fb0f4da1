"""Batch normalisation of the classifier's input, the method that IsoBN is compared with (Zhou et al. 2021)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from isoviz.bibliography import entries
from isoviz.methods.protocol import Method, Paper, Params, Representations, parameter

if TYPE_CHECKING:
    from torch import Tensor

    from isoviz.models.hooks import HookedModel

EPS = 1e-5
"""Added to the variance under the root, so no dimension is scaled up by more than 1/√EPS, about 316."""


class BatchNormParams(Params):
    momentum: float = parameter(
        0.05,
        label="Weight of the new batch",
        symbol="m",
        help="Weight of the newest batch in the moving statistics. Evaluation uses these statistics.",
        source="As in IsoBN (algorithm 1, α = 0.95 for the old statistics), so that only the map differs",
        gt=0,
        le=1,
    )
    statistics: Literal["batch", "moving"] = parameter(
        "batch",
        label="Statistics in training",
        help=(
            "batch: each batch's own statistics, with gradient, as usual. moving: the moving statistics as constants, as in "
            "IsoBN."
        ),
        source="batch: Ioffe & Szegedy 2015, algorithm 1; moving: IsoBN, algorithm 1",
    )
    bias_correction: bool = parameter(
        True,
        label="Bias correction",
        help="Divide the moving statistics by 1 − (1 − m)^t at step t. When off, they start from mean 0 and variance 1.",
        source="our correction for the first steps; off: the behaviour of framework layers",
    )


class BatchNorm(Method):
    """Gives each dimension of the classifier's input mean 0 and variance 1. It has no affine part."""

    slug = "batchnorm"
    title = "Batch normalisation"
    summary = "Gives every dimension mean 0 and variance 1 before the classifier, regardless of correlations."
    equation = r"\hat h_i = \frac{h_i - \mu_i}{\sqrt{\sigma_i^2 + 10^{-5}}}"
    paper = Paper("Ioffe & Szegedy 2015", entries()["ioffe2015batch"])
    Params = BatchNormParams
    params: BatchNormParams
    effects = {"mean_cosine": "down"}
    traps = (
        "Equal variances alone need not make a cloud more isotropic, and batch normalisation changes how fast the encoder "
        "moves. In our measurements the bundled encoder became more isotropic, a randomly initialised one less.",
        "A dimension with almost no variance ends up with the same weight as any other: rounding noise can grow by up to 316 "
        "times. IsoBN's ε limits this.",
        "It equalises variances but keeps correlations: EV_k hardly falls where dimensions are correlated.",
        "In training each row depends on the other rows of its batch. Reported isotropy uses the moving statistics.",
        "On span and text tasks the statistics cover all tokens of the batch. In training, each position therefore receives a "
        "little information about later positions through the mean and variance.",
        "The IsoBN paper applies batch normalisation to pre-trained embeddings only, without training (its table 2).",
    )

    def attach(self, model: HookedModel) -> None:
        """Create the moving statistics: (h,) means and population variances, and the number of batches seen."""
        import torch

        state = torch.nn.Module()
        state.register_buffer("mean", torch.zeros(model.head_width))
        state.register_buffer("variance", torch.zeros(model.head_width))
        state.register_buffer("batches", torch.zeros((), dtype=torch.long))
        self.state = state

    def transform(self, reps: Representations, training: bool) -> Tensor:
        """(pooled − μ)/√(σ² + 1e-5), (B, h); the input unchanged before the first training batch.

        A training batch of one row has no variance: it uses the moving statistics and does not update them. A constant
        dimension gives 0, up to rounding scaled by at most 316.
        """
        import torch

        from isoviz.metrics.collectives import gathered

        pooled = reps.pooled
        with torch.autocast(pooled.device.type, enabled=False):
            points = pooled.float()
            mean, variance = None, None
            if training:
                batch = gathered(points)  # from all training processes
                if batch.shape[0] > 1:
                    variance, mean = torch.var_mean(batch, dim=0, correction=0)
                    self._update(mean.detach(), variance.detach())
            if mean is None or variance is None or self.params.statistics == "moving":
                if int(self.buffer("batches")) == 0:
                    return pooled
                mean, variance = self.moving()
            return ((points - mean) * (variance + EPS).rsqrt()).to(pooled.dtype)

    def moving(self) -> tuple[Tensor, Tensor]:
        """The (h,) mean and (h,) variance for evaluation; requires at least one training batch."""
        mean, variance = self.buffer("mean"), self.buffer("variance")
        initial_weight = (1 - self.params.momentum) ** int(self.buffer("batches"))  # remaining weight of the initial 0
        if self.params.bias_correction:
            return mean / (1 - initial_weight), variance / (1 - initial_weight)
        return mean, variance + initial_weight

    def _update(self, mean: Tensor, variance: Tensor) -> None:
        # population statistics; framework layers store the variance with divisor m − 1 but normalise by the one with m
        self.buffer("mean").lerp_(mean, self.params.momentum)
        self.buffer("variance").lerp_(variance, self.params.momentum)
        self.buffer("batches").add_(1)

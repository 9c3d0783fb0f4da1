"""Batch normalisation of the vector that feeds the classifier: what IsoBN is compared with (paper 002)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from isoviz.methods.protocol import Method, Paper, Params, Representations, parameter

if TYPE_CHECKING:
    from torch import Tensor

    from isoviz.models.hooks import HookedModel

EPS = 1e-5
"""Added to the variance, inside the root: nothing is scaled up by more than 1/√EPS, about 316."""

BIBTEX = """\
@inproceedings{ioffe2015batch,
  title={Batch Normalization: Accelerating Deep Network Training by Reducing Internal Covariate Shift},
  author={Ioffe, Sergey and Szegedy, Christian},
  booktitle={Proceedings of the 32nd International Conference on Machine Learning},
  pages={448--456},
  year={2015}
}
"""


class BatchNormParams(Params):
    """Parameters of batch normalisation."""

    momentum: float = parameter(
        0.05,
        label="Weight of the new batch",
        symbol="m",
        help="Share of the newest batch in the moving statistics, which evaluation uses.",
        source="As IsoBN (algorithm 1, α = 0.95 for the old ones), so that the two differ in the map only",
        gt=0,
        le=1,
    )
    statistics: Literal["batch", "moving"] = parameter(
        "batch",
        label="Statistics in training",
        symbol="",
        help="batch: each batch's own, with gradient, as usual. moving: the moving ones, as constants, as IsoBN does.",
        source="batch: Ioffe & Szegedy 2015, algorithm 1; moving: IsoBN, algorithm 1",
    )
    bias_correction: bool = parameter(
        True,
        label="Correct the start",
        symbol="",
        help="Divide the moving statistics by 1 − (1 − m)^t. Without it they start from mean 0 and variance 1.",
        source="our correction of the cold start; off: what framework layers do",
    )


class BatchNorm(Method):
    """Gives each dimension of the classifier's input mean 0 and variance 1. No affine part."""

    slug = "batchnorm"
    title = "Batch normalisation"
    summary = "Gives every dimension mean 0 and variance 1 before the classifier, regardless of correlations."
    equation = r"\hat h_i = \frac{h_i - \mu_i}{\sqrt{\sigma_i^2 + 10^{-5}}}"
    paper = Paper(
        short="Ioffe & Szegedy 2015",
        title="Batch Normalization: Accelerating Deep Network Training by Reducing Internal Covariate Shift",
        year=2015,
        bibtex=BIBTEX,
    )
    Params = BatchNormParams
    params: BatchNormParams
    effects = {"mean_cosine": "down"}
    traps = (
        "Equal variances alone need not make a cloud more isotropic, and it changes how fast the encoder moves: measured, the "
        "sign depends on the encoder (more on the bundled one, less on a randomly initialised one).",
        "A dimension with almost no variance counts as much as any other afterwards: rounding noise can become signal, up to "
        "316 times its size. IsoBN's ε limits that.",
        "It equalises variances but keeps correlations: EV_k hardly falls where dimensions are correlated.",
        "In training each row depends on the other rows of its batch. The isotropy shown is measured with the moving statistics.",
        "On spans and texts the statistics are those of all tokens of the batch: in training a position sees a little of those "
        "that follow it, in their mean and variance.",
        "The IsoBN paper applies it to pre-trained embeddings only, without training (its table 2).",
    )

    def attach(self, model: HookedModel) -> None:
        """Make the moving statistics: (h,) means and population variances, number of batches seen."""
        import torch

        state = torch.nn.Module()
        state.register_buffer("mean", torch.zeros(model.head_width))
        state.register_buffer("variance", torch.zeros(model.head_width))
        state.register_buffer("batches", torch.zeros((), dtype=torch.long))
        self.state = state

    def transform(self, reps: Representations, training: bool) -> Tensor:
        """(pooled − μ)/√(σ² + 1e-5), (B, h); the input itself before the first training batch.

        A training batch of one row has no variance: it uses the moving statistics and does not move them. A constant
        dimension gives 0 (up to rounding, which is scaled by at most 316).
        """
        import torch

        from isoviz.metrics.processes import gathered

        pooled = reps.pooled
        with torch.autocast(pooled.device.type, enabled=False):
            points = pooled.float()
            mean, variance = None, None
            if training:
                batch = gathered(points)  # of all processes that train together
                if batch.shape[0] > 1:
                    variance, mean = torch.var_mean(batch, dim=0, correction=0)
                    self._update(mean.detach(), variance.detach())
            if mean is None or variance is None or self.params.statistics == "moving":
                if int(self.buffer("batches")) == 0:
                    return pooled
                mean, variance = self.moving()
            return ((points - mean) * (variance + EPS).rsqrt()).to(pooled.dtype)

    def moving(self) -> tuple[Tensor, Tensor]:
        """(h,) mean and (h,) variance that evaluation uses; at least one batch must have been seen."""
        mean, variance = self.buffer("mean"), self.buffer("variance")
        start_weight = (1 - self.params.momentum) ** int(self.buffer("batches"))  # weight of the start, which is 0
        if self.params.bias_correction:
            return mean / (1 - start_weight), variance / (1 - start_weight)
        return mean, variance + start_weight

    def _update(self, mean: Tensor, variance: Tensor) -> None:
        # population statistics: a framework's layer keeps those with divisor m − 1, and divides by those with m
        self.buffer("mean").lerp_(mean, self.params.momentum)
        self.buffer("variance").lerp_(variance, self.params.momentum)
        self.buffer("batches").add_(1)

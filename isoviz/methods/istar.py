"""I-STAR: IsoScore-based stable anisotropic regularisation (Rudman & Eickhoff 2024)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from isoviz.bibliography import entries
from isoviz.errors import InputError
from isoviz.methods.protocol import Method, Paper, Params, Representations, TrainingSample, parameter

if TYPE_CHECKING:
    from torch import Tensor

    from isoviz.models.hooks import HookedModel


class IStarParams(Params):
    lam: float = parameter(
        -1.0,
        label="Strength",
        symbol="λ",
        help="Positive values make the token vectors more isotropic, negative values less isotropic. 0 is plain fine-tuning.",
        source="I-STAR, section 4 and appendix G",
        sweep=(-5.0, -3.0, -1.0, 1.0, 3.0, 5.0),
        ge=-100,
        le=100,
    )
    zeta: float = parameter(
        0.2,
        label="Shrinkage",
        symbol="ζ",
        help="Weight of the training-set covariance; 0 uses only the batch. The penalty's gradient scales with 1 − ζ.",
        source="I-STAR, algorithm 1",
        sweep=(0.2, 0.4, 0.6, 0.8),
        ge=0,
        le=1,
    )
    layer: int = parameter(
        0,
        label="Layer",
        symbol="l",
        help="0 uses the token vectors of all layers together. 1 or more selects a single layer.",
        source="I-STAR, appendix E",
        ge=0,
        le=200,
        off_scale=(0,),
    )
    estimator: Literal["paper", "unbiased"] = parameter(
        "paper",
        label="Estimator",
        help=(
            "paper: IsoScore* with shrinkage. unbiased: no shrinkage pass and one token per sentence; needs batches of at "
            "least 64."
        ),
        source="I-STAR, algorithm 1; unbiased traces by Himeno & Yamada 2014",
    )
    include_padding: bool = parameter(
        False,
        label="Include padding",
        help="Count padding vectors as points, as the authors' code does. They add a spurious cluster.",
        source="authors' code",
    )
    shrinkage_tokens: int = parameter(
        250_000,
        label="Shrinkage points",
        symbol="m",
        help="Points for the training-set covariance, counted over all layers. It is computed before each epoch.",
        source="I-STAR, section 4.1",
        ge=100,
        le=10_000_000,
    )


class IStar(Method):
    """Adds λ(1 − IsoScore*) of the batch's token vectors to the loss."""

    slug = "istar"
    title = "I-STAR"
    summary = "Rewards or penalises the isotropy of all layers' token vectors during fine-tuning."
    equation = r"L = L_{\mathrm{task}} + \lambda\,\bigl(1 - \mathrm{IsoScore}^\star(\tilde X, \zeta, \Sigma_S)\bigr)"
    paper = Paper("Rudman & Eickhoff 2024", entries()["rudman2024istar"])
    Params = IStarParams
    params: IStarParams
    effects = {"isoscore_star": "with λ"}
    traps = (
        "The gradient scales with 1 − ζ, so the same λ has a different strength at each ζ.",
        "On text tasks the tokens are the decoder's, and the unbiased estimator uses the first position, the start token.",
        "Of decoders the unbiased estimator uses each text's last token, because the first has seen nothing else.",
        "One sentence in the paper's section 3 reverses ζ; in algorithm 1 and the authors' code ζ weights the shrinkage "
        "matrix.",
    )

    def attach(self, model: HookedModel) -> None:
        """Check the layer number and allocate Σ_S (d, d)."""
        import torch

        if self.params.layer > model.num_layers:
            problem = f"the model has {model.num_layers} layers (got {self.params.layer}; 0 means all)"
            raise InputError(f"layer: {problem}", field="params.layer")
        self.layers = model.num_layers if self.params.layer == 0 else 1  # that contribute one point per token
        state = torch.nn.Module()
        state.register_buffer("shrinkage", torch.zeros(model.width, model.width))
        self.state = state

    def refresh(self, sample: TrainingSample) -> None:
        """Σ_S from training rows in evaluation mode, before each epoch (authors' schedule)."""
        if self.params.estimator == "unbiased":
            return
        import torch

        from isoviz.metrics.streaming import CovarianceAccumulator

        shrinkage = self.buffer("shrinkage")
        total = CovarianceAccumulator(shrinkage.shape[0])
        for reps in sample.representations(math.ceil(self.params.shrinkage_tokens / self.layers)):
            total.update(self._points(reps))
        shrinkage.copy_(torch.as_tensor(total.reduce(sample.gather).covariance))

    def penalties(self, reps: Representations) -> dict[str, Tensor]:
        """{"istar": λ(1 − IsoScore*)}; a float32 scalar in any precision of the forward pass."""
        from isoviz.metrics import penalties
        from isoviz.metrics.collectives import gathered

        if self.params.lam == 0:
            return {}
        if self.params.estimator == "unbiased":
            hidden = reps.last_hidden if self.params.layer == 0 else reps.hidden_states[self.params.layer - 1]
            return {"istar": self.params.lam * penalties.istar_unbiased_penalty(gathered(reps.row_tokens(hidden)))}
        term = penalties.istar_penalty(gathered(self._points(reps)), self.buffer("shrinkage"), self.params.zeta)
        return {"istar": self.params.lam * term}

    def _points(self, reps: Representations) -> Tensor:
        layers = None if self.params.layer == 0 else [self.params.layer]
        return reps.tokens(layers, include_padding=self.params.include_padding)

"""SimCSE: a contrastive loss beside the task loss; two dropout masks of a text against the batch's other texts (Gao et al. 2021)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoviz.bibliography import entries
from isoviz.methods.protocol import Method, Paper, Params, Representations, parameter

if TYPE_CHECKING:
    from torch import Tensor

    from isoviz.models.hooks import HookedModel


class SimCSEParams(Params):
    lam: float = parameter(
        0.01,
        label="Strength",
        symbol="λ",
        help="Weight of the contrastive loss beside the task loss. 0 adds no term.",
        source="ours: SimCSE trains on its loss alone",
        sweep=(0.01, 0.1, 1.0),
        suggested=True,
        ge=0,
        le=100,
    )
    temperature: float = parameter(
        0.05,
        label="Temperature",
        symbol="τ",
        help="Divides the cosines. Lower values push the closest rows apart most.",
        source="the authors' scripts (0.05)",
        gt=0,
        le=10,
    )
    dropout: float = parameter(
        0.0,
        label="Dropout",
        symbol="p",
        help="Rate of all dropout layers in training, of the task loss too. 0 keeps the encoder's own rates.",
        source="SimCSE, section 3 (0.1, BERT's own)",
        ge=0,
        lt=1,
    )


class SimCSE(Method):
    """Adds λ times SimCSE's unsupervised loss of the pooled vectors to the loss."""

    slug = "simcse"
    title = "SimCSE"
    summary = (
        "Pulls two encodings of a text with different dropout together, and pushes those of different texts apart."
    )
    equation = (
        r"L = L_{\mathrm{task}} - \frac{\lambda}{n} \sum_{i} \log"
        r" \frac{e^{\cos(h_i,\, h_i')/\tau}}{\sum_{j} e^{\cos(h_i,\, h_j')/\tau}}"
    )
    paper = Paper("Gao et al. 2021", entries()["gao2021simcse"])
    Params = SimCSEParams
    params: SimCSEParams
    kinds = ("classification", "regression")
    effects = {"penalty": "down"}
    acts_on = "uniformity"
    traps = (
        "The encoder runs twice per batch, so a step takes almost twice as long and needs more memory.",
        "An encoder without dropout, such as the bundled one, encodes a text twice in the same way: the pairs are perfect, and "
        "only the push between texts is left. Set a dropout rate to have both.",
        "Rows of one label, and equal texts of a batch, are pushed apart like any others.",
        "The authors put a new tanh layer on the first token in training and drop it afterwards. Here the loss reads the "
        "vectors of the classifier, which for BERT come from such a layer; nothing is dropped.",
        "The authors' code passes gradients only to a process's own rows; here they reach all rows, as on one process.",
    )

    def attach(self, model: HookedModel) -> None:
        """Set the dropout rate, if one is given."""
        import torch

        for module in model.modules() if self.params.dropout else ():
            if isinstance(module, torch.nn.Dropout):
                module.p = self.params.dropout
            elif isinstance(getattr(module, "dropout", None), float):  # families that call the function
                setattr(module, "dropout", self.params.dropout)  # noqa: B010

    def reads_tokens(self) -> bool:
        return False

    def penalties(self, reps: Representations) -> dict[str, Tensor]:
        """The two parts of λ × the cross-entropy of each row's own second encoding among all rows', as scalars in float32.

        `simcse alignment` is λ/(2τ) times `isoviz.metrics.alignment` of the two encodings. `simcse uniformity` is what pushes all
        rows apart: the mean log of Σⱼ exp((cos(hᵢ, hⱼ′) − 1)/τ) (SimCSE, section 5; Wang & Isola 2020, theorem 1).
        """
        import torch
        from torch.nn.functional import normalize

        from isoviz.metrics.cloud import working_dtype
        from isoviz.metrics.collectives import gathered

        if self.params.lam == 0:
            return {}
        assert reps.again is not None, "no second encoding"
        second = reps.again().pooled
        with torch.autocast(reps.pooled.device.type, enabled=False):
            one, other = (
                normalize(gathered(points.to(working_dtype(points))), dim=1) for points in (reps.pooled, second)
            )
            exponents = (one @ other.T - 1) / self.params.temperature
            apart = one - other  # exact where 1 − cos would cancel
            return {
                "simcse alignment": self.params.lam * apart.square().sum(dim=1).mean() / (2 * self.params.temperature),
                "simcse uniformity": self.params.lam * exponents.logsumexp(dim=1).mean(),
            }

"""CosReg: cosine regularisation (Gao et al. 2019; used by Rudman & Eickhoff 2024 and Ding et al. 2022)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from isoviz.bibliography import entries
from isoviz.methods.protocol import Method, Paper, Params, Representations, parameter

if TYPE_CHECKING:
    from torch import Tensor


class CosRegParams(Params):
    lam: float = parameter(
        1.0,
        label="Strength",
        symbol="λ",
        help="Positive pushes vectors apart (lower mean cosine), negative pulls them together.",
        source="I-STAR, section 4 (λ = 1; −1 in figure 4)",
        sweep=(-1.0, 1.0),
        ge=-100,
        le=100,
    )
    on: Literal["tokens", "output"] = parameter(
        "tokens",
        label="Applied to",
        help="tokens: the batch's token vectors in the last layer. output: the rows of the output layer's weight.",
        source="tokens: I-STAR; output: isotropy calibration, section 3",
    )


class CosReg(Method):
    """Adds λ times the mean cosine between distinct vectors to the loss."""

    slug = "cosreg"
    title = "CosReg"
    summary = "Pushes the mean cosine between vectors down (or up), which moves the cloud's mean rather than changing its shape."
    equation = r"L = L_{\mathrm{task}} + \frac{\lambda}{M^2} \sum_{i \ne j} \hat x_i^\top \hat x_j"
    paper = Paper("Gao et al. 2019", entries()["gao2019representation"])
    Params = CosRegParams
    params: CosRegParams
    effects = {"mean_cosine": "against λ"}
    traps = (
        "CosReg moves the mean of the cloud. IsoScore ignores the mean, so it may not change.",
        "On the output matrix of a two-class task the term is half of a single cosine, so it has almost no effect.",
    )

    def regularises_output(self) -> bool:
        """True if `on` is "output"."""
        return self.params.on == "output"

    def penalties(self, reps: Representations) -> dict[str, Tensor]:
        """{"cosreg": λ/M² Σ_{i≠j} x̂_i·x̂_j}, in closed form."""
        from isoviz.metrics import penalties
        from isoviz.metrics.collectives import gathered

        if self.params.lam == 0:
            return {}
        output = self.params.on == "output"
        vectors = reps.output_weight if output else gathered(reps.tokens([len(reps.hidden_states)]))
        return {"cosreg": self.params.lam * penalties.cosine_penalty(vectors)}

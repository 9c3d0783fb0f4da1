"""Spectrum control with polynomial decay: the output weight's singular values follow c1 k^γ (paper 003)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import field_validator

from isoviz.methods.protocol import Method, Paper, Params, Representations, parameter

if TYPE_CHECKING:
    from torch import Tensor

    from isoviz.models.adapter import HeadedModel

BIBTEX = """\
@inproceedings{wang2020spectrum,
  title={Improving Neural Language Generation with Spectrum Control},
  author={Wang, Lingxiao and Huang, Jing and Huang, Kevin and Hu, Ziniu and Wang, Guangtao and Gu, Quanquan},
  booktitle={International Conference on Learning Representations},
  year={2020}
}
"""


class SpectrumPolParams(Params):
    """Parameters of spectrum control with polynomial decay."""

    lam: float = parameter(
        1.0,
        label="Strength",
        symbol="λ_p",
        help="How strongly the singular values are pulled to the target. 0 adds no term.",
        source="Isotropy calibration, section 3, R_pol (its value is not given)",
        ge=0,
        le=1000,
    )
    gamma: float = parameter(
        -0.5,
        label="Decay",
        symbol="γ",
        help="Exponent of k^γ, below 0. Near 0 the target is almost flat; −1 falls like 1/k.",
        source="Isotropy calibration, section 3, R_pol (its value is not given; our choice is a slow decay)",
        ge=-5,
        lt=0,
    )
    c1: float = parameter(
        0.0,
        label="Scale",
        symbol="c₁",
        help="First target value. 0: chosen so that the targets carry the weight's own squared norm at the start.",
        source="Isotropy calibration, section 3, R_pol (its value is not given; 0 is our choice and cannot empty the weight)",
        ge=0,
        le=1e6,
    )

    @field_validator("gamma", mode="before")
    @classmethod
    def _falls(cls, value: object) -> object:
        """Refuse, with the reason, what the bound would refuse without one."""
        from isoviz.metrics.spectrum_control import why_not_decaying

        if isinstance(value, int | float) and value >= 0:
            problem = why_not_decaying("polynomial", 1.0, float(value))
            raise ValueError(problem[1] if problem else "must be below 0")
        return value


class SpectrumPol(Method):
    """Adds λ Σ_k (σ_k − c1 k^γ)² to the loss, σ_k the singular values of the output weight."""

    slug = "spectrum_pol"
    title = "Spectrum control (polynomial)"
    summary = "Pulls the singular values of the output weight towards a slow polynomial decay."
    equation = r"L = L_{\mathrm{task}} + \lambda_p \sum_{k} \left(\sigma_k - c_1 k^{\gamma}\right)^2,\quad \gamma < 0"
    paper = Paper(
        short="Wang et al. 2020",
        title="Improving Neural Language Generation with Spectrum Control",
        year=2020,
        bibtex=BIBTEX,
    )
    Params = SpectrumPolParams
    params: SpectrumPolParams
    pulls = "the singular values of the output matrix"
    effects = {"penalty": "down"}
    of_rows_together = False  # its term is of the output weights
    traps = (
        "For two labels there are two singular values: hardly a spectrum. Pulling both to a small target empties the "
        "classifier, which then predicts one class, as in the paper's GLUE table. The default scale keeps the norm.",
        "It shapes the output weight, not the representations: their IsoScore moves only through what the encoder learns. "
        "I1 and I2 depend on the weight's scale, so read them beside its norm.",
        "Where the output weight is also the input embedding (tied), the penalty changes what the encoder reads.",
        "The original method trains the factors of W = UΣVᵀ; here, as the isotropy calibration paper describes, W itself is "
        "trained under the penalty. Neither paper's strength, scale or decay is known.",
    )

    def attach(self, model: HeadedModel) -> None:
        """Fix the target (min(labels, h),): with c1 = 0 its Σ t_k² is ‖W‖²_F of the weight as it is now."""
        import torch

        from isoviz.metrics.spectrum_control import energy_matched_c1, spectrum_target

        weight = model.output.weight.detach()
        count, gamma = min(weight.shape), self.params.gamma
        energy = float(weight.double().square().sum())
        c1 = self.params.c1 or energy_matched_c1("polynomial", count, 0.0, gamma, energy)
        state = torch.nn.Module()
        target = spectrum_target("polynomial", count, c1, 0.0, gamma)
        state.register_buffer("target", torch.tensor(target, dtype=torch.float32))
        self.state = state

    def penalties(self, reps: Representations) -> dict[str, Tensor]:
        """{"spectrum_pol": λ Σ_k (σ_k − t_k)²}, a scalar in float32 with its closed-form gradient."""
        from isoviz.metrics.spectrum_control import spectrum_penalty

        if self.params.lam == 0:
            return {}
        return {"spectrum_pol": self.params.lam * spectrum_penalty(reps.output_weight, self.buffer("target"))}

"""Spectrum control with exponential decay: the output weight's singular values follow c1 exp(−c2 k^γ) (paper 003)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationInfo, field_validator

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


class SpectrumExpParams(Params):
    """Parameters of spectrum control with exponential decay."""

    lam: float = parameter(
        1.0,
        label="Strength",
        symbol="λ_e",
        help="How strongly the singular values are pulled to the target. 0 adds no term.",
        source="Isotropy calibration, section 3, R_exp (its value is not given)",
        ge=0,
        le=1000,
    )
    gamma: float = parameter(
        0.5,
        label="Decay",
        symbol="γ",
        help="Exponent of k inside exp(−c₂ k^γ), above 0. Larger falls faster at high k.",
        source="Isotropy calibration, section 3, R_exp (its value is not given; our choice is a slow decay)",
        gt=0,
        le=5,
    )
    c2: float = parameter(
        0.1,
        label="Rate",
        symbol="c₂",
        help="Rate of the decay, above 0. Near 0 the target is almost flat.",
        source="Isotropy calibration, section 3, R_exp (its value is not given; our choice is a slow decay)",
        gt=0,
        le=100,
    )
    c1: float = parameter(
        0.0,
        label="Scale",
        symbol="c₁",
        help="Scale of the targets. 0: chosen so that they carry the weight's own squared norm at the start.",
        source="Isotropy calibration, section 3, R_exp (its value is not given; 0 is our choice and cannot empty the weight)",
        ge=0,
        le=1e6,
    )

    @field_validator("gamma", "c2", mode="before")
    @classmethod
    def _falls(cls, value: object, info: ValidationInfo) -> object:
        """Refuse, with the reason, what the bound would refuse without one."""
        from isoviz.metrics.spectrum_control import why_not_decaying

        if isinstance(value, int | float) and value <= 0:
            c2, gamma = (float(value), 1.0) if info.field_name == "c2" else (1.0, float(value))
            problem = why_not_decaying("exponential", c2, gamma)
            raise ValueError(problem[1] if problem else "must be above 0")
        return value


class SpectrumExp(Method):
    """Adds λ Σ_k (σ_k − c1 exp(−c2 k^γ))² to the loss, σ_k the singular values of the output weight."""

    slug = "spectrum_exp"
    title = "Spectrum control (exponential)"
    summary = "Pulls the singular values of the output weight towards a slow exponential decay."
    equation = (
        r"L = L_{\mathrm{task}} + \lambda_e \sum_{k} \left(\sigma_k - c_1 e^{-c_2 k^{\gamma}}\right)^2,"
        r"\quad c_2 > 0,\ \gamma > 0"
    )
    paper = Paper(
        short="Wang et al. 2020",
        title="Improving Neural Language Generation with Spectrum Control",
        year=2020,
        bibtex=BIBTEX,
    )
    Params = SpectrumExpParams
    params: SpectrumExpParams
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
        count, c2, gamma = min(weight.shape), self.params.c2, self.params.gamma
        energy = float(weight.double().square().sum())
        c1 = self.params.c1 or energy_matched_c1("exponential", count, c2, gamma, energy)
        state = torch.nn.Module()
        target = spectrum_target("exponential", count, c1, c2, gamma)
        state.register_buffer("target", torch.tensor(target, dtype=torch.float32))
        self.state = state

    def penalties(self, reps: Representations) -> dict[str, Tensor]:
        """{"spectrum_exp": λ Σ_k (σ_k − t_k)²}, a scalar in float32 with its closed-form gradient."""
        from isoviz.metrics.spectrum_control import spectrum_penalty

        if self.params.lam == 0:
            return {}
        return {"spectrum_exp": self.params.lam * spectrum_penalty(reps.output_weight, self.buffer("target"))}

"""Spectrum control: pulls the output weight's singular values to a polynomial or exponential decay (Ding et al. 2022)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from isoviz.bibliography import entries
from isoviz.methods.protocol import Method, Paper, Params, Representations, parameter
from isoviz.tasks.protocol import HEAD_KINDS

if TYPE_CHECKING:
    from torch import Tensor

    from isoviz.models.hooks import HookedModel

Decay = Literal["polynomial", "exponential"]
FLOOR = 1e-7
"""Singular values below this share of the largest count as 0: a float64 Gram matrix resolves about 1.5e-8 of it."""


def _strength(symbol: str, term: str) -> Any:
    return parameter(
        1.0,
        label="Strength",
        symbol=symbol,
        help="How strongly the penalty pulls the singular values to the target. 0 adds no term.",
        source=f"Isotropy calibration, section 3, {term} (its value is not given)",
        ge=0,
        le=1000,
    )


def _decay(default: float, label: str, symbol: str, help: str, term: str, **bounds: Any) -> Any:
    source = f"Isotropy calibration, section 3, {term} (its value is not given; we chose a slow decay)"
    return parameter(default, label=label, symbol=symbol, help=help, source=source, **bounds)


def _scale(help: str, term: str) -> Any:
    return parameter(
        0.0,
        label="Scale",
        symbol="c₁",
        help=f"{help} 0 chooses it so that the targets have the weight's squared norm at the start.",
        source=(
            f"Isotropy calibration, section 3, {term} (its value is not given; we chose 0, which cannot shrink the weight to "
            "nothing)"
        ),
        ge=0,
        le=1e6,
    )


class SpectrumPolParams(Params):
    lam: float = _strength("λ_p", "R_pol")
    gamma: float = _decay(
        -0.5,
        "Decay",
        "γ",
        "Exponent of k^γ, below 0. Near 0 the target is almost flat; −1 falls like 1/k.",
        "R_pol",
        ge=-5,
        lt=0,
    )
    c1: float = _scale("First target value.", "R_pol")


class SpectrumExpParams(Params):
    lam: float = _strength("λ_e", "R_exp")
    gamma: float = _decay(
        0.5,
        "Decay",
        "γ",
        "Exponent of k inside exp(−c₂ k^γ), above 0. Larger falls faster at high k.",
        "R_exp",
        gt=0,
        le=5,
    )
    c2: float = _decay(
        0.1, "Rate", "c₂", "Rate of the decay, above 0. Near 0 the target is almost flat.", "R_exp", gt=0, le=100
    )
    c1: float = _scale("Scale of the targets.", "R_exp")


class _SpectrumControl(Method):
    """Adds λ Σ_k (σ_k − t_k)² to the loss, σ_k the singular values of the output weight, t_k a falling curve."""

    paper = Paper("Wang et al. 2020", entries()["wang2020spectrum"])
    params: SpectrumPolParams | SpectrumExpParams
    curve: ClassVar[Decay]
    pulls = "the singular values of the output matrix"
    kinds = tuple(kind for kind in HEAD_KINDS if kind != "embedding")  # which has no output matrix
    effects = {"penalty": "down"}
    acts_on = "i1"  # measured on the output weights
    of_rows_together = False  # its term depends on the output weights only
    traps = (
        "With two labels there are only two singular values, hardly a spectrum. Pulling both to a small target shrinks the "
        "classifier until it predicts a single class, as in the paper's GLUE table. The default scale preserves the norm.",
        "Spectrum control shapes the output weight, not the representations: their IsoScore changes only through what the "
        "encoder learns. I1 and I2 depend on the weight's scale, so read them together with its norm.",
        "If the output weight is tied to the input embedding, the penalty also changes the encoder's input.",
        "The original method trains the factors of W = UΣVᵀ; here W itself is trained under the penalty, as the isotropy "
        "calibration paper describes. Neither paper gives its strength, scale or decay.",
    )

    def attach(self, model: HookedModel) -> None:
        """Set the target, (min(labels, h),). With c1 = 0, Σ t_k² equals ‖W‖²_F of the initial weight, so that the penalty cannot
        shrink W to nothing."""
        import torch

        weight = model.output.weight.detach()
        target = spectrum_target(self.curve, min(weight.shape), getattr(self.params, "c2", 0.0), self.params.gamma)
        target *= self.params.c1 or float(weight.double().norm()) / float(np.linalg.norm(target))
        state = torch.nn.Module()
        state.register_buffer("target", torch.tensor(target, dtype=torch.float32))
        self.state = state

    def regularises_output(self) -> bool:
        """Always."""
        return True

    def penalties(self, reps: Representations) -> dict[str, Tensor]:
        """{slug: λ Σ_k (σ_k − t_k)²}, a scalar in float32 with its closed-form gradient."""
        if self.params.lam == 0:
            return {}
        return {self.slug: self.params.lam * spectrum_penalty(reps.output_weight, self.buffer("target"))}


class SpectrumPol(_SpectrumControl):
    """Adds λ Σ_k (σ_k − c1 k^γ)² to the loss, σ_k the singular values of the output weight."""

    slug = "spectrum_pol"
    title = "Spectrum control (polynomial)"
    summary = "Pulls the singular values of the output weight towards a slow polynomial decay."
    equation = r"L = L_{\mathrm{task}} + \lambda_p \sum_{k} \left(\sigma_k - c_1 k^{\gamma}\right)^2,\quad \gamma < 0"
    Params = SpectrumPolParams
    curve = "polynomial"


class SpectrumExp(_SpectrumControl):
    """Adds λ Σ_k (σ_k − c1 exp(−c2 k^γ))² to the loss, σ_k the singular values of the output weight."""

    slug = "spectrum_exp"
    title = "Spectrum control (exponential)"
    summary = "Pulls the singular values of the output weight towards a slow exponential decay."
    equation = (
        r"L = L_{\mathrm{task}} + \lambda_e \sum_{k} \left(\sigma_k - c_1 e^{-c_2 k^{\gamma}}\right)^2,"
        r"\quad c_2 > 0,\ \gamma > 0"
    )
    Params = SpectrumExpParams
    curve = "exponential"


def spectrum_target(kind: Decay, count: int, c2: float, gamma: float) -> NDArray[np.float64]:
    """t_k/c1 for k = 1 … count, shape (count,), decreasing (Ding et al. 2022, section 3): k^γ, or exp(−c2 k^γ)."""
    powers = np.arange(1, count + 1, dtype=np.float64) ** gamma
    return powers if kind == "polynomial" else np.exp(-c2 * powers)


def spectrum_penalty(weight: Tensor, target: Tensor) -> Tensor:
    """Σ_k (σ_k − t_k)², a scalar whose gradient is 2 U diag(σ − t) Vᵀ (Ding et al. 2022, R_pol and R_exp without λ).

    Both come from the eigenvalues of the smaller of WᵀW and WWᵀ in float64. Nothing is differentiated through them, so repeated
    singular values are harmless. If σ_k is 0, its direction is undefined and its gradient 0. Second derivatives are not
    supported (the gradient counts as constant).

    Args:
        weight: W, (N, h), any float type; under autocast it is computed outside it.
        target: (min(N, h),), falling.

    Returns:
        In float32, or in float64 for a float64 weight; nan for a weight that is not finite.
    """
    import torch

    from isoviz.metrics.cloud import sum_dtype, working_dtype

    dtype = working_dtype(weight)
    if not bool(torch.isfinite(weight.detach()).all()):
        return weight.to(dtype).sum() * torch.nan  # the loop reports it; an eigen-solver would raise
    with torch.no_grad(), torch.autocast(weight.device.type, enabled=False):
        constant = weight.detach()
        home = weight.device if sum_dtype(weight.device) == torch.float64 else "cpu"
        wide = constant.to(home).double()
        tall = wide.shape[0] >= wide.shape[1]
        values, vectors = torch.linalg.eigh(wide.T @ wide if tall else wide @ wide.T)
        sigma, vectors = values.clamp_min(0).sqrt().flip(0), vectors.flip(1)
        gap = sigma - target.to(sigma)
        nonzero = sigma > FLOOR * sigma[0]
        share = torch.where(nonzero, gap / torch.where(nonzero, sigma, 1.0), 0.0)
        inner = 2 * (vectors * share) @ vectors.T
        gradient = (wide @ inner if tall else inner @ wide).to(weight.device, dtype)
        value = gap.square().sum().to(weight.device, dtype)
    # The second term is 0 and carries the closed-form gradient.
    return value + ((weight - constant).to(dtype) * gradient).sum()

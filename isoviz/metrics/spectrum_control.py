"""Spectrum control: a decaying target for the singular values of an output weight, and the distance to it.

Ding et al. 2022, section 3, after Wang et al. 2020. The weight W is (N, h): one row per label or word.
The curves are plain numpy, so that a page can draw a target over a spectrum without loading torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import InputError
from isoviz.metrics.cloud import sum_dtype, working_dtype

if TYPE_CHECKING:
    from torch import Tensor

Decay = Literal["polynomial", "exponential"]

FLOOR = 1e-7
"""Singular values below this share of the largest count as 0: a float64 Gram matrix resolves about 1.5e-8 of it."""


def spectrum_target(kind: Decay, count: int, c1: float, c2: float, gamma: float) -> NDArray[np.float64]:
    """The target singular values t_k for k = 1 … count, shape (count,), decreasing (Ding et al. 2022, section 3).

    Args:
        kind: "polynomial" is c1 k^γ, "exponential" is c1 exp(−c2 k^γ).
        count: number of values, min(N, h) for a weight (N, h).
        c1: scale, above 0, in the unit of W.
        c2: rate of the exponential decay, above 0; not used by the polynomial one.
        gamma: γ, below 0 for the polynomial decay and above 0 for the exponential one.
    """
    powers = np.arange(1, count + 1, dtype=np.float64) ** gamma
    return c1 * (powers if kind == "polynomial" else np.exp(-c2 * powers))


def energy_matched_c1(kind: Decay, count: int, c2: float, gamma: float, energy: float) -> float:
    """The c1 for which Σ t_k² equals `energy`; with energy = ‖W‖²_F the penalty cannot shrink W to nothing.

    Raises:
        InputError: the energy is not positive.
    """
    if not (energy > 0 and np.isfinite(energy)):
        raise InputError(
            f"c1: cannot be chosen from a weight with squared norm {energy:g}; give c1 above 0", field="params.c1"
        )
    return float(np.sqrt(energy / np.square(spectrum_target(kind, count, 1.0, c2, gamma)).sum()))


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

"""Shared by ZCA and PCA whitening: the parameters, and the factor of each principal direction."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isoviz.posthoc.directions import Axes, principal_axes
from isoviz.posthoc.protocol import Params, parameter

TOLERANCE = 1e-7
IN_TRAINING = (
    "it needs the full covariance, which changes at every step; batch normalisation and IsoBN scale single dimensions"
)


class WhiteningParams(Params):
    """Parameters of both whitenings."""

    strength: float = parameter(
        1.0,
        label="Strength",
        symbol="s",
        help="Divides each direction by the s-th power of its standard deviation: 0 only centres, 1 whitens.",
        source="Our interpolation between centring and whitening",
        ge=0,
        le=1,
        slider=(0, 1, 0.05),
        start=0.5,
    )
    eps: float = parameter(
        0.0,
        label="Ridge",
        symbol="ε",
        help="Added to every eigenvalue. At 0, directions with almost no variance are dropped instead.",
        source="our addition: add ε, or drop directions without variance",
        ge=0,
        le=1e6,
    )


def scaled_axes(x: NDArray[np.float64], eps: float, params: WhiteningParams) -> tuple[Axes, NDArray[np.float64]]:
    """The principal axes of a cloud (n, d) and the factor of each, (r,).

    The factor is (λ + ε)^(−s/2). Without a ridge it is 0 for a direction whose variance is at most 1e-7 · √d · λ_max, and for
    directions beyond the r axes. At s = 0 nothing is dropped: this is plain centring, also for points outside the span of the
    fit set.
    """
    axes = principal_axes(x, eps, full=params.strength == 0 or params.eps > 0)
    return axes, whitening_factors(axes.std, x.shape[1], params)


def whitening_factors(std: NDArray[np.float64], d: int, params: WhiteningParams) -> NDArray[np.float64]:
    """The factor of each principal direction from its standard deviation, both (r,); see `scaled_axes`."""
    if params.strength == 0:
        return np.ones_like(std)
    if params.eps > 0:
        ridged: NDArray[np.float64] = np.hypot(std, np.sqrt(params.eps)) ** -params.strength
        return ridged
    nonzero = std > std.max() * np.sqrt(TOLERANCE * np.sqrt(d))
    return np.where(nonzero, np.where(nonzero, std, 1.0) ** -params.strength, 0.0)

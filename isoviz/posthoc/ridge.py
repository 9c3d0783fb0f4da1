"""ε of a transform, as a multiple of the cloud's mean variance or in the cloud's own unit, and in words where it swamps the cloud."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from isoviz.formatting import number
from isoviz.parameters import Params, parameter

LARGE = 10.0
"""A larger multiple of the mean variance is said in words."""
EVEN = 1.05
"""Factors within this ratio change no more than the unit."""


class RidgeParams(Params):
    """ε, given once: relative, or absolute."""

    ridge: float | None = parameter(
        None,
        label="Ridge",
        symbol="ε / mean variance",
        help="ε, added to every variance, as a multiple of the mean variance. Empty: the absolute ε counts.",
        source="our addition: the same effect on a cloud in any unit",
        ge=0,
        le=1e6,
    )
    eps: float = parameter(
        0.0,
        label="Ridge, absolute",
        symbol="ε",
        help="ε in the unit of a variance. At 0, directions with almost no variance are dropped instead.",
        source="our addition: add ε, or drop directions without variance",
        ge=0,
        le=1e6,
    )

    @model_validator(mode="after")
    def _given_once(self) -> Self:
        if self.ridge is not None and self.eps != type(self).model_fields["eps"].default:
            raise ValueError("give ridge (a multiple) or eps (absolute), not both")
        return self

    def floor(self, mean_variance: float) -> float:
        """ε for a cloud with this mean variance."""
        return self.eps if self.ridge is None else self.ridge * mean_variance


def words(floor: float, variances: NDArray[np.float64], d: int, strength: float = 1.0) -> str:
    """Says that ε swamps the variances, so that (λ + ε)^(−s/2) hardly differs between directions; empty if it does not.

    Args:
        floor: ε.
        variances: (r,) of the directions or dimensions, r at most d; the other d − r are 0.
    """
    mean = float(variances.sum()) / d
    if not floor > LARGE * mean > 0 or not strength:
        return ""
    low = float(variances.min()) if len(variances) == d else 0.0
    even = ((float(variances.max()) + floor) / (low + floor)) ** (strength / 2) < EVEN
    effect = "this is plain centring, up to the unit" if even else "directions hardly become more equal"
    return f"ε is {number(float(f'{floor / mean:.2g}'))} times the mean variance: {effect}"

"""Whether a cloud became more or less isotropic: the ratio of two IsoScores of the same rows, with its interval, in one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from isoviz.formatting import number
from isoviz.metrics.intervals import student_quantile

ABOUT: Final = 0.05
"""A ratio this close to 1 counts as about as isotropic, however certain it is."""


@dataclass(frozen=True)
class Isotropy:
    """IsoScore of a cloud, to be compared.

    Attributes:
        value: None if undefined.
        influence: (m,) effect of single rows on the logarithm of the score, of the same m rows in every cloud; None if that is
            undefined.
        n: rows of the cloud.
    """

    value: float | None
    influence: NDArray[np.float64] | None
    n: int


def influence_of(
    x: NDArray[np.float64], squares: NDArray[np.float64], covariance: NDArray[np.float64], d: int
) -> NDArray[np.float64] | None:
    """The influence of rows on log IsoScore, (m,): that on T and F, hence on PR = T²/F, divided by PR − 1.

    Args:
        x: (m, k) centred rows in coordinates that hold all variance.
        squares: (m,) their squared lengths.
        covariance: (k, k).
        d: dimensions of the cloud.
    """
    trace, frobenius = float(covariance.trace()), float(np.einsum("ij,ij->", covariance, covariance))
    excess = trace * trace / frobenius - 1
    if d < 2 or excess <= 0:
        return None
    along = np.einsum("ij,ij->i", x @ covariance, x)
    influence: NDArray[np.float64] = 2 * (excess + 1) / excess * (squares / trace - along / frobenius)
    return influence


def ratio(before: Isotropy, after: Isotropy) -> tuple[float, float, float] | None:
    """IsoScore after divided by that before, and its 95 % interval by the infinitesimal jackknife (Jaeckel 1972); None if undefined."""
    first, second = before.influence, after.influence
    if not before.value or not after.value or first is None or second is None or len(first) < 3:
        return None
    middle = np.log(after.value / before.value)
    reach = student_quantile(0.975, len(first) - 1) * float((second - first).std(ddof=1)) / np.sqrt(after.n)
    low, value, high = np.exp(np.clip([middle - reach, middle, middle + reach], -700, 700))
    return float(value), float(low), float(high)


def sentence(before: Isotropy, after: Isotropy) -> str:
    """More, less or about as isotropic, by the interval of the ratio."""
    if before.value is None or after.value is None:
        return "IsoScore is undefined here, so there is nothing to compare."
    text = f"IsoScore {number(before.value, 3)} → {number(after.value, 3)}"
    if (found := ratio(before, after)) is None:
        return f"These scores have no ratio to judge ({text})."
    value, low, high = found
    text += f", {number(value, 3)} times; 95 % interval {number(low, 3)} to {number(high, 3)}"
    if abs(value - 1) < ABOUT and max(high - 1, 1 - low) < 2 * ABOUT:
        return f"The cloud stays about as isotropic ({text})."
    if low <= 1 <= high:
        return f"These rows cannot tell whether isotropy changed ({text})."
    return f"The cloud becomes {'more' if value > 1 else 'less'} isotropic ({text})."

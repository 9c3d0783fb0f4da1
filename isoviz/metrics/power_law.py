"""α-ReQ: the exponent of the power law by which the variances of the principal directions fall (Agrawal et al. 2022)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isoviz.metrics.cloud import Estimate, answer, too_few, undefined, warn_if_small
from isoviz.metrics.moments import COLLAPSED
from isoviz.metrics.protocol import COVARIANCE_ONLY, AtIsotropy, Citation, EnoughPoints, Metric, Range, constant
from isoviz.metrics.sample import Sample

if TYPE_CHECKING:
    from isoviz.metrics.cloud import Points, Value

LAST_RANK = 100
"""The last eigenvalue of the fit, as in the authors' package."""
_NARROW = 2.0**-19
"""Directions narrower than this share of the widest one hold rounding errors only: of points in single precision (16 ε), and of a
covariance that was summed in double precision."""


def alpha_req(points: Points) -> Value:
    """α of λ_i ∝ i^−α, where λ_i is the i-th largest eigenvalue of the covariance of a cloud (n, d).

    Weighted least squares of log λ_i on log i with weights 1/i, over ranks 11 to 100: the defaults of the authors' package
    `reptrix`. (Scripts in their `fastssl` use ranks 4 to 100, 11 to 100 and 12 to 50.) With r < 110 eigenvalues above rounding
    errors, a tenth of them is left out at each end, because the last directions of layer-normalised vectors are nearly empty.
    Undefined (nan) with fewer than 2.

    Args:
        points: (n, d); a tensor result carries no gradient.
    """
    sample = Sample(points)
    estimate = _estimate(sample)
    if not estimate.problem:
        warn_if_small("alpha_req", sample.n, sample.d)
    return answer("alpha_req", points, estimate)


def _estimate(sample: Sample) -> Estimate:
    variances = sample.eigenvalues
    if variances is None:
        return undefined(too_few(sample.n) if sample.moments is None else COLLAPSED)
    count = int(np.count_nonzero(variances > _NARROW**2 * variances[0]))
    if count < 2:
        return undefined("the points vary in one direction only")
    return Estimate(decay(variances[:count]))


def decay(variances: NDArray[np.float64]) -> float:
    """α of positive eigenvalues (r,), r >= 2, in decreasing order."""
    left_out = min(len(variances), LAST_RANK) // 10
    last = min(len(variances) - left_out, LAST_RANK)
    ranks = np.arange(left_out + 1.0, last + 1)
    weights = 1 / ranks / (1 / ranks).sum()
    x, y = np.log(ranks), np.log(variances[left_out:last])
    x -= weights @ x
    return float(-(weights * x) @ y / ((weights * x) @ x))


METRICS = Metric(
    slug="alpha_req",
    place=77,
    title="Decay of the spectrum (α-ReQ)",
    label="α",
    latex=r"$\alpha$",
    symbol="α",
    sees="How steeply the variance falls from one principal direction to the next, as the exponent α of a power law.",
    blind_to=(
        "Cannot see the mean, the strongest and weakest directions, which the fit leaves out, or whether the variances follow a "
        "power law."
    ),
    help=(
        "Fitted to directions 11 to 100, or to all but the first and last tenth of fewer than 110. 0: all hold equally much. Vision "
        "encoders with α near 1 generalised best (Ghosh et al. 2022)."
    ),
    range=Range("0 and above", constant(0.0)),
    at_isotropy=AtIsotropy("0", constant(0.0), "sample"),
    unchanged_by=COVARIANCE_ONLY,
    enough=EnoughPoints(
        "100 d: up to 0.3 high, worst for an isotropic cloud; where the true α is 1, 20 d give it within 20 %",
        "falls",
        lambda d: 100 * d,
        0.3,
        reads="high",
    ),
    paper=Citation("Agrawal et al. 2022", "agrawal2022alphareq", 2022, "NeurIPS 35"),
    equation=r"\hat\alpha = -\frac{\sum_i w_i (\log i - \bar x) \log\lambda_i}{\sum_i w_i (\log i - \bar x)^2}, \quad"
    r" w_i \propto 1/i,\ \bar x = \sum_i w_i \log i,\ i = 11, \dots, 100",
    function=alpha_req,
    estimate=_estimate,
    minimum=3,
    minimum_d=2,
    cost="eigenvalues",
)

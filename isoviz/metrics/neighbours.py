"""The intrinsic dimension from the two nearest neighbours (Facco et al. 2017)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isoviz.errors import InputError
from isoviz.metrics.cloud import Estimate, answer
from isoviz.metrics.copies import left_out
from isoviz.metrics.moments import COLLAPSED
from isoviz.metrics.nearest import EQUAL
from isoviz.metrics.protocol import COVARIANCE_ONLY, AtIsotropy, Citation, EnoughPoints, Metric, Range, constant
from isoviz.metrics.sample import Sample

if TYPE_CHECKING:
    from isoviz.metrics.cloud import Points, Value


def twonn(points: Points, discard_fraction: float = 0.1) -> Value:
    """TwoNN intrinsic dimension of a cloud (n, d).

    The slope through the origin of −log(1 − F(μ)) on log μ, where μ is the ratio of a point's second to its first
    nearest-neighbour distance and F its empirical distribution.

    Copies of a point count once (`isoviz.metrics.copies`). It saturates: a 100-dimensional Gaussian of
    800 points gives 47. Invariant to shift, scale and rotation, not to scaling single dimensions. Time grows with n²: subsample
    above about 20,000 points.

    Args:
        discard_fraction: share of the largest ratios to leave out, in [0, 1).
    """
    if not 0 <= discard_fraction < 1:
        raise InputError(f"discard_fraction must lie in [0, 1), got {discard_fraction}")
    return answer("twonn", points, twonn_estimate(Sample(points), discard_fraction))


def twonn_estimate(sample: Sample, discard_fraction: float = 0.1) -> Estimate:
    """TwoNN of a sample's points; its note gives the number of copies left out."""
    distinct, problem, note = distinct_points(sample, 3)
    if problem:
        return Estimate(float("nan"), problem, note)
    usable, distances = distinct.n, distinct.neighbours(2).distances
    ratios = distances[:, 1] / distances[:, 0]
    log_ratio = np.log(np.sort(ratios)[: int(usable * (1 - discard_fraction))])
    share = (
        np.arange(1, 1 + len(log_ratio)) / usable
    )  # scikit-dimension before 0.4 began at 0, and gave 0.4 % less at n = 800
    kept_mask = share < 1  # if none is discarded, the last one has no finite −log(1 − F)
    log_ratio, survival = log_ratio[kept_mask], -np.log1p(-share[kept_mask])
    spread = float(log_ratio @ log_ratio)
    if not spread > len(log_ratio) * EQUAL**2:
        return Estimate(float("nan"), "no point's second neighbour is farther than its first", note)
    return Estimate(float(log_ratio @ survival) / spread, note=note)


def distinct_points(sample: Sample, fewest: int, k: int | None = None) -> tuple[Sample, str, str]:
    """The distinct points of a sample, why a measure of neighbours is undefined if it is, and a note on the copies left out.

    Args:
        fewest: distinct points that the measure needs.
        k: its number of neighbours, if it was chosen.
    """
    distinct, problem = sample.distinct, ""
    if sample.n > 1 and sample.collapsed:
        problem = COLLAPSED
    elif distinct.n < fewest:
        of_rows = f" in {sample.n:,} rows" if distinct.n < sample.n else ""
        where = f"with k = {k} it" if k is not None else "it"
        problem = f"{where} needs at least {fewest} distinct points, got {distinct.n}{of_rows}"
    return distinct, problem, left_out(sample.n, distinct.n)


# ------------------------------------------------------------------------------------------------- catalogue

METRICS = Metric(
    slug="twonn",
    place=80,
    title="Intrinsic dimension (TwoNN)",
    label="TwoNN",
    symbol="ID",
    unit="directions",
    sees="How many directions a point's nearest neighbours spread into, also on a curved surface.",
    blind_to=(
        "Cannot see how much wider the cloud is in one direction than in another, and cannot distinguish between high "
        "dimensions."
    ),
    range=Range("above 0; scatters around the true value", constant(0.0)),
    at_isotropy=AtIsotropy("d, for small d", lambda n, d: d, "population"),
    unchanged_by=COVARIANCE_ONLY,
    enough=EnoughPoints(
        "160 up to d = 10, within 20 %; it saturates in higher dimensions: 800 points of a 100-d Gaussian give about 47",
        "saturates",
        lambda d: 160,
        0.2,
    ),
    paper=Citation("Facco et al. 2017", "facco2017twonn", 2017, "arXiv:1803.06992"),
    equation=r"-\log(1 - F(\mu)) = \mathrm{ID} \cdot \log\mu, \quad \mu = r_2 / r_1",
    function=twonn,
    estimate=twonn_estimate,
    minimum=3,
    cost="pairs",
    from_sums=False,
    most=20_000,
    decimals=1,
)

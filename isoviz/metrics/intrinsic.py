"""The intrinsic dimension by maximum likelihood from the distances to the nearest neighbours (Levina & Bickel 2004)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isoviz.errors import InputError
from isoviz.metrics.cloud import Estimate, answer
from isoviz.metrics.nearest import EQUAL
from isoviz.metrics.neighbours import distinct_points
from isoviz.metrics.protocol import COVARIANCE_ONLY, AtIsotropy, Citation, EnoughPoints, Metric, Range, constant
from isoviz.metrics.sample import HUBNESS_POINTS, Sample

if TYPE_CHECKING:
    from isoviz.metrics.cloud import Points, Value


def local_dimension(points: Points, k: int = 10) -> Value:
    """Maximum-likelihood intrinsic dimension of a cloud (n, d), from the k nearest neighbours of each point.

    1/m̂ is the mean over all points x and all j < k of log(T_k(x)/T_j(x)), where T_j(x) is the distance to the j-th nearest
    neighbour. Levina & Bickel (2004, equation 8) estimate m at each point and average the estimates, which reads
    (k − 1)/(k − 2) times too high. The likelihood of all points together averages 1/m instead (MacKay & Ghahramani 2005), which
    has no such bias. For k = 2 it is TwoNN's model, with the likelihood in place of TwoNN's line fit.

    Copies of a point count once (`isoviz.metrics.copies`). Undefined (nan) with fewer than k + 1 distinct points.

    Args:
        points: (n, d); a tensor result carries no gradient.
        k: neighbours of each point, at least 2. More neighbours scatter less, and read lower in many dimensions.
    """
    if k < 2:
        raise InputError(f"k must be at least 2, got {k}")
    return answer("local_dimension", points, _estimate(Sample(points), k))


def _estimate(sample: Sample, k: int = 10) -> Estimate:
    distinct, problem, note = distinct_points(sample, k + 1, k)
    if problem:
        return Estimate(float("nan"), problem, note)
    distances = distinct.neighbours(k).distances[:, :k]
    inverse = float(np.mean(np.log(distances[:, -1:] / distances[:, :-1])))
    if not inverse > EQUAL:
        return Estimate(float("nan"), f"the {k} nearest neighbours of every point are equally far", note)
    return Estimate(1 / inverse, note=note)


METRICS = Metric(
    slug="local_dimension",
    place=82,
    title="Intrinsic dimension (maximum likelihood)",
    label="ML dimension",
    symbol="m̂",
    unit="directions",
    sees="How many directions a point's 10 nearest neighbours spread into, also on a curved surface.",
    blind_to=(
        "Cannot see how much wider the cloud is in one direction than in another beyond a point's neighbourhood, and cannot "
        "distinguish between high dimensions."
    ),
    help="Uses 10 neighbours where TwoNN uses 2: it scatters less, and reads lower where the dimension is high.",
    range=Range("above 0; scatters around the true value", constant(0.0)),
    at_isotropy=AtIsotropy("d, for small d", lambda n, d: d, "population"),
    unchanged_by=COVARIANCE_ONLY,
    enough=EnoughPoints(
        "320 up to d = 10: up to 25 % low; it saturates in higher dimensions: 800 points of a 100-d Gaussian give about 41",
        "saturates",
        lambda d: 320,
        0.25,
    ),
    paper=Citation("Levina & Bickel 2004", "levina2004maximum", 2004, "NeurIPS 17, 777–784"),
    equation=r"\hat m = \Big[ \frac{1}{n(k-1)} \sum_{i=1}^{n} \sum_{j=1}^{k-1} \log\frac{T_k(x_i)}{T_j(x_i)} \Big]^{-1},"
    r" \quad k = 10",
    function=local_dimension,
    estimate=_estimate,
    minimum=11,
    cost="pairs",
    from_sums=False,
    most=HUBNESS_POINTS,
    decimals=1,
)

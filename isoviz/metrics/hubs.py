"""Hubness: whether a few points are among the nearest neighbours of very many others."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from isoviz.errors import InputError
from isoviz.metrics.cloud import Estimate, answer
from isoviz.metrics.nearest import EQUAL
from isoviz.metrics.neighbours import distinct_points
from isoviz.metrics.protocol import COVARIANCE_ONLY, AtIsotropy, Citation, EnoughPoints, Metric, Range
from isoviz.metrics.sample import HUBNESS_POINTS, Sample

if TYPE_CHECKING:
    from isoviz.metrics.cloud import Points, Value


def hubness(points: Points, k: int = 10) -> Value:
    """Skewness of the k-occurrence N_k over a cloud (n, d), the number of points that have a given point among their k nearest.

    E(N_k − k)³/σ³ with population moments (Radovanović et al. 2010), Euclidean distances, O(n²d). Points that are equally near at
    the last place share it, so N_k need not be whole; copies of a point count once (`isoviz.metrics.copies`).

    Undefined (nan) for at most k + 1 distinct points, which are all neighbours of each other, and where all points or all N_k are equal.

    Args:
        points: (n, d); a tensor result carries no gradient.
        k: neighbours of each point, at least 1.
    """
    if k < 1:
        raise InputError(f"k must be at least 1, got {k}")
    return answer("hubness", points, _estimate(Sample(points), k))


def _estimate(sample: Sample, k: int = 10) -> Estimate:
    distinct, problem, note = distinct_points(sample, k + 2, k)
    if problem:
        return Estimate(float("nan"), problem, note)
    graph = distinct.graph(k)
    apart = np.bincount(graph.to, graph.chance, distinct.n) - k
    variance = float(np.mean(apart**2))
    if not variance > EQUAL**2:
        return Estimate(float("nan"), f"every point is among the {k} nearest of equally many", note)
    return Estimate(float(np.mean(apart**3)) / variance**1.5, note=note)


METRICS = Metric(
    slug="hubness",
    place=85,
    title="Hubness",
    symbol="S_N10",
    sees="Whether a few points are among the 10 nearest neighbours of very many others.",
    blind_to="Cannot see distances between points, only which points are nearer than others.",
    help="0: all points are neighbours about equally often. Hubs degrade retrieval and nearest-neighbour classifiers.",
    range=Range(
        "−(n − 2)/√(n − 1) … (n − 2)/√(n − 1)",
        lambda n, d: -(n - 2) / math.sqrt(n - 1),
        lambda n, d: (n - 2) / math.sqrt(n - 1),
    ),
    at_isotropy=AtIsotropy(
        "rises with d: for 2,000 Gaussian points −0.4 ± 0.1 at d = 3, 2.5 ± 0.3 at d = 20 and 6 ± 1.5 at d = 100 (mean ± standard "
        "deviation over 300 clouds)"
    ),
    unchanged_by=COVARIANCE_ONLY,
    enough=EnoughPoints("grows with n, especially in many dimensions: compare only clouds of equal n", "unknown"),
    paper=Citation("Radovanović et al. 2010", "radovanovic2010hubs", 2010, "J. Mach. Learn. Res. 11, 2487–2531"),
    equation=r"S_{N_k} = \frac{\mathbb{E}(N_k - \mu)^3}{\sigma^3}, \quad k = 10",
    function=hubness,
    estimate=_estimate,
    minimum=12,
    cost="pairs",
    from_sums=False,
    most=HUBNESS_POINTS,
)

"""Measures of a point's nearest neighbours: intrinsic dimension (TwoNN, maximum likelihood), hubness, reciprocity."""

from __future__ import annotations

import math

import numpy as np

from isoviz.errors import InputError
from isoviz.metrics.cloud import Estimate, Points, Value, answer
from isoviz.metrics.copies import left_out
from isoviz.metrics.moments import COLLAPSED
from isoviz.metrics.nearest import EQUAL, mutual
from isoviz.metrics.protocol import COVARIANCE_ONLY, AtIsotropy, Citation, EnoughPoints, Metric, Range, constant
from isoviz.metrics.sample import HUBNESS_POINTS, Sample


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


TWONN = Metric(
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
    return answer("local_dimension", points, _local_dimension(Sample(points), k))


def _local_dimension(sample: Sample, k: int = 10) -> Estimate:
    distinct, problem, note = distinct_points(sample, k + 1, k)
    if problem:
        return Estimate(float("nan"), problem, note)
    distances = distinct.neighbours(k).distances[:, :k]
    inverse = float(np.mean(np.log(distances[:, -1:] / distances[:, :-1])))
    if not inverse > EQUAL:
        return Estimate(float("nan"), f"the {k} nearest neighbours of every point are equally far", note)
    return Estimate(1 / inverse, note=note)


LOCAL_DIMENSION = Metric(
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
    estimate=_local_dimension,
    minimum=11,
    cost="pairs",
    from_sums=False,
    most=HUBNESS_POINTS,
    decimals=1,
)


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
    return answer("hubness", points, _hubness(Sample(points), k))


def _hubness(sample: Sample, k: int = 10) -> Estimate:
    distinct, problem, note = distinct_points(sample, k + 2, k)
    if problem:
        return Estimate(float("nan"), problem, note)
    graph = distinct.graph(k)
    apart = np.bincount(graph.to, graph.chance, distinct.n) - k
    variance = float(np.mean(apart**2))
    if not variance > EQUAL**2:
        return Estimate(float("nan"), f"every point is among the {k} nearest of equally many", note)
    return Estimate(float(np.mean(apart**3)) / variance**1.5, note=note)


HUBNESS = Metric(
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
    estimate=_hubness,
    minimum=12,
    cost="pairs",
    from_sums=False,
    most=HUBNESS_POINTS,
)


def reciprocity(points: Points, k: int = 10) -> Value:
    """Share of the pairs (x, y) of a cloud (n, d), y among the k nearest neighbours of x, where x is among those of y.

    The reciprocity of the directed k-nearest-neighbour graph. Schnitzer et al. (2012) describe asymmetric neighbours as the
    consequence of hubs: a hub is a neighbour of many more points than the k that are its own. Sakhawat et al. (2026,
    arXiv:2605.26575) measure it between the vectors of two languages; this is within one cloud. Euclidean distances, O(n²d). Points
    that are equally near at the last place are neighbours by chance: the value is the mean over independent orders of them. Copies
    of a point count once (`isoviz.metrics.copies`).

    Undefined (nan) for at most k + 1 distinct points, which are all neighbours of each other, and where all points are equal.

    Args:
        points: (n, d); a tensor result carries no gradient.
        k: neighbours of each point, at least 1.
    """
    if k < 1:
        raise InputError(f"k must be at least 1, got {k}")
    return answer("reciprocity", points, _reciprocity(Sample(points), k))


def _reciprocity(sample: Sample, k: int = 10) -> Estimate:
    distinct, problem, note = distinct_points(sample, k + 2, k)
    if problem:
        return Estimate(float("nan"), problem, note)
    return Estimate(float(mutual(distinct.graph(k), distinct.n).sum()) / (distinct.n * k), note=note)


RECIPROCITY = Metric(
    slug="reciprocity",
    place=87,
    title="Reciprocity of neighbours",
    label="Reciprocity",
    symbol="r₁₀",
    sees="How many of a point's 10 nearest neighbours have the point among their own 10.",
    blind_to="Cannot see distances between points, only which points are nearer than others.",
    help="Hubs lower it: they are neighbours of many points that are not theirs, so a search finds them from everywhere.",
    range=Range("above 0 … 1", constant(0.0), constant(1.0)),
    at_isotropy=AtIsotropy(
        "falls with d: for 2,000 Gaussian points 0.77 at d = 3, 0.39 at d = 20 and 0.27 at d = 100 (standard deviation over 30 "
        "clouds: 0.01)"
    ),
    unchanged_by=COVARIANCE_ONLY,
    enough=EnoughPoints(
        "depends on n, especially in many dimensions (d = 100: 0.54 for 50 points, 0.27 for 2,000): compare only clouds of equal n",
        "unknown",
    ),
    paper=Citation("Schnitzer et al. 2012", "schnitzer2012scaling", 2012, "J. Mach. Learn. Res. 13, 2871–2902"),
    equation=r"\frac{1}{nk} \big|\{(i, j) : j \in \mathcal{N}_k(i),\ i \in \mathcal{N}_k(j)\}\big|, \quad k = 10",
    function=reciprocity,
    estimate=_reciprocity,
    minimum=12,
    cost="pairs",
    from_sums=False,
    most=HUBNESS_POINTS,
)


METRICS = (TWONN, LOCAL_DIMENSION, HUBNESS, RECIPROCITY)

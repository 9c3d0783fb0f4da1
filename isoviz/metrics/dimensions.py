"""Statistics of single dimensions and entries: spread, mean activation, rogue dimensions, correlations and their order, massive entries."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import InputError
from isoviz.metrics.cloud import (
    Array,
    Estimate,
    Points,
    Value,
    answer,
    float64_matrix,
    like,
    too_few,
    undefined,
    warn_undefined,
)
from isoviz.metrics.moments import COLLAPSED, centre, std_of
from isoviz.metrics.protocol import AtIsotropy, Citation, EnoughPoints, Metric, Range, constant
from isoviz.metrics.sample import Sample


def dimension_std(points: Points) -> Array:
    """Population standard deviation (divisor n) of each dimension, shape (d,)."""
    return _of_each("dimension_std", points, lambda sample: sample.std)


def mean_activation(points: Points) -> Array:
    """Mean of each dimension, shape (d,)."""
    return _of_each("mean_activation", points, lambda sample: sample.mean)


def _of_each(metric: str, points: Points, read: Callable[[Sample], NDArray[np.float64]]) -> Array:
    sample = Sample(points)
    if sample.n == 0:
        return answer(metric, points, Estimate(np.full(sample.d, np.nan), "there are no points"), depth=2)
    return like(points, read(sample))


ROUNDING_OF_MEANS = 1e-5
"""Means closer than this share of the median spread differ by rounding only: that of float32 sums, with room to spare."""
DEAD = 1e-10
"""A dimension whose spread is at most this share of the largest is dead; a whitening leaves 1e-13 of a constant one."""


class StdHistogram(NamedTuple):
    """Standard deviations of the dimensions on a logarithmic axis; `percent.sum() + zero` is 100.

    Attributes:
        edges: (bins + 1,), increasing by a constant factor from the floor to the largest standard deviation, or to a given top.
        percent: (bins,), percent of the dimensions in each bin. The first bin includes positive values below the floor, the
            last one values above the top.
        zero: percent of the dimensions without any spread, which a logarithmic axis cannot show.
    """

    edges: Array
    percent: Array
    zero: float


def std_histogram(points: Points, bins: int = 50, floor: float = 1e-10, top: float | None = None) -> StdHistogram:
    """The distribution of the dimensions' population standard deviations (divisor n; Zhou et al. 2021, Figure 1).

    Args:
        points: (n, d).
        bins: number of bins between `floor` and the largest standard deviation (1 if that does not exceed `floor`), evenly
            spaced in the logarithm.
        floor: 1e-10 in the paper.
        top: upper end of the bins instead of the largest standard deviation, so that several clouds can share bins.

    Raises:
        InputError: (a ValueError) wrong shape, or non-finite entries.
    """
    x = float64_matrix(points)
    n, d = x.shape
    if n == 0:
        warn_undefined("std_histogram", "there are no points")
        edges = np.geomspace(floor, top or 1.0, bins + 1)
        return StdHistogram(like(points, edges), like(points, np.full(bins, np.nan)), float("nan"))
    std = std_of(centre(x)[0])
    if top is None:
        top = float(std.max()) if std.max() > floor else 1.0
    edges = np.geomspace(floor, top, bins + 1)
    edges[0], edges[-1] = floor, top
    counts, _ = np.histogram(np.clip(std[std > 0], floor, top), bins=edges)
    zero = 100.0 * float((std == 0).sum()) / d
    return StdHistogram(like(points, edges), like(points, 100.0 * counts / d), zero)


def outlier_dimensions(points: Points, threshold: float = 3.0) -> NDArray[np.int64] | Array:
    """Rogue dimensions by mean activation, shape (k,), integers, the most extreme first.

    With a_j the mean of dimension j over the points, and m and s the mean and the population standard deviation of
    a_1 … a_d, dimension j is rogue if |a_j − m| > threshold · s. The rule of three standard deviations is that of
    Kovaleva et al. (2021, "BERT Busters") and Puccetti et al. (2022), who apply it to the weights of the LayerNorm that
    produces the activations. It never finds one if d ≤ threshold² + 1, because |a_j − m| ≤ s√(d − 1).

    Args:
        points: (n, d).
        threshold: in units of s.
    """
    if not threshold > 0:
        raise InputError(f"threshold must be above 0, got {threshold}")
    x = float64_matrix(points)
    if len(x) == 0:
        warn_undefined("outlier_dimensions", "there are no points")
        return like(points, np.zeros(0, dtype=np.int64))
    centred, means = centre(x)
    return like(points, outliers_of(means, threshold, std_of(centred)))


def outliers_of(
    means: NDArray[np.float64], threshold: float = 3.0, std: NDArray[np.float64] | None = None
) -> NDArray[np.int64]:
    """As `outlier_dimensions`, from one number per dimension (d,), such as its mean; with the spread of each, (d,), the
    means of centred points are rounding error and never rogue."""
    distance = np.abs(means - means.mean())
    spread = float(np.sqrt(np.mean(distance**2)))
    if spread <= 1e-14 * float(np.abs(means).max()):  # equal up to round-off
        return np.zeros(0, dtype=np.int64)
    least = threshold * spread if std is None else max(threshold * spread, ROUNDING_OF_MEANS * float(np.median(std)))
    outliers = np.flatnonzero(distance > least)
    return outliers[np.argsort(-distance[outliers], kind="stable")].astype(np.int64)


def dead_dimensions(
    std: NDArray[np.float64], mean: NDArray[np.float64] | float = 0.0, eps: float = 0.0
) -> NDArray[np.int64]:
    """Dimensions that are constant, or vary by rounding only, ascending; none if no dimension varies.

    Args:
        std, mean: (d,) spread and mean of each dimension.
        eps: `cloud.resolution` of the points.
    """
    alive = std > np.maximum(eps * np.abs(mean), DEAD * std.max(initial=0.0))
    return np.flatnonzero(~alive) if alive.any() else np.zeros(0, dtype=np.int64)


def dead_words(dead: Sequence[int]) -> str:
    """These dimensions by number, at most eight."""
    return f"Dead dimensions (they do not vary): {', '.join(map(str, dead[:8]))}{', …' if len(dead) > 8 else ''}"


def rogue_share(points: Points) -> Value:
    """Share of the total variance in the dimension of largest variance, in [0, 1], for a cloud (n, d).

    A single dimension with share s limits the participation ratio to at most 1/s².
    """
    return answer("rogue_share", points, _rogue_share(Sample(points)))


def _rogue_share(sample: Sample) -> Estimate:
    if sample.n < 2:
        return undefined(too_few(sample.n))
    if sample.collapsed:
        return undefined(COLLAPSED)
    shares = (sample.std / sample.std.max()) ** 2
    return Estimate(float(shares.max() / shares.sum()))


def abs_correlation(points: Points) -> Array:
    """|Pearson correlation| of every pair of dimensions, shape (d, d), within [0, 1].

    A dimension without variance (below 1e-12 of the largest standard deviation) correlates 1 with itself and
    0 with others.
    """
    sample = Sample(points)
    if sample.n < 2:
        undefined_matrix = np.full((sample.d, sample.d), np.nan)
        return answer("abs_correlation", points, Estimate(undefined_matrix, too_few(sample.n)))
    return like(points, sample.abs_correlation)


def correlation_order(abs_corr: Points) -> NDArray[np.int64] | Array:
    """An order of the dimensions that places correlated ones next to each other, shape (d,), integers.

    The leaves of average linkage on 1 − |ρ|, in scipy's order, which is deterministic.
    Dimensions that correlate with no other, for lack of variance, come last.

    Args:
        abs_corr: (d, d) from `abs_correlation`.
    """
    matrix = float64_matrix(abs_corr, "abs_corr")
    d = matrix.shape[0]
    if matrix.shape != (d, d):
        raise InputError(f"abs_corr must be square (dimensions, dimensions), got {matrix.shape}")
    distance = 1.0 - np.minimum((matrix + matrix.T) / 2, 1.0)
    np.fill_diagonal(distance, 0.0)
    isolated = (distance == 1.0).sum(axis=0) == d - 1
    live, last = np.flatnonzero(~isolated), np.flatnonzero(isolated)
    if len(live) > 2:
        from scipy.cluster.hierarchy import leaves_list, linkage
        from scipy.spatial.distance import squareform

        live = live[leaves_list(linkage(squareform(distance[np.ix_(live, live)], checks=False), method="average"))]
    return like(abs_corr, np.concatenate([live, last]).astype(np.int64))


def _mean_abs_correlation(sample: Sample) -> Estimate:
    """Mean |ρ| of distinct dimensions that vary (above 1e-12 of the largest σ)."""
    if sample.n < 2:
        return undefined(too_few(sample.n))
    count = int(sample.varies.sum())
    if count < 2:
        return undefined("fewer than two dimensions vary")
    if sample.collapsed:
        return undefined(COLLAPSED)
    total = float(sample.abs_correlation.sum()) - sample.d
    return Estimate(total / (count * (count - 1)))


_ISOBN_PAPER = Citation("Zhou et al. 2021", "zhou2021isobn", 2021, "arXiv:2005.02178")

ABS_CORRELATION = Metric(
    slug="abs_correlation",
    place=100,
    title="Correlation of dimensions",
    label="Mean |ρ|",
    latex=r"mean $|\rho|$",
    symbol="|ρ_jk|",
    sees="Which dimensions are redundant because they vary together.",
    blind_to=(
        "Cannot see how wide a dimension is, or the sign of a correlation: a rogue dimension a thousand times wider changes "
        "nothing."
    ),
    help="As a single number: the mean over all pairs of distinct dimensions that vary.",
    range=Range("0 … 1", constant(0.0), constant(1.0)),
    at_isotropy=AtIsotropy("0 off the diagonal", lambda n, d: np.eye(d), "sample"),
    unchanged_by=frozenset({"shift", "scale", "stretch", "order", "duplicates"}),
    enough=EnoughPoints(
        "100: a true value of 0 reads about 0.08; with 25 points about 0.16", "falls", lambda d: 100, 0.1
    ),
    paper=_ISOBN_PAPER,
    equation=r"|\rho_{jk}| = |\Sigma_{jk}| / \sqrt{\Sigma_{jj}\Sigma_{kk}}",
    function=abs_correlation,
    estimate=_mean_abs_correlation,
    gives="per pair of dimensions",
)

ROGUE_SHARE = Metric(
    slug="rogue_share",
    place=90,
    title="Share of the widest dimension",
    label="Widest dimension",
    symbol="rogue",
    sees="How much of the total variance the widest dimension holds.",
    blind_to="Cannot see directions that mix dimensions, or how the other dimensions share the rest.",
    range=Range("1/d … 1", lambda n, d: 1 / d, constant(1.0)),
    at_isotropy=AtIsotropy("1/d", lambda n, d: 1 / d, "sample"),
    unchanged_by=frozenset({"shift", "scale", "order", "duplicates"}),
    enough=EnoughPoints(
        "100 ln d, at least 40: up to 20 % high, worst for an isotropic cloud",
        "falls",
        lambda d: max(math.ceil(100 * math.log(d)), 40),
        0.2,
    ),
    paper=Citation("Timkey & van Schijndel 2021", "timkey2021rogue", 2021, "arXiv:2109.04404"),
    equation=r"\max_j \Sigma_{jj} / \operatorname{tr}\Sigma",
    function=rogue_share,
    estimate=_rogue_share,
)

DIMENSION_STD = Metric(
    slug="dimension_std",
    place=110,
    title="Spread of each dimension",
    symbol="σ_j",
    sees="How far each dimension spreads, so that rogue dimensions stand out.",
    blind_to="Cannot see correlation: d copies of one dimension look like d independent dimensions.",
    range=Range("0 upwards", constant(0.0)),
    at_isotropy=AtIsotropy("all equal; this alone does not make a cloud isotropic"),
    unchanged_by=frozenset({"shift", "order", "duplicates"}),
    enough=EnoughPoints("20: about 5 % low", "falls", lambda d: 20, 0.06),
    paper=_ISOBN_PAPER,
    equation=r"\sigma_j = \sqrt{\tfrac1n \sum_i (x_{ij} - \bar x_j)^2}",
    function=dimension_std,
    estimate=None,
    minimum=1,
    gives="per dimension",
    axis="log",
)

MEAN_ACTIVATION = Metric(
    slug="mean_activation",
    place=120,
    title="Mean of each dimension",
    symbol="x̄_j",
    sees="Where the cloud is centred, dimension by dimension.",
    blind_to="Cannot see spread: a single point has the same means as a wide cloud around it.",
    range=Range("unbounded"),
    at_isotropy=AtIsotropy("any: isotropy does not determine it"),
    unchanged_by=frozenset({"order", "duplicates"}),
    enough=EnoughPoints("1: unbiased at any n", "none", lambda d: 1),
    paper=Citation("Rudman & Eickhoff 2024", "rudman2024istar", 2024, "arXiv:2305.19358"),
    equation=r"\bar x_j = \tfrac1n \sum_i x_{ij}",
    function=mean_activation,
    estimate=None,
    minimum=1,
    gives="per dimension",
)


_LEAST, _TIMES = 100.0, 1000.0
"""Sun et al. (2024, section 2) call an entry massive if its magnitude exceeds 100 and about 1,000 times the median."""


def massive_activation(points: Points) -> Value:
    """max |x_ij| / median |x_ij| over all entries of a cloud (n, d).

    For the tokens of one layer these are the largest and the median magnitude that Sun et al. (2024) plot by layer; as in their
    code, the lower one of two middle values counts. Records note how many entries are massive by their definition (above 100
    and 1,000 times the median), and what share of the sum of squares they hold.

    Undefined (nan) without points or if the median is 0.

    Args:
        points: (n, d); a tensor result carries no gradient.
    """
    return answer("massive_activation", points, _massive_activation(Sample(points)))


def _massive_activation(sample: Sample) -> Estimate:
    if sample.n == 0:
        return undefined("there are no points")
    assert sample.points is not None
    magnitudes = np.abs(sample.points).ravel()
    middle = (magnitudes.size - 1) // 2
    magnitudes.partition(middle)
    median, largest = float(magnitudes[middle]), float(magnitudes[middle:].max())
    if not largest / np.finfo(np.float64).max < median:
        return undefined("the median entry is 0")
    note = ""
    if largest > max(_LEAST, _TIMES * median):
        above = magnitudes[magnitudes > max(_LEAST, _TIMES * median)] / largest
        magnitudes /= largest
        share = float(above @ above) / float(magnitudes @ magnitudes)
        entries = f"{len(above):,} entries" if len(above) > 1 else "1 entry"
        note = f"finds {entries} above 100 and 1,000 times the median, with {share:.0%} of the sum of squares"
    return Estimate(largest / median, note=note)


MASSIVE_ACTIVATION = Metric(
    slug="massive_activation",
    place=95,
    title="Massive activation",
    label="Max ÷ median",
    symbol="max |x| / med |x|",
    sees="How many times larger the largest entry of any vector is than the typical entry.",
    blind_to="Cannot see how many entries are large, or whether they share a dimension or a point.",
    help=(
        "Sun et al. (2024) call an entry massive above about 1,000 times the median. In decoders it is often in the first token: "
        "look at tokens, not at pooled vectors."
    ),
    range=Range("1 and above", constant(1.0)),
    at_isotropy=AtIsotropy(
        "no single value: for 1,000 Gaussian points 5.9 ± 0.5 at d = 10 and 6.7 ± 0.4 at d = 100 (mean ± standard deviation over "
        "300 clouds)"
    ),
    unchanged_by=frozenset({"scale", "order", "duplicates"}),
    enough=EnoughPoints("a maximum, which grows with n: compare only clouds of equal n", "unknown"),
    paper=Citation("Sun et al. 2024", "sun2024massive", 2024, "arXiv:2402.17762"),
    equation=r"\max_{i,j} |x_{ij}| \Big/ \operatorname*{median}_{i,j} |x_{ij}|",
    function=massive_activation,
    estimate=_massive_activation,
    minimum=1,
    from_sums=False,
    axis="log",
    decimals=1,
)


METRICS = (ABS_CORRELATION, ROGUE_SHARE, DIMENSION_STD, MEAN_ACTIVATION, MASSIVE_ACTIVATION)

"""Alignment: how near the vectors of related points lie to each other (Wang & Isola 2020)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import InputError
from isoviz.metrics.cloud import Estimate, answer, float64_matrix, undefined
from isoviz.metrics.intervals import Interval
from isoviz.metrics.protocol import AtIsotropy, Citation, EnoughPoints, Metric, Range, constant
from isoviz.statistics import intervals

if TYPE_CHECKING:
    from isoviz.metrics.cloud import Points, Value

_PROBLEM = "there is no pair of vectors that are not zero"


def alignment(points: Points, partners: Points, alpha: float = 2.0) -> Value:
    """Mean of ‖x̂ − ŷ‖^α over the pairs (x, y) of two clouds (n, d), row by row, each vector divided by its length.

    The alignment loss of Wang & Isola (2020), with the α = 2 of their code: lower values mean that related points lie nearer to
    each other. Their `align_loss` expects vectors of length 1; here they are scaled first, as for `uniformity`. For α = 2 it is
    2 − 2 times the mean cosine of the pairs. Pairs with a zero vector are left out.

    Undefined (nan) without pairs.

    Args:
        points, partners: (n, d) each; row i of one belongs to row i of the other. A tensor result carries no gradient.
        alpha: exponent, above 0.
    """
    terms = _terms(points, partners, alpha)
    return answer("alignment", points, Estimate(float(terms.mean())) if len(terms) else undefined(_PROBLEM))


def alignment_interval(points: Points, partners: Points, alpha: float = 2.0) -> Interval:
    """`alignment` with Student's 95 % interval for the mean of independent pairs.

    Pairs that share a row depend on each other, and the interval is then too narrow: `isoviz ruler` counts rows.

    Args:
        points, partners, alpha: as for `alignment`.

    Returns:
        An interval whose `groups` is the number of pairs; `problem` if there are fewer than two.
    """
    terms = _terms(points, partners, alpha)
    n, d = np.shape(points)[0], np.shape(points)[1]
    estimate = float(terms.mean()) if len(terms) else math.nan
    ends = intervals.of_mean(terms.tolist())
    if ends is None:
        return Interval.missing(
            f"it needs at least 2 pairs, got {len(terms)}", n, d, groups=len(terms), estimate=estimate
        )
    error = float(terms.std(ddof=1)) / math.sqrt(len(terms))
    return Interval(estimate, *ends, error, intervals.LEVEL, n, d, len(terms), method="Student's t")


def _terms(points: Points, partners: Points, alpha: float) -> NDArray[np.float64]:
    """‖x̂ − ŷ‖^α of each pair."""
    if not alpha > 0:
        raise InputError(f"alpha must be above 0, got {alpha}", field="alpha")
    x, y = float64_matrix(points), float64_matrix(partners, "partners")
    if x.shape != y.shape:
        raise InputError(f"partners must have the points' shape {x.shape}, got {y.shape}", field="partners")
    biggest = [np.abs(side).max(axis=1) for side in (x, y)]  # first, so that squares neither overflow nor underflow
    pairs = (biggest[0] > 0) & (biggest[1] > 0)
    one, other = (_unit(side[pairs] / scale[pairs, None]) for side, scale in zip((x, y), biggest, strict=True))
    distances: NDArray[np.float64] = np.linalg.norm(one - other, axis=1)
    return distances**alpha


def _unit(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return x / np.linalg.norm(x, axis=1, keepdims=True)


METRICS = Metric(
    slug="alignment",
    place=52,
    title="Alignment",
    symbol="L_align",
    sees="How near the vectors of related points lie to each other (0: in the same direction, 2: unrelated directions).",
    blind_to="Cannot see unrelated points: vectors that all point the same way are perfectly aligned. Read it beside uniformity.",
    help=(
        "It needs pairs: two texts of the same meaning, or two views of one text. `isoviz measure --pairs`, `isoviz ruler` and "
        "What-if have it."
    ),
    range=Range("0 … 4", constant(0.0), constant(4.0)),
    at_isotropy=AtIsotropy("no single value: it depends on the pairs; 2 for unrelated ones"),
    unchanged_by=frozenset({"scale", "rotation", "order", "duplicates"}),
    jointly="the partners",
    enough=EnoughPoints("1: unbiased at any n; more pairs only reduce its scatter", "none", lambda d: 1),
    paper=Citation("Wang & Isola 2020", "wang2020uniformity", 2020, "arXiv:2005.10242"),
    equation=r"\operatorname*{mean}_{i} \lVert \hat x_i - \hat y_i \rVert^2, \quad \hat x_i = x_i / \lVert x_i \rVert",
    function=alignment,
    estimate=None,
    inputs=("partners",),
    kinds=frozenset({"rows"}),
    minimum=1,
    from_sums=False,
)

"""Measures of the vectors' directions: the mean cosine, uniformity on the sphere, and alignment of related points."""

from __future__ import annotations

import math

import numpy as np

from isoviz.errors import InputError
from isoviz.formatting import number
from isoviz.metrics.cloud import Estimate, Points, Value, answer, float64_matrix, undefined
from isoviz.metrics.protocol import AtIsotropy, Citation, EnoughPoints, Metric, Range, constant
from isoviz.metrics.sample import Sample

_FEW = "it needs at least 2 vectors that are not zero, got {}"
_NO_PAIR = "there is no pair of vectors that are not zero"


def mean_cosine(points: Points) -> Value:
    """Mean cosine over the distinct pairs of a cloud (n, d): (‖Σû‖² − n)/(n(n − 1)), zero vectors left out.

    It mainly reflects the mean of the cloud, which IsoScore ignores: a cloud with IsoScore 1 can have any mean cosine.
    """
    return answer("mean_cosine", points, mean_cosine_estimate(Sample(points)))


def mean_cosine_estimate(sample: Sample) -> Estimate:
    """The mean cosine of a sample."""
    total, zeros = sample.directions
    n = sample.n - zeros
    note = f"leaves out {zeros} zero vectors" if zeros else ""
    if n < 2:
        return Estimate(float("nan"), _FEW.format(n), note)
    return Estimate(float((total @ total - n) / (n * (n - 1))), note=note)


INDISTINCT = 5e-5
"""With a mean cosine closer to 1 than this, which prints as 1.0000, rows cannot be told apart by their direction."""


NOISE = 1e-7
"""Closer still, the rounding of half precision explains what differs between rows."""


def indistinct(cosine: float | None) -> str:
    """Says that rows with this mean cosine cannot be told apart; empty if they can, or if it is undefined."""
    if cosine is None or not 1 - cosine < INDISTINCT:
        return ""
    noise = "; what differs after a transform may be rounding noise" if 1 - cosine < NOISE else ""
    return f"the rows cannot be told apart: the mean cosine of two of them is {number(cosine)}{noise}"


MEAN_COSINE = Metric(
    slug="mean_cosine",
    place=50,
    title="Mean cosine",
    symbol="cos",
    sees="Whether the vectors point in the same direction, which mainly reflects how far the cloud lies from the origin.",
    blind_to="Cannot see shape or lengths: any cloud that is symmetric around the origin gives 0, even if it is stretched.",
    range=Range("−1/(n − 1) … 1", lambda n, d: -1 / (n - 1), constant(1.0)),
    at_isotropy=AtIsotropy("0, on average", constant(0.0), "population"),
    unchanged_by=frozenset({"scale", "rotation", "order"}),
    enough=EnoughPoints("2: unbiased at any n; more points only reduce its scatter", "none", lambda d: 2),
    paper=Citation("Ethayarajh 2019", "ethayarajh2019contextual", 2019, "arXiv:1909.00512"),
    equation=r"\frac{\lVert \sum_i \hat u_i \rVert^2 - n}{n(n - 1)}, \quad \hat u_i = x_i / \lVert x_i \rVert",
    function=mean_cosine,
    estimate=mean_cosine_estimate,
    headline=True,
)


_BLOCK = 1_000_000  # pairs in memory at a time: 8 MB, which fits the cache


def uniformity(points: Points) -> Value:
    """log of the mean of exp(−2‖x − y‖²) over the distinct pairs of a cloud (n, d), each vector divided by its length.

    The uniformity loss of Wang & Isola (2020) with their t = 2: lower values mean that the directions cover the unit sphere
    more evenly. Exact, computed in blocks, O(n²d). Zero vectors have no direction and are left out.

    Undefined (nan) with fewer than 2 vectors that are not zero. A tensor result carries no gradient.
    """
    return answer("uniformity", points, _uniformity(Sample(points)))


def _uniformity(sample: Sample) -> Estimate:
    x = sample.points
    assert x is not None
    biggest = np.abs(x).max(axis=1)  # first, so that squares neither overflow nor underflow
    nonzero = biggest > 0
    zeros = int(len(x) - nonzero.sum())
    note = f"leaves out {zeros} zero vectors" if zeros else ""
    unit = x[nonzero] / biggest[nonzero][:, None]
    unit /= np.sqrt(np.einsum("ij,ij->i", unit, unit))[:, None]
    n = len(unit)
    if n < 2:
        return Estimate(float("nan"), _FEW.format(n), note)
    total = 0.0
    step = max(1, _BLOCK // n)
    for start in range(0, n - 1, step):
        rows = unit[start : start + step]
        pairs = rows @ unit[start:].T
        pairs *= 4.0  # ‖x − y‖² = 2 − 2x·y, so −2‖x − y‖² = 4x·y − 4, here without the −4
        np.exp(pairs, out=pairs)
        block = pairs[:, : len(rows)]
        total += float(pairs.sum() - np.tril(block).sum())  # each pair of distinct points once
    return Estimate(math.log(total / (n * (n - 1) / 2)) - 4.0, note=note)


def _on_the_whole_sphere(n: int, d: int) -> float:
    """log E exp(4x·y − 4) for independent, uniform directions: log ₀F₁(d/2; 4) − 4."""
    term, total = 1.0, 1.0
    for k in range(1, 60):
        term *= 4.0 / (k * (d / 2 + k - 1))
        total += term
    return math.log(total) - 4.0


UNIFORMITY = Metric(
    slug="uniformity",
    place=53,
    title="Uniformity",
    symbol="L_unif",
    sees="Whether the vectors' directions cover the whole sphere (near −4 or below) or cluster on one side of it (near 0).",
    blind_to="Cannot see how long the vectors are, and cannot distinguish a mean far from the origin from clusters.",
    help=(
        "Lower means more even. Together with alignment it explains how well contrastive embeddings perform (Wang & Isola "
        "2020)."
    ),
    range=Range("−8 … 0", constant(-8.0), constant(0.0)),
    at_isotropy=AtIsotropy("log ₀F₁(d/2; 4) − 4, which tends to −4 + 8/d", _on_the_whole_sphere, "population"),
    unchanged_by=frozenset({"scale", "rotation", "order"}),
    enough=EnoughPoints("2: the mean over pairs is unbiased at any n; its logarithm reads slightly low", "unknown"),
    paper=Citation("Wang & Isola 2020", "wang2020uniformity", 2020, "arXiv:2005.10242"),
    equation=r"\log \operatorname*{mean}_{i<j} \exp(-2 \lVert \hat u_i - \hat u_j \rVert^2), \quad"
    r" \hat u_i = x_i / \lVert x_i \rVert",
    function=uniformity,
    estimate=_uniformity,
    cost="pairs",
    from_sums=False,
    most=2_000,
)


def alignment(points: Points, partners: Points) -> Value:
    """Mean of ‖x̂ − ŷ‖² over the pairs (x, y) of two clouds (n, d), row by row, each vector divided by its length.

    The alignment loss of Wang & Isola (2020), with the α = 2 of their code: lower values mean that related points lie nearer to
    each other. Their `align_loss` expects vectors of length 1; here they are scaled first, as for `uniformity`. It is
    2 − 2 times the mean cosine of the pairs. Pairs with a zero vector are left out.

    Undefined (nan) without pairs.

    Args:
        points, partners: (n, d) each; row i of one belongs to row i of the other. A tensor result carries no gradient.
    """
    x, y = float64_matrix(points), float64_matrix(partners, "partners")
    if x.shape != y.shape:
        raise InputError(f"partners must have the points' shape {x.shape}, got {y.shape}", field="partners")
    biggest = [np.abs(side).max(axis=1) for side in (x, y)]  # first, so that squares neither overflow nor underflow
    pairs = (biggest[0] > 0) & (biggest[1] > 0)
    one, other = (side[pairs] / scale[pairs, None] for side, scale in zip((x, y), biggest, strict=True))
    one, other = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (one, other))
    terms = np.square(one - other).sum(axis=1)
    return answer("alignment", points, Estimate(float(terms.mean())) if len(terms) else undefined(_NO_PAIR))


ALIGNMENT = Metric(
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


METRICS = (MEAN_COSINE, UNIFORMITY, ALIGNMENT)

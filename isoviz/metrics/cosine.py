"""The mean cosine similarity, exact in O(nd)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoviz.formatting import number
from isoviz.metrics.cloud import Estimate, answer
from isoviz.metrics.protocol import AtIsotropy, Citation, EnoughPoints, Metric, Range, constant
from isoviz.metrics.sample import Sample

if TYPE_CHECKING:
    from isoviz.metrics.cloud import Points, Value


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
        return Estimate(float("nan"), f"it needs at least 2 vectors that are not zero, got {n}", note)
    return Estimate(float((total @ total - n) / (n * (n - 1))), note=note)


INDISTINCT = 5e-5
"""With a mean cosine closer to 1 than this, which prints as 1.0000, rows cannot be told apart by their direction."""


def indistinct(cosine: float | None) -> str:
    """Says that rows with this mean cosine cannot be told apart; empty if they can, or if it is undefined."""
    if cosine is None or not 1 - cosine < INDISTINCT:  # nan: undefined
        return ""
    return f"the rows cannot be told apart: the mean cosine of two of them is {number(cosine)}"


METRICS = Metric(
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

"""Massive activations: how far the largest entry of a cloud exceeds the typical one (Sun et al. 2024)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isoviz.metrics.cloud import Estimate, answer, undefined
from isoviz.metrics.protocol import AtIsotropy, Citation, EnoughPoints, Metric, Range, constant
from isoviz.metrics.sample import Sample

if TYPE_CHECKING:
    from isoviz.metrics.cloud import Points, Value

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
    return answer("massive_activation", points, _estimate(Sample(points)))


def _estimate(sample: Sample) -> Estimate:
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


METRICS = Metric(
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
    estimate=_estimate,
    minimum=1,
    from_sums=False,
    axis="log",
    decimals=1,
)

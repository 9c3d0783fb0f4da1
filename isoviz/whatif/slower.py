"""Measures of an image that take longer than a slider's move: of its points, or of its own dimensions, which no rotation spares."""

from __future__ import annotations

from typing import Final

from isoviz import metrics
from isoviz.metrics.measuring import reading_of
from isoviz.metrics.sample import Sample
from isoviz.metrics.scores import REPORTED_ZETA
from isoviz.posthoc.factored import FactoredCloud, Matrix

SLOWER: Final = ("twonn", "isoscore_star", "rogue_share", "abs_correlation")
"""In the order in which they are shown."""


def measures(cloud: FactoredCloud, alive: Matrix) -> tuple[dict[str, float | None], dict[str, str]]:
    """Of the validation image: `SLOWER`, None where undefined; and why.

    `isoscore_star` mixes its covariance with that of the training image under the same chain, ζ = `REPORTED_ZETA`;
    `abs_correlation` is the mean |ρ| of distinct dimensions that vary.

    Args:
        alive: (m, k) the image's points in any orthonormal coordinates that span it.
    """
    inputs = {"shrinkage_cov": cloud.train_covariance, "zeta": REPORTED_ZETA}
    image = Sample(cloud.image(cloud.validation), inputs=inputs)
    samples = {"twonn": Sample(alive)}
    found = {name: reading_of(metrics.get(name), samples.get(name, image)) for name in SLOWER}
    reasons = {name: reading.undefined for name, reading in found.items() if reading.undefined}
    return {name: reading.value for name, reading in found.items()}, reasons  # type: ignore[misc]

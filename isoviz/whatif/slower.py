"""Measures of an image that take longer than a slider's move: of its points, or of its own dimensions, which no rotation spares."""

from __future__ import annotations

import warnings
from typing import Final

import numpy as np

from isoviz import metrics
from isoviz.metrics.cloud_stream import CloudStream
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
    image = cloud.image(cloud.validation)
    reasons = {}
    with warnings.catch_warnings(record=True) as said:  # n and d stand beside every number
        warnings.simplefilter("always")
        found = {"twonn": float(metrics.twonn(alive)), "rogue_share": float(metrics.rogue_share(image))}
    for one in said:
        name, _, why = str(one.message).partition(" is undefined: ")
        if why:
            reasons[name] = why
    stream = CloudStream(cloud.width)
    stream.update(image)
    star = stream.isoscore_star(cloud.train_covariance, REPORTED_ZETA)
    if star.problem:
        reasons["isoscore_star"] = str(star.problem)
    found["isoscore_star"] = np.nan if star.problem else float(star.value)
    mean = stream.mean_abs_correlation()
    if mean is None:
        reasons["abs_correlation"] = "fewer than two dimensions vary"
    found["abs_correlation"] = np.nan if mean is None else mean
    return {name: found[name] if np.isfinite(found[name]) else None for name in SLOWER}, reasons

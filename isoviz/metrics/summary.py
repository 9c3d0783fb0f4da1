"""All headline metrics of a cloud at once, from one covariance or Gram product."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from isoviz.metrics.cloud import Estimate, float64_matrix, resolution, too_few, undefined
from isoviz.metrics.cosine import mean_cosine_estimate
from isoviz.metrics.moments import cloud_moments
from isoviz.metrics.neighbours import twonn_estimate
from isoviz.metrics.scores import plug_in_estimate, ratio_estimate, unbiased_estimate
from isoviz.metrics.spectrum import cumulative_shares, effective_rank_of, eigenvalues

if TYPE_CHECKING:
    from isoviz.metrics.cloud import Points


class Description(TypedDict):
    """JSON-ready; what is undefined is None and has its reason in `warnings`. `ev` holds at most 50 values."""

    n: int
    d: int
    isoscore: float | None
    isoscore_unbiased: float | None
    ev: list[float] | None
    mean_cosine: float | None
    participation_ratio: float | None
    effective_rank: float | None
    twonn: float | None
    warnings: list[str]


def describe(points: Points, twonn: bool = True) -> Description:
    """Every headline metric of a cloud (n, d), numpy or torch, in float64. No Python warning is raised.

    Args:
        twonn: False leaves the intrinsic dimension out (None, without a reason in `warnings`); it costs
            O(n²d).
    """
    x = float64_matrix(points)
    n, d = x.shape
    notes: list[str] = []

    def value_of(name: str, estimate: Estimate) -> float | None:
        if estimate.problem:
            notes.append(f"{name} is undefined: {estimate.problem}")
            return None
        return float(estimate.value)

    score = unbiased = ratio = rank = undefined(too_few(n))
    ev: list[float] | None = None
    if n >= 2:
        moments = cloud_moments(x, resolution(points), quartic=True)
        score, unbiased, ratio = (
            plug_in_estimate(moments),
            unbiased_estimate(moments),
            ratio_estimate(moments),
        )
        if moments.collapsed or moments.matrix is None:
            rank = undefined("all points are equal")
        else:
            spectrum = eigenvalues(moments.matrix)
            rank = effective_rank_of(spectrum)
            ev = [float(share) for share in cumulative_shares(spectrum, min(n, d, 50))]
            if n < d:
                notes.append(f"n = {n} points in d = {d} dimensions: only isoscore_unbiased allows for so few points")
    cosine, zeros = mean_cosine_estimate(x)
    if zeros:
        notes.append(f"mean_cosine leaves out {zeros} zero vectors")
    neighbours: float | None = None
    if twonn:
        estimate, duplicates = twonn_estimate(x)
        neighbours = value_of("twonn", estimate)
        if duplicates:
            notes.append(f"twonn leaves out {duplicates} duplicate points")
    if ev is None:
        notes.append(f"ev is undefined: {rank.problem}")
    return Description(
        n=n,
        d=d,
        isoscore=value_of("isoscore", score),
        isoscore_unbiased=value_of("isoscore_unbiased", unbiased),
        ev=ev,
        mean_cosine=value_of("mean_cosine", cosine),
        participation_ratio=value_of("participation_ratio", ratio),
        effective_rank=value_of("effective_rank", rank),
        twonn=neighbours,
        warnings=notes,
    )

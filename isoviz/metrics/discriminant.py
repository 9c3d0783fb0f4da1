"""LiDAR: how many directions tell groups of points apart, relative to the spread within the groups (Thilak et al. 2023)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import InputError
from isoviz.metrics.cloud import Estimate, answer, undefined
from isoviz.metrics.protocol import AtIsotropy, Citation, EnoughPoints, Metric, Range, constant
from isoviz.metrics.sample import Sample, as_float64
from isoviz.metrics.spectrum import effective_rank_of

if TYPE_CHECKING:
    from isoviz.metrics.cloud import Points, Value

_DELTA = 1e-4
_ROUNDING = 64
"""Spreads below this times ε of the largest entry are rounding errors (ε: the number type's resolution)."""


def lidar(points: Points, groups: Any, delta: float = _DELTA) -> Value:
    """exp of the entropy of λ/Σλ, where λ are the eigenvalues of Σ_w^(−1/2) Σ_b Σ_w^(−1/2) for a cloud (n, d) in groups.

    Σ_b is the covariance of the groups' means and Σ_w the mean covariance within a group. Thilak et al. (2023) take views of one
    image as a group; here a group can also be rows with the same label. With c groups it is at most c − 1, so it says little about
    few labels.

    The paper adds a small δ to the diagonal of Σ_w. Public codes take an absolute δ (1e-4 in Skean et al.'s `information_flow` and
    in `stable-pretraining`, 1e-6 in `reptrix`), with which the value depends on the vectors' unit, so here δ multiplies the mean
    variance of a dimension within groups. The codes divide Σ_b and Σ_w by different numbers, which then changes nothing. They add
    ε to the shares λ/Σλ; it is left out, because zero shares add no entropy. Every group counts equally; groups of one point are
    left out.

    Undefined (nan) with fewer than 2 groups of 2 points, or without spread within or between groups.

    Args:
        points: (n, d); a tensor result carries no gradient.
        groups: (n,) the group of each point, numbers or strings.
        delta: above 0.
    """
    if not delta > 0:
        raise InputError(f"delta must be above 0, got {delta}", field="delta")
    return answer("lidar", points, _estimate(Sample(points, inputs={"groups": groups}), delta))


def codes_of(groups: Any, n: int, name: str) -> NDArray[np.intp]:
    """(n,) the groups numbered from 0; `InputError` unless there is one for each point."""
    labels = as_float64(groups) if hasattr(groups, "detach") else np.asarray(groups)
    if labels.shape != (n,):
        raise InputError(f"{name} must have one entry for each of the {n} points, got shape {labels.shape}", field=name)
    return np.unique(labels, return_inverse=True)[1].reshape(-1)


def _estimate(sample: Sample, delta: float = _DELTA) -> Estimate:
    from scipy.linalg import cholesky, solve_triangular

    x = sample.points
    assert x is not None
    codes = codes_of(sample.inputs["groups"], sample.n, "groups")
    kept = np.bincount(codes)[codes] > 1 if sample.n else np.zeros(0, bool)
    alone = int(sample.n - kept.sum())
    note = f"leaves out {alone} points that are alone in their group" if alone else ""
    codes = np.unique(codes[kept], return_inverse=True)[1].reshape(-1)
    count = int(codes.max(initial=-1)) + 1
    if count < 2:
        return undefined(f"it needs at least 2 groups of 2 points, got {count}")
    least = _ROUNDING * sample.eps * float(np.abs(x).max())
    x = x[kept] - x[kept].mean(axis=0)
    sizes = np.bincount(codes)
    means = np.zeros((count, sample.d))
    np.add.at(means, codes, x)
    means /= sizes[:, None]
    within, between = x - means[codes], means - means.mean(axis=0)
    for spread, problem in ((within, "the points of each group are equal"), (between, "all groups have the same mean")):
        if not np.abs(spread).max() > least:
            return undefined(problem)
    within /= np.abs(within).max() * np.sqrt(sizes[codes])[:, None]
    covariance = within.T @ within
    covariance[np.diag_indices(sample.d)] += delta * covariance.trace() / sample.d
    whitened = solve_triangular(cholesky(covariance, lower=True), between.T / np.abs(between).max(), lower=True)
    values = np.linalg.svd(whitened, compute_uv=False) ** 2
    return effective_rank_of(values[values > 0])._replace(note=note)


METRICS = Metric(
    slug="lidar",
    place=76,
    title="LiDAR",
    symbol="LiDAR",
    unit="directions",
    sees="How many directions tell groups of points apart, where a direction counts by its spread between groups over that within.",
    blind_to="Cannot see more than c − 1 directions for c groups, or how far apart the groups are.",
    help=(
        "Groups are views of one text or rows with one label (`isoviz measure --labels`). With many groups it predicts which of "
        "several encoders does better downstream (Thilak et al. 2023)."
    ),
    range=Range("1 … min(d, groups − 1)", constant(1.0), lambda n, d: max(1, min(d, n // 2 - 1))),
    at_isotropy=AtIsotropy("no single value: up to min(d, groups − 1), for groups whose means are isotropic too"),
    unchanged_by=frozenset({"shift", "scale", "rotation", "order", "duplicates"}),
    jointly="the groups",
    enough=EnoughPoints(
        "depends on the number of groups and, with few points in each, reads low: for 100 isotropic groups in d = 32, 27.3 with 100 "
        "points each, 25.9 with 4 and 22.3 with 2; for 20 groups of 100 at most 19, and 14.0",
        "unknown",
    ),
    paper=Citation("Thilak et al. 2023", "thilak2023lidar", 2023, "arXiv:2312.04000"),
    equation=r"\exp\Big(-\sum_i p_i \log p_i\Big), \quad p = \lambda / \textstyle\sum_j \lambda_j, \quad"
    r" \lambda = \operatorname{eig}\big(\Sigma_w^{-1/2} \Sigma_b \Sigma_w^{-1/2}\big)",
    function=lidar,
    estimate=_estimate,
    inputs=("groups",),
    kinds=frozenset({"rows"}),
    minimum=4,
    cost="eigenvalues",
    from_sums=False,
    axis="log",
    decimals=1,
)

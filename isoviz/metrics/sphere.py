"""Uniformity: how evenly the directions of the vectors cover the unit sphere."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from isoviz.metrics.cloud import Estimate, answer, is_tensor, undefined
from isoviz.metrics.protocol import AtIsotropy, Citation, EnoughPoints, Metric, Range, constant
from isoviz.metrics.sample import Sample

if TYPE_CHECKING:
    from isoviz.metrics.cloud import Points, Value

_BLOCK = 1_000_000  # pairs in memory at a time: 8 MB, which fits the cache


def uniformity(points: Points) -> Value:
    """log of the mean of exp(−2‖x − y‖²) over the distinct pairs of a cloud (n, d), each vector divided by its length.

    The uniformity loss of Wang & Isola (2020) with their t = 2: lower values mean that the directions cover the unit sphere
    more evenly. Exact, computed in blocks, O(n²d). Zero vectors have no direction and are left out.

    Differentiable for a tensor. Undefined (nan) with fewer than 2 vectors that are not zero.
    """
    return answer("uniformity", points, _of_tensor(points) if is_tensor(points) else _estimate(Sample(points)))


def _of_tensor(points: Any) -> Estimate:
    import torch

    from isoviz.metrics.backward import checked_cloud

    cloud = checked_cloud(points)
    biggest = cloud.detach().abs().amax(dim=1, keepdim=True)
    cloud, biggest = cloud[biggest[:, 0] > 0], biggest[biggest[:, 0] > 0]
    n = len(cloud)
    if n < 2:
        return undefined(_too_few(n))
    step = max(1, _BLOCK // n)
    log_sums = []
    with torch.autocast(cloud.device.type, enabled=False):  # half precision has no digits for angles
        unit = torch.nn.functional.normalize(cloud / biggest, dim=1, eps=0.0)
        for start in range(0, n - 1, step):
            pairs = 4.0 * (unit[start : start + step] @ unit[start:].T) - 4.0
            above = torch.ones_like(pairs, dtype=torch.bool).triu(1)
            log_sums.append(torch.logsumexp(pairs[above], dim=0))
    return Estimate(torch.logsumexp(torch.stack(log_sums), dim=0) - math.log(n * (n - 1) / 2))


def _estimate(sample: Sample) -> Estimate:
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
        return Estimate(float("nan"), _too_few(n), note)
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


def _too_few(n: int) -> str:
    return f"it needs at least 2 vectors that are not zero, got {n}"


def _on_the_whole_sphere(n: int, d: int) -> float:
    """log E exp(4x·y − 4) for independent, uniform directions: log ₀F₁(d/2; 4) − 4."""
    term, total = 1.0, 1.0
    for k in range(1, 60):
        term *= 4.0 / (k * (d / 2 + k - 1))
        total += term
    return math.log(total) - 4.0


METRICS = Metric(
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
    estimate=_estimate,
    differentiable=True,
    cost="pairs",
    from_sums=False,
    most=2_000,
)

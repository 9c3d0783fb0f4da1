"""RankMe: how many directions the embeddings use, from the singular values of the uncentred points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isoviz.metrics.cloud import Estimate, answer, is_tensor, undefined
from isoviz.metrics.moments import eigenvalues
from isoviz.metrics.protocol import AtIsotropy, Citation, EnoughPoints, Metric, Range, constant
from isoviz.metrics.sample import Sample
from isoviz.metrics.spectrum import effective_rank_of

if TYPE_CHECKING:
    from isoviz.metrics.cloud import Points, Value

_PROBLEMS = ("there are no points", "all points are zero")


def rankme(points: Points) -> Value:
    """exp of the entropy of σ/Σσ, where σ are the singular values of the uncentred cloud (n, d); between 1 and min(n, d).
    Garrido et al. (2023) use it to predict how well embeddings do downstream. It is `effective_rank` on another spectrum:
    singular values instead of variances, so weak directions count more; and uncentred, so the mean counts as a direction. Their
    ε = 1e-7 in the shares is left out, because zero shares add no entropy. Differentiable for a tensor. Undefined (nan) without
    points or if all points are zero.
    """
    return answer("rankme", points, _of_tensor(points) if is_tensor(points) else _estimate(Sample(points)))


def _of_tensor(points: Any) -> Estimate:
    import torch

    from isoviz.metrics.backward import checked_cloud

    cloud = checked_cloud(points)
    values = torch.linalg.svdvals(cloud) if len(cloud) else cloud.new_zeros(0)
    values = values[values > max(cloud.shape) * torch.finfo(cloud.dtype).eps * values.max()] if len(values) else values
    if not len(values):
        return undefined(_PROBLEMS[len(cloud) > 0])
    shares = values / values.sum()
    return Estimate(torch.exp(-(shares * shares.log()).sum()))


def _estimate(sample: Sample) -> Estimate:
    if sample.n == 0:
        return undefined(_PROBLEMS[0])
    squares = eigenvalues(sample.second_moment)
    return effective_rank_of(np.sqrt(squares[squares > 0])) if squares[0] > 0 else undefined(_PROBLEMS[1])


METRICS = Metric(
    slug="rankme",
    place=75,
    title="RankMe",
    symbol="RankMe",
    unit="directions",
    sees="How many directions the points use, measured from the origin; weak directions count more than in the effective rank.",
    blind_to="Cannot see how long the vectors are, and cannot distinguish the mean from one more direction of spread.",
    help="Without labels, it predicts which of several embeddings does better downstream (Garrido et al. 2023).",
    range=Range("1 … min(n, d)", constant(1.0), lambda n, d: min(n, d)),
    at_isotropy=AtIsotropy("d, around the origin", lambda n, d: d, "sample"),
    unchanged_by=frozenset({"scale", "rotation", "order", "duplicates"}),
    enough=EnoughPoints("2 d, at least 16: up to 10 % low", "falls", lambda d: max(2 * d, 16), 0.1, reads="low"),
    paper=Citation("Garrido et al. 2023", "garrido2023rankme", 2023, "arXiv:2210.02885"),
    equation=r"\exp\Big(-\sum_i p_i \log p_i\Big), \quad p_i = \sigma_i(X) / \sum_j \sigma_j(X)",
    function=rankme,
    estimate=_estimate,
    minimum=1,
    differentiable=True,
    cost="eigenvalues",
    axis="log",
    decimals=1,
)

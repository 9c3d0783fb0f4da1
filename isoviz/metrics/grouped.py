"""Measures of points in groups: LiDAR between groups (Thilak et al. 2023), and the entropy of each text's tokens (Skean et al. 2025)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz.metrics.cloud import Estimate, Points, Value, answer, undefined
from isoviz.metrics.protocol import AtIsotropy, Citation, EnoughPoints, Metric, Range, constant
from isoviz.metrics.sample import Sample, codes_of
from isoviz.metrics.spectrum import effective_rank_of

_DELTA = 1e-4
_ROUNDING = 64
"""Spreads below this times ε of the largest entry are rounding errors (ε: the number type's resolution)."""


def lidar(points: Points, groups: Any) -> Value:
    """exp of the entropy of λ/Σλ, where λ are the eigenvalues of Σ_w^(−1/2) Σ_b Σ_w^(−1/2) for a cloud (n, d) in groups.

    Σ_b is the covariance of the groups' means and Σ_w the mean covariance within a group. Thilak et al. (2023) take views of one
    image as a group; here a group can also be rows with the same label. With c groups it is at most c − 1, so it says little about
    few labels.

    The paper adds a small δ to the diagonal of Σ_w. Public codes take an absolute δ (1e-4 in Skean et al.'s `information_flow` and
    in `stable-pretraining`, 1e-6 in `reptrix`), with which the value depends on the vectors' unit, so here δ = 1e-4 multiplies the mean
    variance of a dimension within groups. The codes divide Σ_b and Σ_w by different numbers, which then changes nothing. They add
    ε to the shares λ/Σλ; it is left out, because zero shares add no entropy. Every group counts equally; groups of one point are
    left out.

    Undefined (nan) with fewer than 2 groups of 2 points, or without spread within or between groups.

    Args:
        points: (n, d); a tensor result carries no gradient.
        groups: (n,) the group of each point, numbers or strings.
    """
    return answer("lidar", points, _lidar(Sample(points, inputs={"groups": groups})))


def _lidar(sample: Sample) -> Estimate:
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
    covariance[np.diag_indices(sample.d)] += _DELTA * covariance.trace() / sample.d
    whitened = solve_triangular(cholesky(covariance, lower=True), between.T / np.abs(between).max(), lower=True)
    values = np.linalg.svd(whitened, compute_uv=False) ** 2
    return effective_rank_of(values[values > 0])._replace(note=note)


LIDAR = Metric(
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
    estimate=_lidar,
    inputs=("groups",),
    kinds=frozenset({"rows"}),
    minimum=4,
    cost="eigenvalues",
    from_sums=False,
    axis="log",
    decimals=1,
)


def prompt_entropy(points: Points, texts: Any) -> Value:
    """Mean over texts of the matrix entropy of a text's tokens, divided by its highest possible value, log min(T, d).

    The entropy −Σ p log p of p = λ/Σλ, where λ are the eigenvalues of the Gram matrix ZZᵀ of a text's T tokens Z (T, d): Skean et al.
    (2025, equation 1, α → 1), and Queipo-de-Llano et al. (2025, arXiv:2510.06477), whose p are squared singular values over
    their sum. Both formulas neither centre nor scale the tokens, nor is it done here: one token of massive length, or a direction that
    all tokens share, lowers it. Skean et al.'s code does more: it centres each text's tokens, divides each by its length, and sets
    negative entries of the Gram matrix to 0; it offers several normalisations, of which `maxEntropy` is this one.

    Texts of fewer than 2 tokens, or of zero vectors only, are left out. Undefined (nan) without others, and for d = 1.

    Args:
        points: (n, d), all tokens; a tensor result carries no gradient.
        texts: (n,) the text of each token, numbers or strings.
    """
    return answer("prompt_entropy", points, _prompt_entropy(Sample(points, inputs={"texts": texts})))


def entropy(tokens: NDArray[np.float64]) -> float:
    """Of one text's tokens (T, d), between 0 and 1; nan if it is undefined."""
    most = min(tokens.shape)
    biggest = float(np.abs(tokens).max(initial=0.0))
    if most < 2 or not biggest > 0:
        return math.nan
    z = tokens / biggest
    values = np.linalg.eigvalsh(z @ z.T if len(z) <= z.shape[1] else z.T @ z)
    shares = values[values > 0] / values[values > 0].sum()
    return float(-(shares @ np.log(shares))) / math.log(most)


def _prompt_entropy(sample: Sample) -> Estimate:
    assert sample.points is not None
    codes = codes_of(sample.inputs["texts"], sample.n, "texts")
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes))[:-1]
    values = np.array([entropy(tokens) for tokens in np.split(sample.points[order], ends)])
    defined = values[~np.isnan(values)]
    if not len(defined):
        return undefined("no text has 2 tokens, or they have one dimension or are zero")
    left_out = len(values) - len(defined)
    return Estimate(float(defined.mean()), note=f"leaves out {left_out} texts" if left_out else "")


PROMPT_ENTROPY = Metric(
    slug="prompt_entropy",
    place=96,
    title="Prompt entropy",
    symbol="S̄",
    sees="How evenly the tokens of one text spread over directions, on average over the texts.",
    blind_to="Cannot see how texts differ from each other, and cannot distinguish one very long token from a shared direction.",
    help="Low in middle layers of many decoders: a compression valley, which one token of massive length can cause.",
    range=Range("0 … 1", constant(0.0), constant(1.0)),
    at_isotropy=AtIsotropy(
        "no single value: for Gaussian tokens 0.997 with 10 tokens and 0.986 with 100 at d = 768; 0.964 with 10 and 0.878 with 64 at d = 64"
    ),
    unchanged_by=frozenset({"scale", "rotation", "order"}),
    jointly="the texts",
    enough=EnoughPoints(
        "2 tokens of each text; it depends on their number, so compare layers of the same texts", "unknown"
    ),
    paper=Citation("Skean et al. 2025", "skean2025layer", 2025, "arXiv:2502.02013"),
    equation=r"\operatorname*{mean}_{\text{texts}} \frac{-\sum_i p_i \log p_i}{\log \min(T, d)}, \quad"
    r" p = \lambda / \textstyle\sum_j \lambda_j, \quad \lambda = \operatorname{eig}(Z Z^\top)",
    function=prompt_entropy,
    estimate=_prompt_entropy,
    inputs=("texts",),
    kinds=frozenset({"tokens"}),
    minimum=2,
    minimum_d=2,
    cost="eigenvalues",
    from_sums=False,
)


METRICS = (LIDAR, PROMPT_ENTROPY)

"""Measures of the eigenvalues of the covariance: explained variance and effective rank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import InputError
from isoviz.metrics.cloud import Estimate, answer, like, too_few, undefined, warn_if_small
from isoviz.metrics.moments import eigenvalues
from isoviz.metrics.protocol import (
    COVARIANCE_ONLY,
    AtIsotropy,
    Bound,
    Citation,
    EnoughPoints,
    Metric,
    Range,
    constant,
    highest_rank,
)
from isoviz.metrics.sample import Sample

if TYPE_CHECKING:
    from isoviz.metrics.cloud import Array, Points, Value

KEPT = 50
"""Maximum number of values of the explained-variance curve in a record."""


def explained_variance(points: Points, k: int | None = None, centre: bool = True) -> Array:
    """Cumulative share of the variance in the first 1, ..., k principal directions, shape (k,).

    EV_k = Σ_{i≤k} σ_i² / Σσ_i² (Zhou et al. 2021, equation 9). The paper takes the singular values of the raw matrix
    but claims invariance to the mean, which holds only after centring; `centre=False` gives the raw form.

    Args:
        points: (n, d).
        k: number of values, by default min(n, d). From the rank on the value is 1.
    """
    if k is not None and k < 1:
        raise InputError(f"k must be at least 1, got {k}")
    sample = Sample(points)
    count = min(sample.n, sample.d) if k is None else k
    spectrum = _spectrum(sample) if centre else _raw_spectrum(sample)
    if isinstance(spectrum, Estimate):
        return answer("explained_variance", points, spectrum._replace(value=np.full(count, np.nan)))
    warn_if_small("explained_variance", sample.n, sample.d)
    return like(points, cumulative_shares(spectrum, count))


def effective_rank(points: Points) -> Value:
    """exp of the entropy of the variance shares λ_i/Σλ (Roy & Vetterli 2007, applied to the covariance matrix).

    It lies between the participation ratio, its counterpart of order 2 on the same shares, and the rank.
    """
    sample = Sample(points)
    estimate = _rank(sample)
    if not estimate.problem:
        warn_if_small("effective_rank", sample.n, sample.d)
    return answer("effective_rank", points, estimate)


def cumulative_shares(spectrum: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """(k,): increases to exactly 1 at the rank and stays there."""
    shares = np.cumsum(spectrum)
    shares /= shares[-1]
    return np.concatenate([shares, np.ones(max(k - len(shares), 0))])[:k]


def effective_rank_of(spectrum: NDArray[np.float64]) -> Estimate:
    shares = spectrum[spectrum > 0] / spectrum.sum()
    return Estimate(float(np.exp(-(shares @ np.log(shares)))))


# ------------------------------------------------------------------------------------------------- catalogue


def _spectrum(sample: Sample) -> NDArray[np.float64] | Estimate:
    variances = sample.eigenvalues
    if variances is None:
        return undefined(too_few(sample.n) if sample.moments is None else "all points are equal")
    return variances


def _raw_spectrum(sample: Sample) -> NDArray[np.float64] | Estimate:
    """Without centring."""
    values = eigenvalues(sample.second_moment) if sample.n else np.zeros(1)
    if values[0] > 0:
        return values
    return undefined("all entries are zero" if sample.n else "it needs at least 1 point, got 0")


def _of_spectrum(value: Callable[[NDArray[np.float64], Sample], Any]) -> Callable[[Sample], Estimate]:
    def estimate(sample: Sample) -> Estimate:
        variances = _spectrum(sample)
        return variances if isinstance(variances, Estimate) else Estimate(value(variances, sample))

    return estimate


_rank = _of_spectrum(lambda variances, sample: effective_rank_of(variances).value)


def _even_curve(n: int, d: int) -> Bound:
    """The flattest curve of explained variance that n points in d dimensions can have."""
    return np.minimum(np.arange(1, min(n, d) + 1) / highest_rank(n, d), 1.0)


EV = Metric(
    slug="ev",
    place=40,
    title="Explained variance",
    label="EV_k",
    latex="$EV_k$",
    symbol="EV_k",
    sees="How much of the variance the first k principal directions hold in total.",
    blind_to="Cannot see the mean, or in which directions the variance lies.",
    range=Range("k/min(d, n − 1) … 1", _even_curve, constant(1.0)),
    at_isotropy=AtIsotropy("k/d", lambda n, d: np.arange(1, min(n, d) + 1) / d, "sample"),
    unchanged_by=COVARIANCE_ONLY,
    enough=EnoughPoints(
        "10 d, at least 40: up to 0.15 high, worst for an isotropic cloud",
        "falls",
        lambda d: max(10 * d, 40),
        0.15,
        reads="high",
    ),
    paper=Citation("Zhou et al. 2021", "zhou2021isobn", 2021, "arXiv:2005.02178"),
    equation=r"\mathrm{EV}_k = \sum_{i \le k} \lambda_i \Big/ \sum_i \lambda_i",
    function=explained_variance,
    estimate=_of_spectrum(lambda variances, sample: cumulative_shares(variances, min(sample.n, sample.d, KEPT))),
    gives="curve",
    cost="eigenvalues",
)

EV_1 = replace(
    EV,
    slug="ev_1",
    place=45,
    title="Variance of the first direction",
    label="EV₁",
    latex="$EV_1$",
    symbol="EV₁",
    sees="How much of the variance the strongest direction holds.",
    blind_to="Cannot see the mean or how the rest of the variance is distributed.",
    range=Range("1/min(d, n − 1) … 1", lambda n, d: 1 / highest_rank(n, d), constant(1.0)),
    at_isotropy=AtIsotropy("1/d", lambda n, d: 1 / d, "sample"),
    enough=EnoughPoints(
        "100 d: up to 20 % high, worst for an isotropic cloud; accurate with few points if one direction dominates",
        "falls",
        lambda d: 100 * d,
        0.2,
        reads="high",
    ),
    equation=r"\mathrm{EV}_1 = \lambda_1 \Big/ \sum_i \lambda_i",
    estimate=_of_spectrum(lambda variances, sample: float(cumulative_shares(variances, 1)[0])),
    gives="number",
    options={"k": 1},
    part=0,
    headline=True,
)

EFFECTIVE_RANK = Metric(
    slug="effective_rank",
    place=70,
    title="Effective rank",
    symbol="erank",
    unit="directions",
    sees="How many directions share the variance; weak directions count more than in the participation ratio.",
    blind_to="Cannot see the mean, the total number of dimensions or anything beyond second moments.",
    range=Range("1 … min(d, n − 1)", constant(1.0), highest_rank),
    at_isotropy=AtIsotropy("d", lambda n, d: d, "sample"),
    unchanged_by=COVARIANCE_ONLY,
    enough=EnoughPoints("5 d, at least 40: up to 15 % low", "falls", lambda d: max(5 * d, 40), 0.15, reads="low"),
    paper=Citation("Roy & Vetterli 2007", "roy2007effective", 2007, "EUSIPCO 2007, pp. 606–610"),
    equation=r"\exp\Big(-\sum_i p_i \log p_i\Big), \quad p_i = \lambda_i / \sum_j \lambda_j",
    function=effective_rank,
    estimate=_rank,
    cost="eigenvalues",
    axis="log",
    decimals=1,
)

METRICS = (EV, EV_1, EFFECTIVE_RANK)

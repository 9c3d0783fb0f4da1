"""Measures of eigenvalues: explained variance and effective rank of the covariance, its decay (α-ReQ), and RankMe of the uncentred
points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import InputError
from isoviz.metrics.cloud import Array, Estimate, Points, Value, answer, like, too_few, undefined, warn_if_small
from isoviz.metrics.moments import COLLAPSED, eigenvalues
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


def rankme(points: Points) -> Value:
    """exp of the entropy of σ/Σσ, where σ are the singular values of the uncentred cloud (n, d); between 1 and min(n, d).
    Garrido et al. (2023) use it to predict how well embeddings do downstream. It is `effective_rank` on another spectrum:
    singular values instead of variances, so weak directions count more; and uncentred, so the mean counts as a direction. Their
    ε = 1e-7 in the shares is left out, because zero shares add no entropy. A tensor result carries no gradient. Undefined
    (nan) without points or if all points are zero.
    """
    return answer("rankme", points, _rankme(Sample(points)))


def _rankme(sample: Sample) -> Estimate:
    squares = _raw_spectrum(sample)
    return squares if isinstance(squares, Estimate) else effective_rank_of(np.sqrt(squares[squares > 0]))


RANKME = Metric(
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
    estimate=_rankme,
    minimum=1,
    cost="eigenvalues",
    axis="log",
    decimals=1,
)


LAST_RANK = 100
"""The last eigenvalue of the fit, as in the authors' package."""
_NARROW = 2.0**-19
"""Directions narrower than this share of the widest one hold rounding errors only: of points in single precision (16 ε), and of a
covariance that was summed in double precision."""


def alpha_req(points: Points) -> Value:
    """α of λ_i ∝ i^−α, where λ_i is the i-th largest eigenvalue of the covariance of a cloud (n, d).

    Weighted least squares of log λ_i on log i with weights 1/i, over ranks 11 to 100: the defaults of the authors' package
    `reptrix`. (Scripts in their `fastssl` use ranks 4 to 100, 11 to 100 and 12 to 50.) With r = min(n − 1, d) < 110, a tenth of
    them is left out at each end, because the last directions of layer-normalised vectors are nearly empty; where more than that
    are empty up to rounding errors, r is the number of the others. Undefined (nan) with fewer than 2.

    Args:
        points: (n, d); a tensor result carries no gradient.
    """
    sample = Sample(points)
    estimate = _alpha_req(sample)
    if not estimate.problem:
        warn_if_small("alpha_req", sample.n, sample.d)
    return answer("alpha_req", points, estimate)


def _alpha_req(sample: Sample) -> Estimate:
    variances = sample.eigenvalues
    if variances is None:
        return undefined(too_few(sample.n) if sample.moments is None else COLLAPSED)
    count = int(np.count_nonzero(variances > _NARROW**2 * variances[0]))
    if count < 2:
        return undefined("the points vary in one direction only")
    possible = min(sample.n - 1, sample.d)
    # few empty directions are left out in any case, so rounding does not decide whether they count
    few = possible - count <= min(possible, LAST_RANK) // 10
    return Estimate(decay(variances, possible if few else count))


def decay(variances: NDArray[np.float64], size: int | None = None) -> float:
    """α of eigenvalues (r,), r >= 2, in decreasing order, as if there were `size` of them (default: r); those that are fitted are
    positive."""
    size = size or len(variances)
    left_out = min(size, LAST_RANK) // 10
    last = min(size - left_out, LAST_RANK)
    ranks = np.arange(left_out + 1.0, last + 1)
    weights = 1 / ranks / (1 / ranks).sum()
    x, y = np.log(ranks), np.log(variances[left_out:last])
    x -= weights @ x
    return float(-(weights * x) @ y / ((weights * x) @ x))


ALPHA_REQ = Metric(
    slug="alpha_req",
    place=77,
    title="Decay of the spectrum (α-ReQ)",
    label="α",
    latex=r"$\alpha$",
    symbol="α",
    sees="How steeply the variance falls from one principal direction to the next, as the exponent α of a power law.",
    blind_to=(
        "Cannot see the mean, the strongest and weakest directions, which the fit leaves out, or whether the variances follow a "
        "power law."
    ),
    help=(
        "Fitted to directions 11 to 100, or to all but the first and last tenth of fewer than 110. 0: all hold equally much. Vision "
        "encoders with α near 1 generalised best (Ghosh et al. 2022)."
    ),
    range=Range("0 and above", constant(0.0)),
    at_isotropy=AtIsotropy("0", constant(0.0), "sample"),
    unchanged_by=COVARIANCE_ONLY,
    enough=EnoughPoints(
        "100 d: up to 0.3 high, worst for an isotropic cloud; where the true α is 1, 20 d give it within 20 %",
        "falls",
        lambda d: 100 * d,
        0.3,
        reads="high",
    ),
    paper=Citation("Agrawal et al. 2022", "agrawal2022alphareq", 2022, "NeurIPS 35"),
    equation=r"\hat\alpha = -\frac{\sum_i w_i (\log i - \bar x) \log\lambda_i}{\sum_i w_i (\log i - \bar x)^2}, \quad"
    r" w_i \propto 1/i,\ \bar x = \sum_i w_i \log i,\ i = 11, \dots, 100",
    function=alpha_req,
    estimate=_alpha_req,
    minimum=3,
    minimum_d=2,
    cost="eigenvalues",
)


METRICS = (EV, EV_1, EFFECTIVE_RANK, RANKME, ALPHA_REQ)

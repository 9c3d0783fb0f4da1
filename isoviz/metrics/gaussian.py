"""Whether a cloud can be told from an isotropic Gaussian: SIGReg's statistic over all directions, in closed form, and its test.

SIGReg (Balestriero & LeCun 2025) averages the statistic of Epps & Pulley (1983) over random directions a. With the weight
exp(−t²/2) on the whole line, its integral over t is a sum of exp(−(a·(x_i − x_j))²/2), whose mean over the sphere is Kummer's
function of ‖x_i − x_j‖². So no directions need to be drawn, and the value does not change with a rotation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz.metrics.cloud import Estimate, Points, Value, answer, undefined
from isoviz.metrics.moments import COLLAPSED, centre
from isoviz.metrics.protocol import AtIsotropy, Citation, EnoughPoints, Metric, Range, constant
from isoviz.metrics.sample import Sample

Matrix = NDArray[np.float64]
_BLOCK = 100_000  # pairs in memory at a time: 0.8 MB, for several passes in the cache
_TERMS = 48  # of series whose terms fall by more than half


def epps_pulley(points: Points) -> Value:
    """Mean over all directions of the Epps–Pulley statistic of a cloud (n, d), centred and scaled to a mean variance of 1.

    n ∫ |φ̂_a(t) − exp(−t²/2)|² exp(−t²/2) dt, where φ̂_a is the empirical characteristic function along the direction a: SIGReg's
    statistic with all directions and frequencies, instead of a random draw and 17 frequencies up to 3. One factor scales all
    dimensions, so that it sees anisotropy. For Gaussian points it is about 0.58 − 0.24/d at any n; otherwise it grows with n.
    Records and `describe` have its p value (`p_value`). Exact, O(n²d). Undefined (nan) for n < 3 and where all points are equal.

    Args:
        points: (n, d), independent; a tensor result carries no gradient.
    """
    return answer("epps_pulley", points, _estimate(Sample(points)))


def _estimate(sample: Sample) -> Estimate:
    if sample.n < 3:
        return undefined(f"it needs at least 3 points, got {sample.n}")
    if sample.collapsed:
        return undefined(COLLAPSED)
    statistic = _statistic(sample)
    p = p_value(statistic, sample.n, sample.d)
    note = f"does not tell it from an isotropic Gaussian (p = {p:.2f})" if p >= 0.05 else ""
    return Estimate(statistic, note=note, p=p)


def _statistic(sample: Sample) -> float:
    assert sample.points is not None
    n, d = sample.n, sample.d
    x = centre(sample.points)[0]
    x /= np.abs(x).max()
    x *= math.sqrt(n * d / np.einsum("ij,ij->", x, x))
    squares = np.einsum("ij,ij->i", x, x)
    along = _mean_over_directions(d, 2 * float(squares.max()))
    pairs = 0.0
    step = max(1, _BLOCK // n)
    for start in range(0, n - 1, step):
        rows = x[start : start + step]
        halved = rows @ -x[start:].T  # ‖x − y‖²/2
        halved += (squares[start : start + step] / 2)[:, None]
        halved += squares[start:] / 2
        values = along(np.maximum(halved, 0.0, out=halved))
        pairs += float(values.sum() - np.tril(values[:, : len(rows)]).sum())  # each pair of distinct points once
    return _SCALE * ((n + 2 * pairs) / n - math.sqrt(2) * float(along(squares / 4).sum()) + n / math.sqrt(3))


_SCALE = math.sqrt(2 * math.pi)


def _mean_over_directions(d: int, largest: float) -> Callable[[Matrix], Matrix]:
    """s ↦ mean of exp(−s a₁²) over unit vectors a of d dimensions, which is ₁F₁(1/2; d/2; −s), for 0 <= s <= `largest`.

    A polynomial of r = 1/(1 + 2s/d) times √r: the quotient hardly varies, and not at all for large d.
    """
    if d == 1:
        return lambda s: np.exp(-s)
    least = 1 / (1 + 2 * largest / d)

    def quotient(y: Any) -> Any:
        r = least + (1 - least) * (y + 1) / 2
        return _exact_mean(d, (1 / r - 1) * d / 2) / np.sqrt(r)

    coefficients = np.polynomial.chebyshev.chebinterpolate(quotient, 64)
    coefficients = coefficients[: 1 + np.flatnonzero(np.abs(coefficients) > 1e-14 * abs(coefficients[0]))[-1]]

    def value(s: Matrix) -> Matrix:
        r = 1 / (1 + s * (2 / d))
        return np.sqrt(r) * np.polynomial.chebyshev.chebval((r - least) * (2 / (1 - least)) - 1, coefficients)

    return value


def _exact_mean(d: int, s: Matrix) -> Matrix:
    """₁F₁(1/2; d/2; −s), d >= 2, by quadrature over the angle: the density of sin θ = a₁ is proportional to cos^(d − 2) θ."""
    nodes, weights = _nodes()
    s = np.atleast_1d(np.asarray(s, dtype=np.float64))

    def integral(exponent: Matrix) -> Matrix:
        top = np.minimum(np.pi / 2, 14 / np.sqrt(d + 2 * exponent))[:, None]
        angles = top * nodes
        logs = (d - 2) * np.log(np.cos(angles)) - exponent[:, None] * np.sin(angles) ** 2
        return (np.exp(logs) @ weights) * top[:, 0]

    return integral(s) / integral(np.zeros(1))


@cache
def _nodes() -> tuple[Matrix, Matrix]:
    """Of Gauss and Legendre on [0, 1], and their weights."""
    nodes, weights = np.polynomial.legendre.leggauss(128)
    return (nodes + 1) / 2, weights / 2


def p_value(statistic: float, n: int, d: int) -> float:
    """Of the statistic of n >= 3 points in d dimensions, of the hypothesis that they are independent draws from N(μ, σ²I).

    μ and σ are unknown: the statistic depends on neither. Under the hypothesis its mean is known exactly at any n and d, and its
    variance and third cumulant asymptotically; p is that of the gamma distribution with these three (by Wilson & Hilferty's cube
    root). Of simulated Gaussian clouds, from n = 12 and for d = 1 to 768, 4 to 6 % have p < 0.05. A p far below 0.001 is right in
    its order of magnitude only.
    """
    mean, (variance, third) = _null_mean(n, d), _null_cumulants(d)
    variance *= (n - 1) / n
    shape = 4 * variance**3 / third**2
    relative = 1 + (statistic - mean) * third / (2 * variance**2)  # the gamma variable over its mean
    if relative <= 0:
        return 1.0
    z = (relative ** (1 / 3) - 1 + 1 / (9 * shape)) * 3 * math.sqrt(shape)
    return math.erfc(z / math.sqrt(2)) / 2


def _null_mean(n: int, d: int) -> float:
    """Exact: centred and scaled, Gaussian points are a uniform direction of (n − 1)d dimensions, of length √(nd)."""
    pair, single = _exact_mean((n - 1) * d, np.array([n * d, (n - 1) * d / 4.0]))
    return _SCALE * float(1 + (n - 1) * pair - math.sqrt(2) * n * single + n / math.sqrt(3))


@lru_cache(maxsize=64)
def _null_cumulants(d: int) -> tuple[float, float]:
    """Variance and third cumulant of the limit for large n.

    It is a sum of squares of a Gaussian process of direction and frequency with covariance exp(−(s² + t²)/2) (exp(stρ) − 1 − stρ −
    s²t²/(2d)), ρ = a·b; the last three terms come from φ, μ and σ. exp(stρ) has the eigenvalues Σ_j c_lj (st)^(l + 2j) on the
    spherical harmonics of degree l (Funk–Hecke), of which the three terms take away j = 0 of l = 0 and 1, and j = 1 of l = 0.
    """
    variance, third = 0.0, 0.0
    for degree in range(_TERMS):
        j = np.arange({0: 2, 1: 1}.get(degree, 0), _TERMS)
        powers = degree + 2 * j
        log_c = math.lgamma(d / 2) - powers * math.log(2) - _log_gamma(j + 1) - _log_gamma(degree + j + d / 2)
        middle = (powers[:, None] + powers) / 2  # ∫ t^2m exp(−3t²/2) dt = (2/3)^(m + 1/2) Γ(m + 1/2)
        operator = np.exp(_log_gamma(middle + 0.5) + (middle + 0.5) * math.log(2 / 3) + (log_c[:, None] + log_c) / 2)
        squared = operator @ operator
        harmonics = math.comb(degree + d - 1, degree) - (math.comb(degree + d - 3, degree - 2) if degree > 1 else 0)
        added = 2.0 * harmonics * float(squared.trace())
        variance, third = variance + added, third + 8.0 * harmonics * float((squared * operator).sum())
        if degree > 2 and added < 1e-17 * variance:
            break
    return variance, third


_log_gamma = np.vectorize(math.lgamma, otypes=[float])


METRICS = Metric(
    slug="epps_pulley",
    place=54,
    title="Epps–Pulley statistic (SIGReg)",
    label="Epps–Pulley",
    symbol="T",
    sees="How clearly the cloud can be told from an isotropic Gaussian, whose value is about 0.6 or less.",
    blind_to="Cannot see where the cloud lies or how wide it is, or whether shape, tails or clusters make the difference.",
    help=(
        "SIGReg's statistic over all directions. Where the cloud is no Gaussian, it grows in proportion to n: compare clouds of "
        "equal n. A note gives p where it is 0.05 or more."
    ),
    range=Range("0 and above", constant(0.0)),
    at_isotropy=AtIsotropy("0.58 − 0.24/d on average for a Gaussian cloud; other isotropic clouds have more"),
    unchanged_by=frozenset({"shift", "scale", "rotation", "order"}),
    enough=EnoughPoints("12 for the test to keep its level of 5 %; more points tell smaller differences", "unknown"),
    paper=Citation("Balestriero & LeCun 2025", "balestriero2025lejepa", 2025, "arXiv:2511.08544"),
    equation=r"\operatorname*{mean}_{\lVert a \rVert = 1}\ n \int \Big| \frac1n \sum_j e^{\mathrm{i} t\, a^\top y_j} - e^{-t^2/2}"
    r" \Big|^2 e^{-t^2/2}\, dt, \quad y_j = (x_j - \bar x) \sqrt{n d / \textstyle\sum_k \lVert x_k - \bar x \rVert^2}",
    function=epps_pulley,
    estimate=_estimate,
    minimum=3,
    cost="pairs",
    from_sums=False,
    independent=True,
    most=2_000,
)

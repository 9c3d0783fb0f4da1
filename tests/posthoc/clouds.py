"""Fit sets for the transforms, the awkward ones by name."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def cloud(n: int = 120, d: int = 8, seed: int = 0, mean: float = 3.0) -> NDArray[np.float64]:
    """Correlated dimensions of different spread, away from the origin."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ (rng.normal(size=(d, d)) * rng.uniform(0.3, 2.0, size=d)) + mean


def with_constant(values: NDArray[np.float64]) -> NDArray[np.float64]:
    values = values.copy()
    values[:, 2] = 0.1
    return values


def isobn_by_loops(cov: NDArray[np.float64], beta: float, eps: float, form: str = "paper") -> NDArray[np.float64]:
    """The factor of each dimension: IsoBN's equations 4-7 one number at a time, equation 7 with its root."""
    d = len(cov)
    sigma = [cov[i][i] ** 0.5 for i in range(d)]
    theta = []
    for i in range(d):
        gamma = sum((cov[i][j] / (sigma[i] * sigma[j])) ** 2 for j in range(d)) / (d if form == "code" else 1)
        theta.append((sigma[i] * gamma + eps) ** -beta)
    guard = eps if form == "code" else 0
    root = (sum(s**2 for s in sigma) / (guard + sum((s * t) ** 2 for s, t in zip(sigma, theta, strict=True)))) ** 0.5
    return np.array([t * root for t in theta])


AWKWARD: dict[str, NDArray[np.float64]] = {
    "fewer points than dimensions": cloud(5, 12),
    "two points": cloud(2, 6),
    "one dimension": cloud(30, 1),
    "constant dimension": with_constant(cloud()),
    "constant cloud": np.full((9, 5), 0.1),
    "constant cloud at zero": np.zeros((9, 5)),
    "repeated points": np.repeat(cloud(12, 5), 3, axis=0),
    "low rank": cloud(60, 2) @ np.random.default_rng(1).normal(size=(2, 7)),
    "tiny": cloud() * 1e-90,
    "below the floor": cloud() * 1e-200,
    "huge": cloud() * 1e90,
    "spread over 30 powers of ten": cloud(100, 6) * 10.0 ** np.arange(-15, 15, 5),
    "rounding around a mean": 1e6 + cloud() * 1e-10,
}

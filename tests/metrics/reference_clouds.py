"""Clouds and the papers' own route through eigenvalues, to hold the closed forms against."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def spread_cloud(n: int, d: int, seed: int = 0) -> NDArray[np.float64]:
    """Correlated dimensions of very different spread, far from the origin."""
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(d, d)) * rng.uniform(0.05, 3.0, size=d)
    return rng.normal(size=(n, d)) @ mixing + 10.0


def isoscore_by_eigenvalues(cov: NDArray[np.float64]) -> float:
    """Paper 001, Algorithm 1, step by step: eigenvalues, their normalisation, defect, φ, ι."""
    d = len(cov)
    values = np.linalg.eigvalsh(cov)
    normalised = np.sqrt(d) * values / np.linalg.norm(values)
    defect = np.linalg.norm(normalised - 1.0) / np.sqrt(2.0 * (d - np.sqrt(d)))
    phi = (d - defect**2 * (d - np.sqrt(d))) ** 2 / d**2
    return float((d * phi - 1.0) / (d - 1.0))


REFERENCE_CLOUDS: dict[str, NDArray[np.float64]] = {
    "tall": spread_cloud(300, 24),
    "square": spread_cloud(24, 24, 1),
    "wide, direct form": spread_cloud(20, 32, 2),
    "wide, Gram form": spread_cloud(12, 32, 3),
    "two dimensions": spread_cloud(50, 2, 4),
    "two points": spread_cloud(2, 9, 5),
    "low rank": np.random.default_rng(6).normal(size=(80, 3)) @ np.random.default_rng(7).normal(size=(3, 16)),
    "rank one": np.outer(np.random.default_rng(8).normal(size=40), np.arange(1.0, 9.0)),
    "rogue dimension": np.random.default_rng(9).normal(size=(200, 12)) * np.array([1000.0] + [1.0] * 11),
    "repeated points": np.repeat(spread_cloud(20, 6, 10), 3, axis=0),
    "regular cross": np.concatenate([np.eye(7), -np.eye(7)]),
}

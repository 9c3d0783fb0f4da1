"""Clouds, the papers' own route through eigenvalues, and how to ask a metric of the catalogue for its value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz.metrics.protocol import Metric


def spread_cloud(n: int, d: int, seed: int = 0) -> NDArray[np.float64]:
    """Correlated dimensions of very different spread, far from the origin."""
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(d, d)) * rng.uniform(0.05, 3.0, size=d)
    return rng.normal(size=(n, d)) @ mixing + 10.0


def equal_but_for_rounding(n: int, d: int) -> NDArray[np.float32]:
    """Equal points in single precision, of whose numbers about half lie one step higher."""
    rng = np.random.default_rng(0)
    point = rng.normal(size=d).astype(np.float32)
    above = np.nextafter(point, np.float32(np.inf))
    return np.where(rng.random((n, d)) < 0.5, point, above)


def equally_far(n: int, d: int) -> NDArray[np.float64]:
    """The corners of a regular simplex, n <= d, which rounding puts at slightly different distances."""
    rng = np.random.default_rng(0)
    return np.linalg.qr(rng.normal(size=(d, d)))[0][:n] * 3.0 + rng.normal(size=d)


def isoscore_by_eigenvalues(cov: NDArray[np.float64]) -> float:
    """I-STAR, Algorithm 1, step by step: eigenvalues, their normalisation, defect, φ, ι."""
    d = len(cov)
    values = np.linalg.eigvalsh(cov)
    normalised = np.sqrt(d) * values / np.linalg.norm(values)
    defect = np.linalg.norm(normalised - 1.0) / np.sqrt(2.0 * (d - np.sqrt(d)))
    phi = (d - defect**2 * (d - np.sqrt(d))) ** 2 / d**2
    return float((d * phi - 1.0) / (d - 1.0))


def value_and_gradient(function: Callable[[Any], Any], points: Any) -> tuple[Any, Any]:
    """A function of a tensor, and its gradient there."""
    leaf = points.clone().requires_grad_()
    value = function(leaf)
    value.backward()
    return value.detach(), leaf.grad


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


def cross(d: int) -> NDArray[np.float64]:
    """±e_i: 2d points whose covariance is exactly a multiple of the identity."""
    return np.concatenate([np.eye(d), -np.eye(d)])


def whitened(
    n: int, d: int, seed: int = 0, draw: Callable[[Any, tuple[int, int]], NDArray[np.float64]] | None = None
) -> NDArray[np.float64]:
    """n random points with mean 0 and covariance exactly the identity, up to round-off."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) if draw is None else draw(rng, (n, d))
    left, _, right = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    return left @ right * np.sqrt(n - 1)


def extra(metric: Metric, cov: Any, points: Any, rows: NDArray[np.intp] | None = None) -> dict[str, Any]:
    """The arguments of a metric besides the points: IsoScore*'s `cov`; partners, groups of 2 points (the last of 2 or 3) and texts of 3.

    Args:
        points: all of them.
        rows: of them, those that the metric gets; None for all.
    """
    n = len(points)
    rows = np.arange(n) if rows is None else rows
    every = {
        "shrinkage_cov": cov,
        "zeta": 0.2,
        "partners": points[(n - 1 - rows).tolist()],
        "groups": np.minimum(rows // 2, n // 2 - 1),
        "texts": rows // 3,
    }
    return {name: every[name] for name in metric.inputs}


def value_of(
    metric: Metric, points: NDArray[np.float64], cov: Any = None, rows: NDArray[np.intp] | None = None
) -> NDArray[np.float64]:
    """Of a metric of the catalogue on these rows; `cov` is the shrinkage matrix of IsoScore*, the identity if not given."""
    cov = np.eye(points.shape[1]) if cov is None else cov
    return np.asarray(metric.evaluate(points if rows is None else points[rows], **extra(metric, cov, points, rows)))


def _oracle_clouds() -> dict[str, NDArray[np.float64]]:
    rng = np.random.default_rng(20)
    paper = np.sqrt(np.array([10.0, 6.0, 4.0, 4.0] + [1.0] * 124))
    return {
        "isotropic Gaussian": rng.normal(size=(120, 6)),
        "I-STAR's diagonal": rng.normal(size=(200, 128)) * paper,
        "low rank": rng.normal(size=(60, 3)) @ rng.normal(size=(3, 12)) + 0.5,
        "fewer points than dimensions": rng.normal(size=(12, 30)) * rng.uniform(0.2, 3, size=30) + 0.3,
        "rogue dimension": rng.normal(size=(80, 8)) * np.array([1.0] * 7 + [1000.0]) + 0.2,
        "heavy tails": rng.standard_t(3, size=(100, 6)) * np.arange(1, 7),
        "duplicates": np.concatenate([np.repeat(spread_cloud(20, 6, 21), 3, axis=0), spread_cloud(25, 6, 22)]),
        "two dimensions": rng.normal(size=(50, 2)) * [3.0, 1.0] + [1.0, -0.2],
        "mean of 10⁴": rng.normal(size=(60, 5)) * [4.0, 2.0, 1.0, 1.0, 0.5] + 1e4,
    }


ORACLE_CLOUDS = _oracle_clouds()

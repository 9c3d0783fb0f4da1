"""Clouds at the edge of what measures can take, the same for the engine and for the page without a server."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Cloud = NDArray[np.floating]


def hard_clouds() -> dict[str, Cloud]:
    """Name → (n, d), in the number type that a file would have."""
    rng = np.random.default_rng(11)
    spread = np.linspace(2.0, 0.2, 24)
    points = rng.normal(size=(300, 24)) * spread + 0.5
    line = np.outer(1 + 0.1 * rng.random(80), rng.normal(size=8) * 40)
    factors = rng.normal(size=(400, 20)) @ rng.normal(size=(20, 48))
    near, zeros, dead, repeated, outlier = (points.copy() for _ in range(5))
    near[200:] = near[:100] * (1 + 1e-7 * rng.normal(size=(100, 24)))
    zeros[::3] = 0
    dead[:, [3, 11]] = 0
    dead[:, 17] = 1e-33 * rng.normal(size=300)
    repeated[40:] = repeated[rng.integers(0, 40, 260)]
    outlier[0] *= 1e4
    few = rng.normal(size=(20, 64))
    return {
        "collapsed": line + 1e-6 * rng.normal(size=line.shape),
        "collapsed, single precision": (line + 1e-6 * rng.normal(size=line.shape)).astype(np.float32),
        "constant": np.full((300, 7), 0.1),
        "constant and its rounding": (500 + 3e-5 * rng.normal(size=(1_000, 16))).astype(np.float32)[:400],
        "constant with noise": 0.5 + 3e-5 * rng.normal(size=(300, 16)),
        "low rank": factors.astype(np.float32),
        "low rank, double precision": factors,
        "zero rows": zeros,
        "all zero": np.zeros((30, 6)),
        "near copies": near,
        "near copies, half precision": np.concatenate([points, points.astype(np.float16)]).astype(np.float32),
        "repeated rows": repeated,
        "four distinct rows": np.tile(points[:4], (60, 1)),
        "dead dimensions": dead.astype(np.float32),
        "fewer rows than dimensions": few,
        "far fewer rows than dimensions": few[:9],
        "two rows": points[:2],
        "seven rows": points[:7, :3],
        "eleven rows": points[:11, :4],
        "one direction": np.outer(rng.normal(size=60), rng.normal(size=5)),
        "one varying dimension": np.stack([rng.normal(size=60), np.zeros(60), np.ones(60)], axis=1),
        "huge": points * 1e60,
        "tiny": points * 1e-60,
        "far from the origin": points + 1e6,
        "an outlier": outlier,
        "binary codes": np.sign(rng.normal(size=(200, 16))),
        "one-hot rows": np.eye(12)[rng.integers(0, 12, 200)] * 3.0,
        "integers": rng.integers(-3, 4, size=(150, 5)).astype(np.int16),
    }

"""Exact nearest neighbours of a point in the full space, by distance or by direction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoviz.errors import InputError

Metric = Literal["cosine", "euclidean"]
METRICS: Final[tuple[Metric, ...]] = ("cosine", "euclidean")
_BLOCK: Final = 4_096


@dataclass(frozen=True)
class Neighbours:
    """The nearest points, nearest first.

    Attributes:
        places: (k,) int64, indices in the cloud.
        values: (k,) float64, cosine (largest first) or distance (smallest first).
    """

    places: NDArray[np.int64]
    values: NDArray[np.float64]


def nearest(
    points: NDArray[np.floating], to: ArrayLike, *, metric: Metric = "cosine", k: int = 10, leave_out: int | None = None
) -> Neighbours:
    """The k points of a cloud (n, d) nearest to one point (d,).

    Computed in float64, block by block; ties are in order of index. Zero vectors have no direction: for the cosine they are
    left out, and a zero `to` has no neighbours.

    Args:
        leave_out: index of a point to exclude, such as `to` itself if it is in the cloud.

    Raises:
        InputError: an unknown metric, or a point with another number of dimensions.
    """
    if metric not in METRICS:
        raise InputError(f"metric: no metric '{metric}' (allowed: {', '.join(METRICS)})", field="metric")
    query = np.asarray(to, dtype=np.float64)
    if query.shape != points.shape[1:]:
        raise InputError(f"to: expected a point of {points.shape[1]} dimensions (got shape {query.shape})", field="to")
    distances = np.empty(len(points))
    for start in range(0, len(points), _BLOCK):
        block = points[start : start + _BLOCK].astype(np.float64)
        if metric == "euclidean":
            distances[start : start + _BLOCK] = np.linalg.norm(block - query, axis=1)
        else:
            lengths = np.linalg.norm(block, axis=1) * np.linalg.norm(query)
            with np.errstate(divide="ignore", invalid="ignore"):
                distances[start : start + _BLOCK] = np.where(lengths > 0, -(block @ query) / lengths, np.inf)
    if leave_out is not None:
        distances[leave_out] = np.inf
    order = np.argsort(distances, kind="stable")[: max(0, k)]
    order = order[np.isfinite(distances[order])]
    return Neighbours(order, np.clip(-distances[order], -1.0, 1.0) if metric == "cosine" else distances[order])

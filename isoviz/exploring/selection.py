"""Points of a map inside a drawn line."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoviz.errors import InputError

MOST_CORNERS = 40
"""Most corners of a line: enough for a hand-drawn lasso, and short enough for an address."""


def inside(points: ArrayLike, corners: ArrayLike) -> NDArray[np.bool_]:
    """(n,) mask of the points (n, 2) inside the closed polygon with these corners (m, 2), m >= 3.

    Uses the even-odd rule: regions enclosed twice are outside. A point on an edge is inside only on left and lower edges, so that
    exactly one of two adjacent polygons contains it.

    Raises:
        InputError: fewer than three corners, or coordinates that are not finite pairs.
    """
    x, y = _pairs("points", points).T
    polygon = _pairs("selection", corners)
    if len(polygon) < 3:
        raise InputError(f"selection: needs at least 3 corners (got {len(polygon)})", field="selection")
    enclosed = np.zeros(len(x), dtype=bool)
    for (x0, y0), (x1, y1) in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        crosses = (y0 <= y) != (y1 <= y)  # the edge passes the point's height
        if crosses.any():
            at = x0 + (y[crosses] - y0) * (x1 - x0) / (y1 - y0)
            enclosed[crosses] ^= x[crosses] < at
    return enclosed


def shortened(corners: ArrayLike, most: int = MOST_CORNERS) -> list[tuple[float, float]]:
    """The polygon with at most `most` corners, without those that span the smallest triangles, rounded to three digits.

    Selections use the shortened line, so that the address restores the same points.
    """
    polygon = _pairs("selection", corners)
    while len(polygon) > max(3, most):
        before, after = np.roll(polygon, 1, axis=0) - polygon, np.roll(polygon, -1, axis=0) - polygon
        polygon = np.delete(polygon, np.argmin(np.abs(before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0])), axis=0)
    span = float(np.ptp(polygon, axis=0).max())
    digits = 3 - int(np.floor(np.log10(span))) if span > 0 else 3
    return [(round(float(x), digits), round(float(y), digits)) for x, y in polygon]


def written(corners: Sequence[tuple[float, float]]) -> str:
    """The corners as text for an address: `x,y;x,y`."""
    return ";".join(f"{x:g},{y:g}" for x, y in corners)


def read(text: str) -> list[tuple[float, float]] | None:
    """The inverse of `written`; None for other text."""
    try:
        pairs = [tuple(map(float, pair.split(","))) for pair in text.split(";")]
        array = _pairs("selection", pairs)
    except (ValueError, TypeError):
        return None
    return [(float(x), float(y)) for x, y in array] if 3 <= len(array) <= 4 * MOST_CORNERS else None


def _pairs(name: str, coordinates: ArrayLike) -> NDArray[np.float64]:
    pairs = np.asarray(coordinates, dtype=np.float64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.isfinite(pairs).all():
        raise InputError(f"{name}: expected finite pairs of coordinates (got shape {pairs.shape})", field=name)
    return pairs

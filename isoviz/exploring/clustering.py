"""|ρ| of the dimensions of a cloud, and the order that places correlated ones side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isoviz import metrics

if TYPE_CHECKING:
    from isoviz.exploring.results import ViewResult


def points_in(view: ViewResult, layer: int, pooling: str) -> int:
    """Number of points behind the correlation of `clustered`."""
    stored = view.stored_points(layer, pooling)
    if "figure_points" in view.facts:
        return int(view.facts["figure_points"])
    if layer != view.depth:
        return stored
    n = view.entry(layer, pooling).n
    return int(view.facts.get("token_sample", stored)) if pooling == "tokens" else n


def clustered(view: ViewResult, layer: int, pooling: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """|ρ| · 255 (d, d), rows and columns in `order`, and the order (d,).

    For the last layer, it was computed with the view. For other layers, it is computed now from the stored points, in about a second
    for 768 dimensions; if those are a sample (or tokens), the correlation is the sample's.
    """
    cells, order = view.array(layer, pooling, "correlation"), view.array(layer, pooling, "order")
    if cells is not None and order is not None:
        return cells, order.astype(np.int64)
    matrix = np.asarray(metrics.abs_correlation(view.points(layer, pooling)))
    found = np.asarray(metrics.correlation_order(matrix))
    return np.rint(np.nan_to_num(matrix[np.ix_(found, found)]) * 255).astype(np.uint8), found

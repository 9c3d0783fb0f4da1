"""The mean of each dimension of a cloud, on an axis that is cut where outlier dimensions would hide all others. No Streamlit here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from dashboard import theme
from dashboard.explore.plots import MARK, pooling_colour

DWARFS = 3.0
"""An outlier's mean that is so many times as far from 0 as all others lies beyond the axis."""

Means = tuple[NDArray[Any], Sequence[int]]
"""The mean of each dimension (d,), and which of them are outliers."""


def beyond_axis(clouds: Sequence[Means]) -> tuple[tuple[float, float] | None, list[list[int]]]:
    """Where the axis of mean activations is cut, and which outlier dimensions of each cloud lie beyond.

    It is cut where an outlier is at least `DWARFS` times as far from 0 as everything that is not beyond with it, in figures of
    several clouds by the same range. None for an axis that holds everything.
    """
    kept, beyond = [], []
    for mean, outliers in clouds:
        size = np.abs(np.asarray(mean, dtype=np.float64))
        order = sorted(outliers, key=lambda number: -size[number])
        others = np.delete(size, order)
        # what stays in, were the first so many of them beyond: the next outlier, or the widest of all other dimensions
        rest = [max([*size[order[count:]], *others], default=0.0) for count in range(1, len(order) + 1)]
        cut = [count for count, stays in enumerate(rest, 1) if stays > 0 and size[order[count - 1]] >= DWARFS * stays]
        beyond.append(order[: max(cut, default=0)])
        kept.append(np.delete(np.asarray(mean, dtype=np.float64), beyond[-1]))
    if not any(beyond):
        return None, beyond
    low, high = min(0.0, *(part.min() for part in kept)), max(0.0, *(part.max() for part in kept))
    room = 0.2 * (high - low)  # for the arrows and numbers of what lies beyond
    span = (float(low - room), float(high + room))
    # another cloud may need an axis that has room for this one's outliers
    outside = [
        [number for number in found if not span[0] <= mean[number] <= span[1]]
        for (mean, _), found in zip(clouds, beyond, strict=True)
    ]
    return (span, outside) if any(outside) else (None, outside)


def figure(mean: NDArray[Any], outliers: Sequence[int], pooling: str, beside: Sequence[Means] = ()) -> go.Figure:
    """The mean of each dimension (d,), outlier dimensions marked with their number; see `beyond_axis` for where it is cut.

    Args:
        beside: means and outliers of other clouds whose figures have the same axis.
    """
    values = np.asarray(mean, dtype=np.float64)
    span, (beyond, *_) = beyond_axis([(mean, outliers), *beside])
    drawn = go.Figure()
    drawn.add_bar(
        x=list(range(len(values))),
        y=values.tolist(),
        marker={"color": pooling_colour(pooling), "line": {"width": 0}},
        name="mean",
        hovertemplate="dimension %{x}: %{y:.4g}<extra></extra>",
    )
    inside = [number for number in outliers if number not in beyond]
    if inside:
        drawn.add_scatter(
            x=inside,
            y=[float(values[number]) for number in inside],
            mode="markers+text",
            text=[str(number) for number in inside],
            textposition=["top center" if values[number] >= 0 else "bottom center" for number in inside],
            marker={"symbol": "x", "size": 9, "color": MARK},
            cliponaxis=False,
            name="outlier dimensions",
            hovertemplate="dimension %{x}: %{y:.4g}, an outlier<extra></extra>",
        )
    if span is not None and beyond:
        up = [bool(values[number] > 0) for number in beyond]
        ends = [end - 0.03 * side * (span[1] - span[0]) for end, side in ((span[1], 1), (span[0], -1))]
        drawn.add_scatter(
            x=list(beyond),
            y=[ends[0] if above else ends[1] for above in up],
            mode="markers+text",
            text=[named(values, number) for number in beyond],
            textposition=[_beside(number, len(values), above) for number, above in zip(beyond, up, strict=True)],
            customdata=[float(values[number]) for number in beyond],
            marker={
                "symbol": ["triangle-up" if above else "triangle-down" for above in up],
                "size": 11,
                "color": MARK,
            },
            cliponaxis=False,
            name="outliers beyond the axis",
            hovertemplate="dimension %{x}: %{customdata:.4g}, beyond the axis<extra></extra>",
        )
    drawn.update_layout(
        theme.figure_layout(
            height=320,
            xaxis={"title": {"text": "dimension"}},
            yaxis={
                "title": {"text": "mean activation" if span is None else "mean activation (axis cut)"},
                "range": None if span is None else list(span),
            },
            bargap=0,
            showlegend=bool(outliers),
        )
    )
    return drawn


def named(mean: NDArray[Any], number: int, between: str = ": ") -> str:
    """A dimension with its mean, as it is written beside a mark: `308: −9.13`."""
    return f"{number}{between}{float(mean[number]):.3g}".replace("-", "−")


def _beside(number: int, count: int, above: bool) -> str:
    """Where the text of a mark at the end of the axis has room: towards the rest, beside its own bar, and not over the sides."""
    return f"{'bottom' if above else 'top'} {'right' if number < count / 2 else 'left'}"

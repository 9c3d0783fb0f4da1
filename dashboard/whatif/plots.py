"""The figures of the What-if page. No Streamlit here: arrays in, Plotly figures out."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from dashboard.shared import theme
from isoviz.readouts.cosines import BINS, Cosines
from isoviz.whatif.curves import CurvePoint

BEFORE, AFTER = "#7f8691", theme.PALETTE[0]


def spectrum(before: NDArray[np.float64], after: NDArray[np.float64] | None, d: int) -> go.Figure:
    """EV_k before and after, and of a perfectly isotropic cloud in the d dimensions of the image."""
    figure = go.Figure()
    longest = max(len(before), 0 if after is None else len(after))
    count = np.arange(1, longest + 1)
    hover = "EV_%{x} = %{y:.4f}"
    isotropic = np.minimum(count / d, 1)
    _line(figure, count, isotropic, "isotropic, k/d", colour=BEFORE, dash="dot", width=1.5, hoverinfo="skip")
    _line(figure, count[: len(before)], before, "no transform", colour=BEFORE, dash="dash", hovertemplate=hover)
    if after is not None:
        _line(figure, count[: len(after)], after, "after", colour=AFTER, hovertemplate=hover)
    return theme.titled(figure, "k", "EV_k", yaxis_range=[0, 1.02])


def _line(
    figure: go.Figure,
    x: NDArray[Any],
    y: NDArray[Any],
    name: str,
    *,
    colour: str,
    dash: str = "solid",
    width: float = 2.5,
    shape: str = "linear",
    **hover: str,
) -> None:
    line = {"color": colour, "dash": dash, "width": width, "shape": shape}
    figure.add_scatter(x=x.tolist(), y=y.tolist(), mode="lines", line=line, name=name, **hover)


def cosines(before: Cosines, after: Cosines | None) -> go.Figure:
    """Shares of random pairs (solid) and of nearest rows (dotted) by their cosine."""
    figure = go.Figure()
    middle = (BINS[1:] + BINS[:-1]) / 2
    for name, shown, colour in (("no transform", before, BEFORE), ("after", after, AFTER)):
        if shown is None:
            continue
        for label, values, dash in (("random pairs", shown.pairs, "solid"), ("nearest row", shown.nearest, "dot")):
            share = np.histogram(values, BINS)[0] / max(1, len(values))
            hover = "cosine %{x:.2f}: %{y:.1%}"
            _line(figure, middle, share, f"{label}, {name}", colour=colour, dash=dash, shape="hvh", hovertemplate=hover)
    axes = {"xaxis_range": [-1, 1], "yaxis_tickformat": ".0%", "yaxis_rangemode": "tozero"}
    return theme.titled(figure, "cosine", "share", height=300, **axes)


def curve(points: Sequence[CurvePoint], parameter: str, readout: str, current: float | None) -> go.Figure:
    """A read-out over a parameter above, IsoScore below. Values are evenly spaced, because grids may be linear or logarithmic."""
    figure = go.Figure()
    names = [f"{point.value:g}" for point in points]
    readouts = [(point.readout, point.change.value, (point.change.low, point.change.high)) for point in points]
    scores = [(point.isoscore, point.isoscore, (point.isoscore_low, point.isoscore_high)) for point in points]
    for title, axis, measured, colour in (
        (readout, "y", readouts, AFTER),
        ("IsoScore", "y2", scores, theme.PALETTE[1]),
    ):
        values, middles, ends = zip(*measured, strict=True)
        figure.add_scatter(
            x=names,
            y=values,
            yaxis=axis,
            mode="lines+markers",
            line={"color": colour, "width": 2},
            marker={"size": [11 if point.value == current else 7 for point in points]},
            error_y=theme.error_bars(middles, ends),
            name=title,
            hovertemplate=f"{escape(parameter)} = %{{x}}<br>{escape(title)} %{{y:.4f}}<extra></extra>",
        )
    defined = [point for point in points if point.readout is not None and point.change.value is not None]
    if defined:
        baseline = defined[0].readout - defined[0].change.value  # type: ignore[operator]
        figure.add_scatter(
            x=names,
            y=[baseline] * len(names),
            mode="lines",
            line={"color": BEFORE, "dash": "dash", "width": 1.5},
            name="no transform",
            hovertemplate="no transform: %{y:.4f}<extra></extra>",
        )
    below = {"title": {"text": "IsoScore"}, "domain": [0.0, 0.38], "rangemode": "tozero"}
    axes = {"xaxis_type": "category", "xaxis_anchor": "y2", "yaxis_domain": [0.46, 1.0], "yaxis2": below}
    return theme.titled(figure, parameter, readout, height=440, **axes)

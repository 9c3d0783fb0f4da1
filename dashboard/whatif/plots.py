"""The figures of the What-if page. No Streamlit here: arrays in, Plotly figures out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from dashboard.shared import theme, wording
from isoviz.metrics.cloud import draw
from isoviz.readouts.cosines import BINS, Cosines
from isoviz.whatif.curves import CurvePoint

BEFORE, AFTER = "#7f8691", theme.PALETTE[0]
DRAWN = 1_500
"""Most points drawn on a map: a random sample, the same for both maps."""

_PARTS, _TO_A_PART = 12, 50
"""Number of parts in which each class of a map is drawn, alternating with other classes so that none covers another; fewer for
small classes."""

_SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "x", "star", "pentagon")


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
    figure.update_layout(
        theme.figure_layout(
            height=320,
            xaxis={"title": {"text": "k"}},
            yaxis={"title": {"text": "EV_k"}, "range": [0, 1.02]},
            showlegend=True,
        )
    )
    return figure


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


def cloud_map(
    places: NDArray[np.float32],
    shares: tuple[float, float],
    labels: NDArray[np.generic],
    names: Sequence[str],
    texts: Sequence[str],
) -> go.Figure:
    """The two strongest principal components of a cloud, one mark per validation row.

    Args:
        places: (n, 2) coordinates.
        shares: shares of the variance, for the axis titles.
        labels: (n,) class codes, or numbers that become a colour.
        names: names of the classes; empty for numbers.
        texts: texts of the rows, shown on hover.
    """
    figure = go.Figure()
    rows = draw(len(places), DRAWN)
    kind = go.Scattergl if len(rows) > 1_000 else go.Scatter
    groups = [(name, rows[labels[rows] == code]) for code, name in enumerate(names)] or [("", rows)]
    *colours, _ = theme.POINT_PALETTES["light"]  # the browser substitutes the dark palette
    for number, name, first, members in _in_turn(groups):
        marker = {"size": 6, "opacity": 0.85, "symbol": _SYMBOLS[number % len(_SYMBOLS)]}
        if names:
            marker["color"] = colours[number % len(colours)]
        else:
            marker |= {"color": labels[members].tolist(), "coloraxis": "coloraxis"}
        figure.add_trace(
            kind(
                x=places[members, 0].tolist(),
                y=places[members, 1].tolist(),
                mode="markers",
                marker=marker,
                name=escape(name),
                legendgroup=escape(name),
                showlegend=bool(names) and first,
                customdata=[escape(wording.cut(texts[row])) for row in members],
                hovertemplate="%{customdata}<extra>" + escape(name) + "</extra>",
            )
        )
    figure.update_layout(
        theme.figure_layout(
            height=360,
            xaxis={"title": {"text": f"component 1 ({100 * shares[0]:.0f} % of the variance)"}},
            yaxis={
                "title": {"text": f"component 2 ({100 * shares[1]:.0f} %)"},
                "scaleanchor": "x",
                "scaleratio": 1,
            },
            showlegend=bool(names),
        )
    )
    if not names:
        bar = {"title": {"text": "label"}, "thickness": 12, "outlinewidth": 0}
        figure.update_layout(coloraxis={"colorscale": theme.POINT_SCALES["light"], "colorbar": bar})
    return figure


def _in_turn(groups: Sequence[tuple[str, NDArray[np.int64]]]) -> Iterator[tuple[int, str, bool, NDArray[np.int64]]]:
    """For each trace: number and name of a group, whether it is the group's first trace, and its rows. Deterministic random order."""
    turns = max(1, min(_PARTS, sum(len(rows) for _, rows in groups) // _TO_A_PART))
    generator = np.random.default_rng(0)
    parts = [np.array_split(generator.permutation(rows), turns) for _, rows in groups]
    for turn in range(turns):
        for number, (name, _) in enumerate(groups):
            yield number, name, turn == 0, parts[number][turn]


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
    figure.update_layout(
        theme.figure_layout(
            height=300,
            xaxis={"title": {"text": "cosine"}, "range": [-1, 1]},
            yaxis={"title": {"text": "share"}, "tickformat": ".0%", "rangemode": "tozero"},
            showlegend=True,
        )
    )
    return figure


def curve(points: Sequence[CurvePoint], parameter: str, readout: str, current: float | None) -> go.Figure:
    """A read-out over a parameter above, IsoScore below. Values are evenly spaced, because grids may be linear or logarithmic."""
    figure = go.Figure()
    names = [f"{point.value:g}" for point in points]
    readouts = [(point.readout, point.change.value, point.change.low, point.change.high) for point in points]
    scores = [(point.isoscore, point.isoscore, point.isoscore_low, point.isoscore_high) for point in points]
    for title, axis, measured, colour in (
        (readout, "y", readouts, AFTER),
        ("IsoScore", "y2", scores, theme.PALETTE[1]),
    ):
        values, middles, lows, highs = np.array(measured, dtype=float).T
        figure.add_scatter(
            x=names,
            y=_defined(values),
            yaxis=axis,
            mode="lines+markers",
            line={"color": colour, "width": 2},
            marker={"size": [11 if point.value == current else 7 for point in points]},
            error_y={
                "type": "data",
                "symmetric": False,
                "array": _defined(highs - middles),
                "arrayminus": _defined(middles - lows),
                "thickness": 1.2,
                "width": 4,
            },
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
    figure.update_layout(
        theme.figure_layout(
            height=440,
            xaxis={"title": {"text": parameter}, "type": "category", "anchor": "y2"},
            yaxis={"title": {"text": readout}, "domain": [0.46, 1.0]},
            yaxis2={"title": {"text": "IsoScore"}, "domain": [0.0, 0.38], "rangemode": "tozero"},
            showlegend=True,
        )
    )
    return figure


def _defined(values: NDArray[np.float64]) -> list[float | None]:
    """None for each value that is not defined."""
    return [None if np.isnan(value) else float(value) for value in values]

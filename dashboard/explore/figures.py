"""The figures of Explore. No Streamlit here: arrays and entries in, Plotly figures out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from dashboard.explore.numbers import points_of, value
from dashboard.shared import theme
from dashboard.shared.explanations import Explanation
from isoviz import metrics
from isoviz.metrics.record import CloudRecord

SIGMA_HISTOGRAM = Explanation(
    title="Spread of the dimensions",
    reading=(
        "How many dimensions have which standard deviation, on a log axis; a separate bar counts those that never "
        "vary. Dimensions far to the right of the others hold most of the variance."
    ),
    formula=r"\sigma_j = \sqrt{\tfrac1n \sum_i (x_{ij} - \bar x_j)^2}",
    paper="Zhou et al. 2021 (IsoBN), figure 1.",
)

MEAN_ACTIVATION = Explanation(
    title="Mean activation",
    reading=(
        "The mean of the cloud in each dimension. A cross marks a dimension whose mean is more than three "
        "standard deviations from the average of all means: a few such dimensions can determine the mean cosine."
    ),
    formula=r"\bar x_j = \tfrac1n \sum_i x_{ij}, \quad |\bar x_j - m| > 3 s",
    paper="Rudman & Eickhoff 2024, figure 4; the rule of three: Kovaleva et al. 2021.",
)

COSINE_HISTOGRAM = Explanation(
    title="Cosines of pairs",
    reading=(
        "How similar two points are in direction, over pairs of points; 0 means unrelated directions. A peak near "
        "1 means that the cloud lies far from the origin, not that its shape is uneven."
    ),
    formula=r"\cos(x_i, x_j) = \frac{x_i \cdot x_j}{\lVert x_i \rVert \, \lVert x_j \rVert}",
    paper="Ethayarajh 2019.",
)

OUTPUT_MATRIX = Explanation(
    title="Output matrix",
    reading=(
        "The matrix that turns a vector into scores. Z(v) sums the scores of all its rows for a direction v; I₁ "
        "and I₂ say how even Z is over its principal directions (1 and 0: perfectly even). Both depend on scale: "
        "short rows alone make them look isotropic, so read them beside ‖w‖, or at unit scale. The values "
        "published with isotropy calibration use another convention: the rows of the matrix of eigenvectors, and "
        "no division by |V|. As defined, I₂ is at most (1 − I₁)/(2√I₁)."
    ),
    formula=(
        r"Z(v) = \sum_i e^{v^\top w_i}, \quad I_1 = \frac{\min_v Z}{\max_v Z}, \quad "
        r"I_2 = \sqrt{\frac{\sum_v (Z(v) - \bar Z)^2}{|V| \, \bar Z^2}}"
    ),
    paper="Arora et al. 2016; Wang et al. 2020; Ding et al. 2022 (isotropy calibration).",
)

MEAN_NORM = Explanation(
    title="Length of the mean vector",
    reading=(
        "How far the centre of the cloud lies from the origin, in the units of the activations. It says nothing "
        "about the cloud's shape, but largely determines the mean cosine."
    ),
    formula=r"\lVert \bar x \rVert = \sqrt{\textstyle\sum_j \bar x_j^2}",
    paper="Mu & Viswanath 2018 (All-but-the-Top), who found it large for word vectors.",
)

ISOSCORE_STAR = Explanation(
    title="IsoScore*",
    reading=(
        "The tokens of each layer, mixed at ζ = 0.2 with Σ_S: the covariance of that layer's tokens in rows of "
        "the training split, at most as many as the view reads, sampled with its seed and encoded in evaluation "
        "mode (so for a view of the whole training split, IsoScore* equals IsoScore). All layers together, with "
        "Σ_S of all their training tokens, give the value that compares runs; a run samples its own rows, and "
        "uses the decoder of an encoder-decoder."
    ),
    formula=r"\iota^* = \text{IsoScore}(\Sigma_\zeta), \quad \Sigma_\zeta = (1 - \zeta)\,\Sigma_X + \zeta\,\Sigma_S",
    paper="Rudman & Eickhoff 2024 (I-STAR), algorithm 1.",
)

POOLING_TITLES = {
    "cls": "first token [CLS]",
    "mean": "mean of the tokens",
    "tokens": "every token",
    "last": "last token",
    "sentence": "sentence vector",
}
_STYLES = {
    "cls": ("circle", "solid"),
    "mean": ("square", "dash"),
    "tokens": ("diamond", "dot"),
    "last": ("circle", "solid"),
    "sentence": ("star", "solid"),
}
_COLOURS = dict(zip(POOLING_TITLES, theme.PALETTE, strict=False))
GREY = "rgba(127,134,145,0.9)"
_FAINT = "rgba(127,134,145,0.6)"
_MEAN_LINE = {"color": theme.MARK, "dash": "dash", "width": 2}
_BINS = 40
_LOWEST = 1e-10
"""Smaller standard deviations are counted in this bin, as in IsoBN's figure 1."""


def pooling_colour(pooling: str) -> str:
    """A pooling's colour in all figures of Explore."""
    return _COLOURS.get(pooling, theme.PALETTE[-1])


def layer_profile(
    entries: Sequence[CloudRecord], measure: str, label: str, selected: tuple[int, str] | None = None
) -> go.Figure:
    """A measure over the layers, one line per pooling; undefined values are gaps, intervals error bars.

    Args:
        entries: of a view.
        measure: a column of `number_table.frame`.
        label: of the y axis.
        selected: layer and pooling shown in the other figures.
    """
    figure = go.Figure()
    for pooling in dict.fromkeys(entry.pooling for entry in entries):
        lines = [entry for entry in entries if entry.pooling == pooling]
        symbol, dash = _STYLES.get(pooling, ("circle", "solid"))
        colour = pooling_colour(pooling)
        ends = [entry.interval(measure) for entry in lines]
        figure.add_scatter(
            x=[entry.layer for entry in lines],
            y=[value(entry, measure) for entry in lines],
            error_y=theme.error_bars([entry.number(measure) for entry in lines], ends) if any(ends) else None,
            name=escape(POOLING_TITLES.get(pooling, pooling)),
            mode="lines+markers",
            line={"color": colour, "dash": dash, "width": 2},
            marker={
                "symbol": symbol,
                "color": colour,
                "size": [13 if (entry.layer, pooling) == selected else 8 for entry in lines],
            },
            customdata=[[points_of(entry, measure), entry.d] for entry in lines],
            hovertemplate="layer %{x}: %{y:.4g}<br>n = %{customdata[0]}, d = %{customdata[1]}",
        )
    # no legend entry for a line without values, if another line has some
    has_values = [any(number is not None for number in line.y) for line in figure.data]
    for line, has_value in zip(figure.data, has_values, strict=True):
        line.showlegend = has_value or not any(has_values)
    metric = metrics.catalogue().get(measure)
    axis = metric.axis if metric else "linear"
    x = {"xaxis_dtick": 1, "xaxis_tick0": 0}
    return theme.titled(figure, "layer (0: embedding output)", escape(label), height=380, yaxis_type=axis, **x)


def spectrum(
    curves: Mapping[int, NDArray[np.float64]], layer: int, pooling: str, d: int, log: bool = False
) -> go.Figure:
    """EV_k of a layer over those of all others, and of a perfectly isotropic cloud; below it the layer's spectrum as bars.

    Args:
        curves: layer → cumulative shares (k,).
        d: dimensions.
        log: k on a logarithmic axis.
    """
    count = np.arange(1, len(curves[layer]) + 1)
    others_x: list[float | None] = []
    others_y: list[float | None] = []
    for number, curve in curves.items():
        if number != layer:
            others_x += [*range(1, len(curve) + 1), None]
            others_y += [*_gaps(curve), None]
    own = f"layer {layer}" if len(curves) > 1 else "these vectors"
    lines = (
        (others_x, others_y, "other layers", {"color": _FAINT, "width": 1}),
        (count.tolist(), (count / d).tolist(), "isotropic, k/d", {"color": GREY, "dash": "dot", "width": 1.5}),
        (count.tolist(), _gaps(curves[layer]), own, {"color": pooling_colour(pooling), "width": 3}),
    )
    figure = go.Figure()
    for x, y, name, line in lines[len(curves) == 1 :]:
        figure.add_scatter(x=x, y=y, mode="lines", line=line, name=name, hoverinfo="skip")
    figure.data[-1].update(hoverinfo=None, hovertemplate="EV_%{x} = %{y:.4f}<extra></extra>")
    figure.add_bar(
        x=count.tolist(),
        y=np.diff(curves[layer], prepend=0.0).tolist(),
        marker={"color": pooling_colour(pooling), "opacity": 0.5, "line": {"width": 0}},
        name="share of direction k",
        hovertemplate="direction %{x}: %{y:.4f}<extra></extra>",
    )
    axis: dict[str, Any] = {"yaxis_range": [0, 1.02]}
    if log:
        ends = [-0.02, math.log10(max(2, len(count))) + 0.02]
        axis |= {"xaxis_type": "log", "xaxis_range": ends, "xaxis_tickvals": [1, 2, 5, 10, 20, 50, 100, 200]}
    return theme.titled(figure, "k (log axis)" if log else "k", "EV_k", **axis)


def sigma_histogram(sigma: NDArray[Any], pooling: str, others: Sequence[NDArray[Any]] = ()) -> go.Figure:
    """Standard deviations of the dimensions (d,) on a logarithmic axis, with a separate bin for zeros.

    Args:
        others: standard deviations of other clouds whose figures share the bins.
    """
    spread = np.asarray(sigma, dtype=np.float64)
    all_spreads = np.concatenate([spread, *others]).astype(np.float64)
    positive = all_spreads[all_spreads > 0]
    lowest = 10.0 ** math.floor(math.log10(positive.min()) + 1e-6) if len(positive) else 0.1
    floor = min(0.1, max(_LOWEST, lowest))
    # Two points at ±σ have the population standard deviation σ in each dimension, exactly.
    histogram = metrics.std_histogram(np.stack([all_spreads, -all_spreads]), bins=_BINS, floor=floor)
    edges = np.asarray(histogram.edges, dtype=np.float64)
    counts, _ = np.histogram(np.clip(spread[spread > 0], edges[0], edges[-1]), bins=edges)
    percent = 100 * np.array([(spread == 0).sum(), *counts]) / len(spread)
    places = np.log10(edges)
    width = float(places[1] - places[0])
    middles = ((places[1:] + places[:-1]) / 2).tolist()
    zero = float(places[0]) - 4 * width
    figure = _bars(
        [zero, *middles], percent, width, pooling_colour(pooling), "%{customdata}: %{y:.1f} % of the dimensions"
    )
    figure.data[0].customdata = ["σ = 0", *(f"σ near {10**place:.3g}" for place in middles)]
    ticks = {zero: "0"} | _log_ticks(float(places[0]), float(places[-1]))
    axis = {"xaxis_tickvals": list(ticks), "xaxis_ticktext": list(ticks.values())}
    return theme.titled(figure, "σ of a dimension (log axis)", "% of the dimensions", yaxis_rangemode="tozero", **axis)


def _log_ticks(low: float, high: float) -> dict[float, str]:
    """Ticks and their labels: powers of ten between two logarithms, and 2 and 5 times each if those are few."""
    steps = (1, 2, 5) if high - low < 3 else (1,)
    factors = [(step, power) for power in range(math.floor(low), math.ceil(high) + 1) for step in steps]
    places = {math.log10(step) + power: f"{step * 10.0**power:g}" for step, power in factors}
    return {place: label for place, label in places.items() if low - 1e-6 <= place <= high + 1e-6}


def cosine_histogram(counts: NDArray[Any], average: float | None, pooling: str) -> go.Figure:
    """Cosines of pairs, counted in bins of equal width over [−1, 1]; the mean as a line."""
    edges = np.linspace(-1, 1, len(counts) + 1)
    share = 100.0 * np.asarray(counts, dtype=np.float64) / max(1, int(counts.sum()))
    hover = "cosine near %{x:.3f}: %{y:.2f} % of the pairs"
    figure = _bars((edges[1:] + edges[:-1]) / 2, share, float(edges[1] - edges[0]), pooling_colour(pooling), hover)
    if average is not None:
        figure.add_vline(x=average, line=_MEAN_LINE)
        in_legend = f"mean cosine {average:.3f}"
        figure.add_scatter(x=[None], y=[None], mode="lines", line=_MEAN_LINE, name=in_legend)
    filled = np.flatnonzero(counts)
    low, high = (float(edges[filled[0]]), float(edges[filled[-1] + 1])) if len(filled) else (-1.0, 1.0)
    room = max(0.02, 0.05 * (high - low))
    axis = {"xaxis_range": [max(-1.02, low - room), min(1.02, high + room)], "yaxis_rangemode": "tozero"}
    return theme.titled(figure, "cosine of two points", "% of the pairs", **axis)


def _bars(x: Iterable[Any], y: Iterable[float], width: float | None, colour: str, hover: str) -> go.Figure:
    marker = {"color": colour, "line": {"width": 0}}
    places, heights = np.asarray(x).tolist(), np.asarray(y).tolist()
    hover += "<extra></extra>"
    return go.Figure(
        go.Bar(x=places, y=heights, width=width, marker=marker, name="", hovertemplate=hover, showlegend=False)
    )


def _gaps(values: NDArray[Any]) -> list[float | None]:
    return [None if math.isnan(number) else float(number) for number in values]


def share_axes(figures: Sequence[go.Figure]) -> None:
    """Give figures of the same kind the same axes: the union of the ranges that were set, or else of the drawn values."""
    for axis in ("xaxis", "yaxis"):
        set_by_hand = [figure.layout[axis].range for figure in figures]
        if all(set_by_hand):
            ends = [float(end) for span in set_by_hand for end in span]
            low, high = min(ends), max(ends)
        else:
            values = np.concatenate([_drawn(figure, axis[0]) for figure in figures] or [np.zeros(0)])
            if any(figure.layout[axis].type == "log" for figure in figures):
                values = np.log10(values[values > 0])  # plotly gives the range of a log axis as logarithms
            if not len(values):
                continue
            low, high = float(values.min()), float(values.max())
            room = 0.05 * (high - low) or 0.5
            to_zero = any(figure.layout[axis].rangemode == "tozero" for figure in figures)
            low, high = (0.0 if to_zero and low >= 0 else low - room), high + room
        for figure in figures:
            figure.layout[axis].range = [low, high]


def compact(figure: go.Figure) -> None:
    """Fit a figure into a row of several: less height, the legend below, fewer ticks."""
    figure.update_layout(
        height=min(320, figure.layout.height or 320),
        legend={"yanchor": "top", "y": -0.28, "font": {"size": 11}},
        margin={"t": 12, "b": 8},
    )
    axis = figure.layout.xaxis
    if axis.ticktext:  # powers of ten are enough, without the one next to 0
        places = zip(axis.tickvals, axis.ticktext, strict=True)
        powers = [(place, label) for place, label in places if label.strip("0.")[:1] in ("", "1")]
        powers = powers[:1] + powers[2:] if len(powers) > 3 else powers
        axis.update(tickvals=[place for place, _ in powers], ticktext=[label for _, label in powers], tickangle=0)


def _drawn(figure: go.Figure, letter: str) -> NDArray[np.float64]:
    """All finite numbers along an axis, with the ends of error bars."""
    parts = [np.zeros(0)]
    for trace in figure.data:
        values = np.array(getattr(trace, letter), dtype=np.float64)
        parts.append(values)
        if letter == "y" and trace.type == "scatter" and trace.error_y.array is not None:
            up, down = (np.array(side, dtype=np.float64) for side in (trace.error_y.array, trace.error_y.arrayminus))
            parts += [values + up, values - down]
    values = np.concatenate(parts)
    return values[np.isfinite(values)]


def mean_activation(mean: NDArray[Any], rogue: Sequence[int], pooling: str) -> go.Figure:
    """The mean of each dimension (d,), rogue dimensions marked with their number."""
    values = np.asarray(mean, dtype=np.float64)
    drawn = _bars(range(len(values)), values, None, pooling_colour(pooling), "dimension %{x}: %{y:.4g}")
    drawn.data[0].update(name="mean", showlegend=True)
    if rogue:
        drawn.add_scatter(
            x=list(rogue),
            y=values[list(rogue)].tolist(),
            mode="markers+text",
            text=[str(number) for number in rogue],
            textposition=["top center" if values[number] >= 0 else "bottom center" for number in rogue],
            marker={"symbol": "x", "size": 9, "color": theme.MARK},
            name="rogue dimensions",
            hovertemplate="dimension %{x}: %{y:.4g}, rogue by its mean<extra></extra>",
            cliponaxis=False,
        )
    return theme.titled(drawn, "dimension", "mean activation", bargap=0, showlegend=bool(rogue))

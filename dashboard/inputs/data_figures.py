"""Figures of a task's rows and of a run's predictions. No Streamlit here: reports and arrays in, Plotly figures out."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go

from dashboard.shared import theme
from isoviz.tasks.outcomes import Confusion
from isoviz.tasks.protocol import Histogram

SPLIT_COLOURS = ("#4968f6", "#dd7809", "#1eab48", "#994ebe")
"""Colours of train, validation and further splits."""
MAX_NAMED = 12
"""Most classes of a confusion matrix with counts in its cells."""
_GREY = "rgba(127,134,145,0.9)"


def spread(splits: Mapping[str, Histogram], label: str) -> go.Figure:
    """Histograms of numbers, one per split, as shares of the split's rows, so that splits of different sizes compare.

    Args:
        splits: name → histogram.
        label: title of the x axis.
    """
    figure = go.Figure()
    for (name, histogram), colour in zip(splits.items(), SPLIT_COLOURS, strict=False):
        edges, counts = np.asarray(histogram.edges), np.asarray(histogram.counts)
        ends = [f"{count} rows from {a:.4g} to {b:.4g}" for count, a, b in zip(counts, edges, edges[1:], strict=False)]
        _bars(
            figure,
            (edges[1:] + edges[:-1]) / 2,
            counts,
            f"{escape(name)}: {histogram}",
            colour,
            ends,
            width=np.diff(edges).tolist(),
        )
    return _shares(figure, label, "overlay")


def classes(splits: Mapping[str, Mapping[str, int]], label: str) -> go.Figure:
    """Rows per class, one bar per split, as shares of the split's rows."""
    figure = go.Figure()
    for (name, counts), colour in zip(splits.items(), SPLIT_COLOURS, strict=False):
        names = np.array([escape(class_name) for class_name in counts], dtype=object)
        rows = [f"{class_name}: {count} rows" for class_name, count in zip(names, counts.values(), strict=True)]
        _bars(figure, names, np.array(list(counts.values())), escape(name), colour, rows)
    figure.update_xaxes(type="category")
    return _shares(figure, label, "group")


def _bars(
    figure: go.Figure, x: np.ndarray, counts: np.ndarray, name: str, colour: str, texts: list[str], **options: Any
) -> None:
    figure.add_bar(
        x=x.tolist(),
        y=(counts / max(1, counts.sum())).tolist(),
        name=name,
        marker={"color": colour, "opacity": 0.55, "line": {"width": 0}},
        hovertext=texts,
        hovertemplate="%{hovertext}, %{y:.1%}<extra></extra>",
        **options,
    )


def _shares(figure: go.Figure, label: str, mode: str) -> go.Figure:
    axis = {"yaxis_tickformat": ".0%", "yaxis_rangemode": "tozero"}
    gap = 0.15 if mode == "group" else 0
    return theme.titled(figure, escape(label), "share of rows", height=240, barmode=mode, bargap=gap, **axis)


def confusion(matrix: Confusion, dark: bool) -> go.Figure:
    """True classes as rows, predicted ones as columns; colour and second line: share of the row.

    Args:
        dark: dark mode, for the text in the cells.
    """
    counts = matrix.counts
    shares = row_shares(counts)
    names = [escape(name) if len(name) <= 24 else escape(name[:23]) + "…" for name in matrix.names]
    places = list(range(len(names)))
    small = len(names) <= MAX_NAMED
    cell_texts = [
        [_cell(int(n), share) for n, share in zip(*row, strict=True)] for row in zip(counts, shares, strict=True)
    ]
    figure = go.Figure(
        go.Heatmap(
            x=places,
            y=places,
            z=np.nan_to_num(shares).tolist(),
            zmin=0,
            zmax=1,
            colorscale=[[0, "rgba(73,104,246,0.03)"], [1, "rgba(73,104,246,0.6)"]],
            showscale=not small,
            colorbar={"title": {"text": "share of the row"}, "tickformat": ".0%", "thickness": 12, "outlinewidth": 0},
            text=cell_texts,
            texttemplate="%{text}" if small else None,
            textfont={"color": "#f3f4f6" if dark else "#1b1f2a"},
            customdata=[[[row, column] for column in names] for row in names],
            hovertemplate="true %{customdata[0]}<br>predicted %{customdata[1]}<br>%{text}<extra></extra>",
            xgap=2,
            ygap=2,
        )
    )
    ticks = {
        "tickmode": "array",
        "tickvals": places,
        "ticktext": names,
        "ticks": "",
        "showgrid": False,
        "zeroline": False,
    }
    axes = {"xaxis": ticks, "yaxis": {**ticks, "autorange": "reversed"}, "margin": {"t": 12}}
    return theme.titled(figure, "predicted", "true", height=min(640, 130 + max(2, len(names)) * 56), **axes)


def row_shares(counts: np.ndarray) -> np.ndarray:
    """(k, k) counts as shares of their rows; nan for a class without rows."""
    totals = counts.sum(axis=1, keepdims=True)
    return np.divide(counts, totals, out=np.full(counts.shape, np.nan), where=totals > 0)


def _cell(count: int, share: float) -> str:
    return f"{count}<br>{share:.0%}" if np.isfinite(share) else f"{count}<br>–"


def predicted(true: np.ndarray, predictions: np.ndarray) -> go.Figure:
    """Predicted against true numbers, with the diagonal; undefined predictions are left out."""
    defined = np.isfinite(true) & np.isfinite(predictions)
    true, predictions = true[defined], predictions[defined]
    figure = go.Figure(
        go.Scattergl(
            x=true.tolist(),
            y=predictions.tolist(),
            mode="markers",
            showlegend=False,
            marker={"size": 7, "color": SPLIT_COLOURS[0], "opacity": 0.5},
            hovertemplate="true %{x:.4g}<br>predicted %{y:.4g}<extra></extra>",
        )
    )
    if len(true):
        ends = [float(true.min()), float(true.max())]
        figure.add_scatter(
            x=ends,
            y=ends,
            mode="lines",
            name="predicted = true",
            line={"color": _GREY, "dash": "dot"},
            hoverinfo="skip",
        )
    return theme.titled(figure, "true", "predicted", height=380)

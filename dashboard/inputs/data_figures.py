"""Figures of a run's predictions. No Streamlit here: arrays in, Plotly figures out."""

from __future__ import annotations

from html import escape

import numpy as np
import plotly.graph_objects as go

from dashboard.shared import theme
from isoviz.tasks.outcomes import Confusion

MAX_NAMED = 12
"""Most classes of a confusion matrix with counts in its cells."""
_GREY = "rgba(127,134,145,0.9)"


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
            marker={"size": 7, "color": theme.PALETTE[0], "opacity": 0.5},
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

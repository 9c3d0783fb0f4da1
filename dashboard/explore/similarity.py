"""Similarity of the layers of a view, and of two views of the same rows."""

from __future__ import annotations

from typing import Final

import numpy as np
import plotly.graph_objects as go
import streamlit as st
from numpy.typing import NDArray

from dashboard.components.figure import draw
from dashboard.explore.form import PREFIX, Pane, file_name
from dashboard.shared import explanations, theme, wording
from dashboard.shared.explanations import Explanation
from dashboard.shared.forms import choice
from isoviz.exploring import results, similarity

CKA: Final = Explanation(
    title="Similarity of layers",
    reading=(
        "CKA near 1: two layers hold the same cloud up to rotation, shift and scale; near 0: unrelated clouds. Shared neighbours: the "
        "share of each row's 10 nearest rows that both layers have."
    ),
    formula=r"\mathrm{CKA} = \frac{H(X, Y)}{\sqrt{H(X, X)\,H(Y, Y)}},\quad H(X, Y) = \mathrm{HSIC}_u(XX^\top, YY^\top)",
    paper="Kornblith et al. 2019; unbiased HSIC: Song et al. 2012.",
)
_MEASURES: Final[dict[str, similarity.Measure]] = {"CKA": "cka", "Shared neighbours": "neighbours"}


def applies(panes: list[Pane]) -> bool:
    """Whether there are layers or views to compare."""
    return bool(_pairs(panes))


def _pairs(panes: list[Pane]) -> list[tuple[Pane, Pane]]:
    """Each view with layers against itself, and each further view against the first if both have the same rows."""
    pairs = [(pane, pane) for pane in panes if len(pane.layers) > 1]
    for other in panes[1:]:
        # never of tokens, since tokenizers and samples differ
        if "tokens" not in (panes[0].pooling, other.pooling) and _rows(panes[0]) == _rows(other):
            pairs.append((panes[0], other))
    return pairs


def section(panes: list[Pane]) -> None:
    """Layer × layer similarity of each pair."""
    pairs = _pairs(panes)
    with st.container(horizontal=True, vertical_alignment="center"):
        explanations.show(CKA)
        key = PREFIX + "similarity"
        title = choice("Similarity", list(_MEASURES), key, kept=True, label_visibility="collapsed")
    for start in range(0, len(pairs), 2):
        for column, (pane, other) in zip(st.columns(2, gap="large"), pairs[start : start + 2], strict=False):
            with column:
                _matrix(pane, other, title)


def _matrix(pane: Pane, other: Pane, title: str) -> None:
    rows, columns = pane.layers, other.layers
    n = min(each.view.stored_points(layers[0], each.pooling) for each, layers in ((pane, rows), (other, columns)))
    similarities = _computed((*_place(pane), tuple(rows)), (*_place(other), tuple(columns)), title)
    names = [f"{each.source}, {each.pooling}" for each in (pane, other)]
    axes = ["Layer", "Layer"] if pane is other else [f"Layer of view {each.number}" for each in (pane, other)]
    alt_text = f"{title} of layers {rows[0]} to {rows[-1]} of {' and '.join(dict.fromkeys(names))}"
    draw(
        squares(similarities, rows, columns, axes),
        key=f"{other.prefix}similarity_{'layers' if pane is other else 'across'}",
        words=alt_text,
        name=f"{file_name(other)}-similarity-{pane.pooling}",
        about=alt_text,
    )
    rows_compared = f"{len(similarity.sampled(n)):,} of {n:,} rows" if n > similarity.MOST else f"{n:,} rows"
    st.caption(wording.plain(f"{title}, pooling {other.pooling}, {rows_compared}"))


def squares(values: NDArray[np.float64], rows: list[int], columns: list[int], axes: list[str]) -> go.Figure:
    """A square for each pair of layers, coloured from 0 to 1; a gap for nan.

    Squares instead of a heatmap, because plotly.js's basic bundle has no heatmap.
    """
    places = [(int(row), int(column)) for row, column in np.argwhere(~np.isnan(values))]
    figure = go.Figure(
        go.Scatter(
            x=[columns[column] for _, column in places],
            y=[rows[row] for row, _ in places],
            mode="markers",
            marker={
                "symbol": "square",
                "size": max(5, min(44, 240 // max(len(rows), len(columns)))),
                "color": [round(float(values[place]), 4) for place in places],
                "cmin": 0,
                "cmax": 1,
                "colorscale": [[0, "rgba(73,104,246,0.06)"], [1, "rgba(73,104,246,1)"]],
                "colorbar": {"thickness": 12, "outlinewidth": 0},
                "line": {"width": 0},
            },
            hovertemplate="layer %{y} and layer %{x}: %{marker.color:.3f}<extra></extra>",
        )
    )
    ticks = {"tickmode": "linear", "dtick": max(1, len(columns) // 12), "showgrid": False, "zeroline": False}
    layout = {"xaxis": {**ticks, "title": axes[1]}, "yaxis": {**ticks, "title": axes[0]}, "margin": {"t": 12}}
    return figure.update_layout(theme.figure_layout(height=360, **layout))


@st.cache_data(show_spinner="Comparing layers …", max_entries=32)
def _computed(
    first: tuple[str, str, tuple[int, ...]], second: tuple[str, str, tuple[int, ...]], title: str
) -> NDArray[np.float64]:
    rows, columns = (
        [results.get(key).mapped(layer, pooling) for layer in layers] for key, pooling, layers in (first, second)
    )
    if second == first:
        return similarity.matrix(rows, rows, _MEASURES[title])  # of which half is computed
    n = min(len(rows[0]), len(columns[0]))  # a view may have read more of the same rows
    rows, columns = [cloud[:n] for cloud in rows], [cloud[:n] for cloud in columns]
    return similarity.matrix(rows, columns, _MEASURES[title])


def _rows(pane: Pane) -> tuple[str, str]:
    """Identifies the rows of a view."""
    return pane.view.facts["data_fingerprint"], pane.view.facts["request"]["split"]


def _place(pane: Pane) -> tuple[str, str]:
    return pane.view.folder.name, pane.pooling

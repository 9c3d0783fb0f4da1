"""How alike the layers of a view are, and those of two views of the same rows."""

from __future__ import annotations

import contextlib
from typing import Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from numpy.typing import NDArray

from dashboard import explanations, theme, wording
from dashboard.components.figure import draw
from dashboard.explanations import Explanation
from dashboard.explore.form import PREFIX, ChosenCloud, file_name
from isoviz.exploring import own, results, similarity
from isoviz.exploring.results import ViewResult

CKA: Final = Explanation(
    title="Similarity of layers",
    reading=(
        "CKA near 1: two layers hold the same cloud up to rotation, shift and scale; near 0: unrelated clouds. Shared neighbours: the "
        "share of each row's 10 nearest rows that both layers have."
    ),
    formula=r"\mathrm{CKA} = \frac{H(X, Y)}{\sqrt{H(X, X)\,H(Y, Y)}},\quad H(X, Y) = \mathrm{HSIC}_u(XX^\top, YY^\top)",
    formula_text="CKA = HSIC(X, Y) / √(HSIC(X, X) HSIC(Y, Y)), linear kernels, unbiased estimate of HSIC",
    paper="Kornblith et al. 2019; unbiased HSIC: Song et al. 2012.",
)
_MEASURES: Final[dict[str, similarity.Measure]] = {"CKA": "cka", "Shared neighbours": "neighbours"}


def applies(chosen: list[ChosenCloud]) -> bool:
    """Whether there are layers or views to compare."""
    return bool(_pairs(chosen))


def _pairs(chosen: list[ChosenCloud]) -> list[tuple[ChosenCloud, ChosenCloud]]:
    """Each view with layers against itself, and each later view against the first where both read the same rows."""
    pairs = [(one, one) for one in chosen if len(one.layers) > 1]
    return pairs + [(chosen[0], other) for other in chosen[1:] if _same_rows(chosen[0], other)]


def section(chosen: list[ChosenCloud]) -> None:
    """Layer × layer of each of the pairs, at its pooling."""
    pairs = _pairs(chosen)
    with st.container(horizontal=True, vertical_alignment="center"):
        explanations.show(CKA)
        title = str(
            st.segmented_control(
                "Similarity",
                list(_MEASURES),
                default="CKA",
                required=True,
                key=PREFIX + "similarity",
                bind="query-params",
                persist_state="session",
                label_visibility="collapsed",
            )
        )
    for start in range(0, len(pairs), 2):
        for column, (one, other) in zip(st.columns(2, gap="large"), pairs[start : start + 2], strict=False):
            with column:
                _matrix(one, other, title)


def _matrix(one: ChosenCloud, other: ChosenCloud, title: str) -> None:
    rows, columns = one.layers, other.layers
    by_ids = one is not other and not _same_split(one, other)
    try:
        n = len(_shared(_place(one), _place(other))[0]) if by_ids else one.view.kept(rows[0], one.pooling)
        similarities = _computed((*_place(one), tuple(rows)), (*_place(other), tuple(columns)), title, by_ids)
    except (KeyError, FileNotFoundError):
        st.caption("This view is no longer cached. Run Analyse again.")
        return
    names = [f"{each.source}, {each.pooling}" for each in (one, other)]
    axes = ["Layer", "Layer"] if one is other else [f"Layer of view {each.number}" for each in (one, other)]
    words = f"{title} of layers {rows[0]} to {rows[-1]} of {names[0]}" + ("" if one is other else f" and {names[1]}")
    draw(
        squares(similarities, rows, columns, axes),
        key=f"{other.prefix}similarity_{'layers' if one is other else 'across'}",
        words=words,
        name=f"{file_name(other)}-similarity-{one.pooling}",
        about=words,
    )
    compared = f"{len(similarity.drawn(n)):,} of {n:,} rows" if n > similarity.MOST else f"{n:,} rows"
    if by_ids:
        compared += " with the same id"
    st.caption(wording.plain(f"{title}, pooling {other.pooling}, {compared}"))


def squares(values: NDArray[np.float64], rows: list[int], columns: list[int], axes: list[str]) -> go.Figure:
    """Layers as rows and columns, a square for each pair; colour from 0 to 1, nan is a gap.

    Squares, not a heatmap: plotly.js's basic part draws them, and Explore needs no more than that.
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
    figure.update_layout(
        theme.figure_layout(
            height=360,
            xaxis={**ticks, "title": {"text": axes[1]}},
            yaxis={**ticks, "title": {"text": axes[0]}},
            margin={"t": 12},
        )
    )
    return figure


@st.cache_data(show_spinner="Comparing layers …", max_entries=32)
def _computed(
    first: tuple[str, str, tuple[int, ...]], second: tuple[str, str, tuple[int, ...]], title: str, by_ids: bool
) -> NDArray[np.float64]:
    rows = _clouds(*first)
    columns = rows if second == first else _clouds(*second)
    if by_ids:
        places = _shared(first[:2], second[:2])
        rows, columns = [cloud[places[0]] for cloud in rows], [cloud[places[1]] for cloud in columns]
    return similarity.matrix(rows, columns, _MEASURES[title])


@st.cache_data(show_spinner=False, max_entries=32)
def _shared(first: tuple[str, str], second: tuple[str, str]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where the rows with the same id are among the points of two views at a pooling."""
    tables = [_view(key).table(pooling) for key, pooling in (first, second)]
    if not all("id" in table for table in tables):
        return np.empty(0, np.intp), np.empty(0, np.intp)
    ids = [pd.Index(table["id"]) for table in tables]
    both = ids[0].intersection(ids[1], sort=False)
    return ids[0].get_indexer(both), ids[1].get_indexer(both)


def _clouds(key: str, pooling: str, layers: tuple[int, ...]) -> list[NDArray[np.floating]]:
    return [_view(key).mapped(layer, pooling) for layer in layers]


def _view(key: str) -> ViewResult:
    """KeyError if it is no longer cached."""
    view = results.find(key)
    if view is None:
        raise KeyError(key)
    return view


def _place(one: ChosenCloud) -> tuple[str, str]:
    return one.view.folder.name, one.pooling


def _same_rows(one: ChosenCloud, other: ChosenCloud) -> bool:
    """Whether rows of two views are the same. Tokens are not: tokenizers differ, and so do samples. Of own sets ids say so."""
    if "tokens" in (one.pooling, other.pooling):
        return False
    if _same_split(one, other):
        return True
    requests = [each.filled.request for each in (one, other)]
    if not all(request is not None and own.is_own(request.task) for request in requests):
        return False
    with contextlib.suppress(KeyError, FileNotFoundError):  # no longer cached
        return len(_shared(_place(one), _place(other))[0]) >= similarity.FEWEST
    return False


def _same_split(one: ChosenCloud, other: ChosenCloud) -> bool:
    """Whether point i of both is the same row."""
    facts = [each.view.facts for each in (one, other)]
    same = all(facts[0].get(name) == facts[1].get(name) for name in ("data_fingerprint", "rows"))
    split = [each.filled.request.split for each in (one, other) if each.filled.request is not None]
    kept = [each.view.kept(each.layers[0], each.pooling) for each in (one, other)]
    return same and len(set(split)) == 1 and kept[0] == kept[1]

"""Maps of points in two or three dimensions, coloured by a column. No Streamlit here: arrays in, a Plotly figure out."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from dashboard.shared import theme, wording
from dashboard.shared.explanations import Explanation

PCA = Explanation(
    title="PCA",
    reading=(
        "The cloud projected onto its directions of largest variance. The axes say how much variance they hold; "
        "the rest is not visible. Distances in the map are never larger than in the full space."
    ),
    formula=r"z_i = V^\top (x_i - \bar x), \quad \Sigma V = V \Lambda",
    paper="Pearson 1901; Hotelling 1933.",
)

UMAP = Explanation(
    title="UMAP",
    reading=(
        "A layout that keeps each point's nearest neighbours close. Which points lie together is meaningful; the "
        "distances between groups, their sizes and the axes are not, and another seed gives another picture."
    ),
    formula=r"\min_z \sum_{ij} p_{ij} \log \frac{p_{ij}}{q_{ij}} + (1 - p_{ij}) \log \frac{1 - p_{ij}}{1 - q_{ij}}",
    paper="McInnes, Healy & Melville 2018.",
)

EXPLANATIONS = {"pca": PCA, "umap": UMAP}

MOST_GROUPS: Final = 8
"""Most values of a column with separate colours; rarer ones share one."""
REST: Final = "other values"
_SYMBOLS = ("circle", "diamond", "square", "x", "triangle-up", "cross", "star", "pentagon")
_SOLID_SYMBOLS = ("circle", "diamond", "square", "x", "cross", "circle-open", "diamond-open", "square-open")
_SCENE_LINES = "#9aa0a8"
OWN_COLOUR: Final = "#e5007a"
_FEW = 2_000
_STRONG, _DENSE, _SOLID = 0.9, 0.75, 1.0
"""Opacity of up to `_FEW` points; of more, so that density shows; and in three dimensions, where plotly sorts points by depth only
if they are opaque."""
*_POINT_COLOURS, _OTHER_COLOUR = theme.POINT_PALETTES["light"]  # the browser substitutes the dark palette


def cloud_map(
    coordinates: NDArray[Any],
    axes: Sequence[str],
    colours: pd.Series | None,
    texts: Sequence[str] | NDArray[np.int64],
    *,
    own: NDArray[Any] | None = None,
    own_texts: Sequence[str] = (),
    range_of: NDArray[Any] | None = None,
    equal: bool = True,
    compact: bool = False,
    webgl: bool = True,
) -> go.Figure:
    """The map: one mark per point, coloured by a column, with the user's sentences as stars on top.

    Args:
        coordinates: (n, 2) or (n, 3).
        axes: titles of the axes.
        colours: (n,) the column; a scale for numbers with many values, else a colour per value.
        texts: (n,) hover texts, shortened and never read as HTML. For very many points their indices among the stored points,
            with which the browser requests all texts when it first needs one.
        own, own_texts: (m, 2) or (m, 3) further points, with their labels.
        range_of: points that determine the axes' ranges, if other maps share them.
        equal: one unit has the same length on both axes (for PCA).
        compact: for several maps side by side.
        webgl: needs all of plotly.js, unless the component of Explore's map draws it.
    """
    figure = go.Figure()
    solid = coordinates.shape[1] == 3
    symbols = _SOLID_SYMBOLS if solid else _SYMBOLS
    size = _marker_size(len(coordinates), solid) * (0.7 if compact else 1)
    opacity = _SOLID if solid else _STRONG if len(coordinates) <= _FEW else _DENSE
    fetched = isinstance(texts, np.ndarray)
    shortened = texts if fetched else [escape(wording.cut(text)) for text in texts]
    hover = np.asarray(shortened, dtype=np.int32 if fetched else object)
    for index, (name, members, marker) in enumerate(_groups(colours, len(coordinates))):
        title, colour = escape(wording.cut(name, 30)), marker["color"]
        style = {"size": size, "opacity": opacity, "line": {"width": 0}, "symbol": symbols[index % len(symbols)]}
        style["color"] = colour[members] if isinstance(colour, np.ndarray) else colour
        texts_of_part: dict[str, Any] = {"customdata" if fetched else "text": hover[members]}
        _add_points(
            figure,
            coordinates[members],
            name=title,
            mode="markers",
            marker=marker | style,
            **texts_of_part,
            hovertemplate="%{text}<extra></extra>" if not name else f"%{{text}}<extra>{title}</extra>",
            legendgroup=title,
            showlegend=bool(name),
            few=not webgl,
        )
    if own is not None and len(own):
        _add_own(figure, own, own_texts, compact)
    _lay_out(figure, axes, solid, _limits(coordinates if range_of is None else range_of, own), equal, compact)
    if colours is not None and is_scale(colours):
        title = escape(wording.cut(str(colours.name), 24))
        figure.update_layout(
            coloraxis={
                "colorscale": theme.POINT_SCALES["light"],  # the browser substitutes the dark palette
                "cmin": float(colours.min()),
                "cmax": float(colours.max()),
                "colorbar": {"title": {"text": title}, "thickness": 10, "len": 0.8, "outlinewidth": 0},
            }
        )
    return figure


def _add_own(figure: go.Figure, own: NDArray[Any], texts: Sequence[str], compact: bool) -> None:
    solid = own.shape[1] == 3
    more = {} if solid else {"unselected": {"marker": {"opacity": 1}}}  # a lasso selects rows, not the user's sentences
    marker = {"symbol": "diamond" if solid else "star", "size": 9 if solid else 17, "color": OWN_COLOUR}
    _add_points(
        figure,
        own,
        name="own sentences",
        # labels only for a few marks: many would overlap and cover the map
        mode="markers+text" if len(own) <= 12 and not compact else "markers",
        marker=marker | {"line": {"width": 1.5, "color": "#ffffff"}},
        text=[escape(wording.cut(text, 28)) for text in texts],
        textposition="top center",
        hovertext=[escape(wording.cut(text)) for text in texts],
        hovertemplate="%{hovertext}<extra>own</extra>",
        showlegend=True,
        few=True,
        **more,
    )


def is_scale(colours: pd.Series) -> bool:
    """Whether a column gets a colour scale: numbers with more values than there are colours."""
    numbers = pd.api.types.is_numeric_dtype(colours) and not pd.api.types.is_bool_dtype(colours)
    return bool(numbers and colours.nunique() > MOST_GROUPS)


def _groups(colours: pd.Series | None, count: int) -> list[tuple[str, NDArray[np.bool_], dict[str, Any]]]:
    """Name, points and marker of each trace."""
    every = np.ones(count, dtype=bool)
    if colours is None:
        return [("", every, {"color": _POINT_COLOURS[0]})]
    if is_scale(colours):
        return [("", every, {"color": colours.to_numpy(dtype=np.float32), "coloraxis": "coloraxis"})]
    values = colours.astype(object).where(colours.notna(), "missing").map(str)
    order = list(values.value_counts().sort_index().sort_values(ascending=False, kind="stable").index)
    named = sorted(order if len(order) <= MOST_GROUPS else order[: MOST_GROUPS - 1])
    groups = [(name, (values == name).to_numpy(), {"color": _POINT_COLOURS[index]}) for index, name in enumerate(named)]
    if len(named) < len(order):
        other_points = (~values.isin(named)).to_numpy()
        groups.insert(0, (f"{REST} ({len(order) - len(named)})", other_points, {"color": _OTHER_COLOUR}))
    return groups


def _add_points(figure: go.Figure, points: NDArray[Any], *, few: bool = False, **more: Any) -> None:
    """Plotly draws `few` points in a plane; the map draws many (scattergl) itself, see scatter_map.js."""
    x, y = points[:, 0].astype(np.float32), points[:, 1].astype(np.float32)
    if points.shape[1] == 3:
        figure.add_scatter3d(x=x, y=y, z=points[:, 2].astype(np.float32), **more)
    elif few:
        figure.add_scatter(x=x, y=y, **more)
    else:
        figure.add_scattergl(x=x, y=y, **more)


def _limits(points: NDArray[Any], own: NDArray[Any] | None) -> list[list[float]]:
    every = points if own is None or not len(own) else np.concatenate([points, own])
    low, high = every.min(axis=0), every.max(axis=0)
    room = np.maximum(0.05 * (high - low), 1e-6)
    return [[float(a), float(b)] for a, b in zip(low - room, high + room, strict=True)]


def _lay_out(
    figure: go.Figure, axes: Sequence[str], solid: bool, limits: list[list[float]], equal: bool, compact: bool
) -> None:
    titles = [axis.replace(" of the variance", "") for axis in axes] if solid else axes  # a scene has less room
    font = {"size": 11 if compact else 13}
    named: dict[str, dict[str, Any]] = {
        f"{letter}axis": {"title": {"text": escape(title), "font": font}, "range": span, "zeroline": False}
        for letter, title, span in zip("xyz", titles, limits, strict=False)
    }
    # below, because plotly's buttons are at the top
    y = -0.02 if solid else -0.26 if compact else -0.14
    legend = {"itemsizing": "constant", "font": {"size": 12}, "yanchor": "top", "y": y}
    if solid:
        # lines in a 3-D scene are thin: fainter ones would be invisible
        lines = {"gridcolor": _SCENE_LINES, "showline": True, "linecolor": _SCENE_LINES, "nticks": 5}
        style = {**lines, "backgroundcolor": "rgba(0,0,0,0)", "tickfont": {"size": 10 if compact else 12}}
        camera = {"eye": dict.fromkeys("xyz", 1.6 if compact else 1.4), "center": {"x": 0, "y": 0, "z": -0.12}}
        scene = {name: style | axis for name, axis in named.items()} | {"dragmode": "orbit", "camera": camera}
        layout: dict[str, Any] = {"scene": scene, "margin": {"l": 0, "r": 0, "t": 32, "b": 0}}
    else:
        named["yaxis"] |= {"scaleanchor": "x"} if equal else {}
        layout = {**named, "dragmode": "lasso", "margin": {"t": 32, "l": 8, "r": 8, "b": 8}}
    figure.update_layout(theme.figure_layout(legend=legend, **layout))


def _marker_size(count: int, solid: bool) -> float:
    size = (9.0, 7.0, 5.0, 3.5, 2.5)[int(np.searchsorted([500, 2_000, 8_000, 50_000], count))]
    return size / 2 if solid else size

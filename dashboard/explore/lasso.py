"""What somebody drew a line around in a map: kept in the address, listed, marked in the maps of the same rows, its neighbours."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from dashboard import address, wording
from dashboard.components.scatter_map import drawn
from dashboard.explore import own_sentences
from dashboard.explore.layouts import Cloud, Layout
from dashboard.explore.shown import Shown
from isoviz.exploring import neighbours, selection

_MOST_ROWS = 2_000
"""Lines of the table of selected points that are shown; the download holds all."""


def component(one: Shown) -> str:
    """Key of the map of a view."""
    return one.prefix + "map_picture"


def remember(one: Shown, key: str) -> Any:
    """The callback that puts what was drawn into the address, with the map that it was drawn on."""

    def kept() -> None:
        line = drawn(component(one))
        st.query_params.pop(one.prefix + "point", None)
        if len(line) < 3:
            st.query_params.pop(one.prefix + "lasso", None)
        else:
            st.query_params[one.prefix + "lasso"] = f"{key}:{selection.written(selection.shortened(line))}"

    return kept


def corners(one: Shown, layout: Layout) -> list[tuple[float, float]]:
    """The line of the address, if it was drawn on this map."""
    key, _, text = st.query_params.get(one.prefix + "lasso", "").partition(":")
    return (selection.read(text) or []) if key == layout.key and layout.coordinates.shape[1] == 2 else []


def check(shown: Sequence[Shown]) -> None:
    """Have told, and left out, what no line around points and no point can be; a line on another map than the one shown stays."""
    for one in shown:
        _, _, text = st.query_params.get(one.prefix + "lasso", "").partition(":")
        if selection.read(text) is None:
            address.refuse(one.prefix + "lasso")
        if _number(st.query_params.get(one.prefix + "point", "")) is None:
            address.refuse(one.prefix + "point")


def _number(text: str) -> int | None:
    # of so many digits, because Python reads no number of thousands of them
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


@dataclass(frozen=True)
class Marks:
    """The points of a map whose rows are selected in other views.

    Attributes:
        points: (m,) of those that are drawn, which are.
        views: where they are selected.
    """

    points: NDArray[np.bool_]
    views: tuple[int, ...]

    @property
    def where(self) -> str:
        """`view 1`, `views 1 and 3`."""
        *most, last = map(str, self.views)
        return f"views {', '.join(most)} and {last}" if most else f"view {last}"


def marked(shown: Sequence[Shown], clouds: Sequence[Cloud], layouts: Sequence[object]) -> list[Marks | None]:
    """Per view what of its map is selected in other views of the same rows; None where nothing is, or it has no map.

    A row is a row in every layer, pooling, model and direction; of tokens those count that stand in a selected row.
    """
    rows: list[NDArray[Any] | None] = []
    for one, cloud, layout in zip(shown, clouds, layouts, strict=True):
        line = corners(one, layout) if isinstance(layout, Layout) else []
        if isinstance(layout, Layout) and line:
            inside = layout.places[selection.inside(layout.coordinates, line)]
            rows.append(cloud.table["row"].to_numpy()[inside])
        else:
            rows.append(None)
    found: list[Marks | None] = []
    for one, cloud, layout in zip(shown, clouds, layouts, strict=True):
        others = [
            (other.number, selected)
            for other, selected in zip(shown, rows, strict=True)
            if other is not one and selected is not None and _same_rows(one, other)
        ]
        if not others or not isinstance(layout, Layout):
            found.append(None)
            continue
        every = np.concatenate([selected for _, selected in others])
        points = np.isin(cloud.table["row"].to_numpy()[layout.places], every)
        found.append(Marks(points, tuple(number for number, _ in others)))
    return found


def _same_rows(one: Shown, other: Shown) -> bool:
    first, second = one.filled.request, other.filled.request
    assert first is not None and second is not None
    return (first.task, first.data, first.split) == (second.task, second.data, second.split)


def listed(one: Shown, cloud: Cloud, layout: Layout) -> None:
    """The table of the points inside the line, and the neighbours of the one that is picked from it."""
    line = corners(one, layout)
    if not line:
        return
    inside = layout.places[selection.inside(layout.coordinates, line)]
    with st.container(border=True, key=one.prefix + "selected"):
        view = f"View {one.number}: " if one.of > 1 else ""
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{view}{len(inside):,} of {len(layout.places):,} points selected**")
            st.button(
                "Clear",
                key=one.prefix + "clear",
                icon=":material/close:",
                type="tertiary",
                on_click=_clear,
                args=(one,),
            )
        if not len(inside):
            st.caption("No point lies inside this line.")
            return
        listed = inside[:_MOST_ROWS]
        if len(listed) < len(inside):
            st.caption(f"The first {len(listed):,} are listed; the files below the map hold all.")
        table = cloud.table.iloc[listed]
        digest = hashlib.sha256(inside.tobytes()).hexdigest()[:8]
        event = st.dataframe(
            table,
            key=f"{one.prefix}table_{digest}",
            hide_index=True,
            on_select="rerun",
            selection_mode="single-row",
            height=min(330, 40 + 35 * len(table)),
            column_config=own_sentences.columns(table),
            alt=f"{len(listed)} selected points with their texts, labels and lengths",
        )
        rows = event["selection"]["rows"]
        if rows:
            st.query_params[one.prefix + "point"] = str(int(listed[rows[0]]))
        _neighbours(one, cloud)


def _clear(one: Shown) -> None:
    for name in ("lasso", "point"):
        st.query_params.pop(one.prefix + name, None)


def _neighbours(one: Shown, cloud: Cloud) -> None:
    place = _number(st.query_params.get(one.prefix + "point", ""))
    if place is not None and place >= len(cloud.points):
        address.refuse(one.prefix + "point")
        place = None
    if place is None:
        st.caption("Pick a line of the table to see its nearest neighbours.")
        return
    metric = own_sentences.metric_field(one.prefix)
    st.markdown(f"Nearest to **{wording.plain(cloud.texts[place])}**")
    found = neighbours.nearest(cloud.points, cloud.points[place], metric=metric, leave_out=place)
    own_sentences.listed(one, cloud.table, found, metric)

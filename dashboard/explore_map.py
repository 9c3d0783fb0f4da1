"""The map of a cloud: settings, picture, what somebody drew a line around, and the neighbours of one of those."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from dashboard import downloads, explanations, explore_own, forms, map_figures, wording
from dashboard.components.scatter_map import drawn, scatter_map
from dashboard.explore_form import PREFIX
from dashboard.explore_views import Shown, file_name
from isoviz import tasks
from isoviz.errors import InputError
from isoviz.exploring import desk, maps, neighbours, results, selection
from isoviz.exploring.desk import Reply
from isoviz.exploring.maps import MapRequest

TICK = 0.5
"""Seconds between looks at what is on its way."""
UNCOLOURED = "nothing"
POINTS = (1_000, 2_000, 5_000, 10_000, 20_000)
_KIND_NAMES: dict[str, maps.Kind] = {"PCA": "pca", "UMAP": "umap"}
_WAITING = PREFIX + "waiting"
_REQUEST = PREFIX + "laid_out"
_MOST_ROWS = 2_000
"""Lines of the table of selected points that are shown; the download holds all."""


@dataclass(frozen=True)
class Cloud:
    """The points of one view and what they are.

    Attributes:
        points: (n, d) float32, all that are kept.
        table: (n) lines, see `ViewResult.table`.
        texts: (n,) what each point says.
    """

    points: NDArray[np.float32]
    table: pd.DataFrame
    texts: list[str]


def section(shown: list[Shown]) -> MapRequest:
    """The maps of all views. While something is on its way they look for it; else nothing does.

    Returns:
        How the clouds are laid out.
    """
    st.subheader("Map", anchor=False)
    waiting = bool(st.session_state.get(_WAITING))
    st.fragment(_section, run_every=TICK if waiting else None)(shown)
    laid: MapRequest = st.session_state[_REQUEST]
    return laid


def _section(shown: list[Shown]) -> None:
    clouds = [cloud_of(one) for one in shown]
    request, colour = _settings(shown, clouds)
    shared = len(shown) > 1 and _axes_field() == "shared"
    lines = explore_own.field(shown)
    replies = [explore_own.ask(one, lines) for one in shown]
    layouts = [_layout(one, cloud, request) for one, cloud in zip(shown, clouds, strict=True)]
    own = [_own_places(one, request, layout, reply) for one, layout, reply in zip(shown, layouts, replies, strict=True)]
    known = [layout.coordinates for layout in layouts if isinstance(layout, Layout)]
    room = np.concatenate(known) if shared and known else None
    for one, cloud, layout, reply, placed, column in zip(
        shown, clouds, layouts, replies, own, st.columns(len(shown), gap="medium"), strict=True
    ):
        with column:
            if isinstance(layout, Layout):
                _picture(one, cloud, layout, request, colour, reply, placed, room)
            else:
                _on_its_way(one, layout)
            explore_own.trouble(reply)
            if isinstance(placed, Reply):
                explore_own.trouble(placed)
    explanations.show(request.kind)
    for one, cloud, layout in zip(shown, clouds, layouts, strict=True):
        if isinstance(layout, Layout):
            _selected(one, cloud, layout, request)
    explore_own.neighbours_of(shown, clouds, lines, replies)
    pending = [found for found in (*layouts, *replies, *own) if isinstance(found, Reply)]
    waiting = any(reply.kind in ("waiting", "running") for reply in pending)
    told = bool(st.session_state.get(_WAITING)), st.session_state.get(_REQUEST, request)
    st.session_state[_WAITING], st.session_state[_REQUEST] = waiting, request
    if told != (waiting, request):  # the rest of the page must know
        st.rerun()


# ---------------------------------------------------------------------------------------------------------- settings


def _settings(shown: list[Shown], clouds: list[Cloud]) -> tuple[MapRequest, str]:
    """How the clouds are laid out, and which column colours them, from the fields."""
    kind_column, size_column, colour_column, points_column, more_column = st.columns(
        [2, 2, 3, 2, 2], vertical_alignment="bottom"
    )
    with kind_column:
        kind = st.segmented_control(
            "Map", list(_KIND_NAMES), default="PCA", required=True, key=PREFIX + "map", bind="query-params"
        )
    with size_column:
        size = st.segmented_control(
            "Dimensions", ["2-D", "3-D"], default="2-D", required=True, key=PREFIX + "size", bind="query-params"
        )
    with points_column:
        points = st.selectbox(
            "Points at most",
            POINTS,
            index=2,
            key=PREFIX + "points",
            bind="query-params",
            help="Of a larger cloud so many are drawn at random, with seed 0. Neighbours are looked for among all.",
        )
    with colour_column:
        colour = _colour_field(clouds)
    umap = kind == "UMAP"
    with more_column, st.popover("UMAP settings", icon=":material/tune:", disabled=not umap):
        near = st.number_input("Neighbours", 2, 200, 15, key=PREFIX + "neighbours", bind="query-params")
        dist = st.number_input(
            "Least distance", 0.0, 1.0, 0.1, 0.05, key=PREFIX + "min_dist", bind="query-params", format="%.2f"
        )
        metric = st.selectbox("Near means", neighbours.METRICS, key=PREFIX + "umap_metric", bind="query-params")
    if not all("prediction" in cloud.table for cloud in clouds):
        st.caption(
            "Predictions and errors are there for the encoder of a finished run on its own task: choose run:… as the model."
        )
    laid = _KIND_NAMES[str(kind)]
    request = MapRequest(laid, 3 if size == "3-D" else 2, int(points), int(near), float(dist), metric)
    return request, colour


def _colour_field(clouds: list[Cloud]) -> str:
    """The column that colours the points; texts that are hardly ever the same cannot."""
    names: dict[str, None] = {}
    for cloud in clouds:
        for name in cloud.table.columns:
            column = cloud.table[name]
            few = pd.api.types.is_numeric_dtype(column) or column.nunique() <= max(
                map_figures.MOST_GROUPS, len(column) // 2
            )
            if few and name != "row":
                names[name] = None
    order: list[str] = [name for name in ("label", "prediction", "error", "length") if name in names]
    order += [name for name in names if name not in order]
    return str(st.selectbox("Colour by", [*order, UNCOLOURED], key=PREFIX + "colour", bind="query-params"))


def _axes_field() -> str:
    return str(
        st.segmented_control(
            "Axes", ["shared", "own"], default="shared", required=True, key=PREFIX + "axes", bind="query-params"
        )
    )


# ----------------------------------------------------------------------------------------------------------- layouts


@dataclass(frozen=True)
class Layout:
    """A cloud laid out.

    Attributes:
        coordinates: (m, k) of the points that are drawn.
        places: (m,) which points of the cloud those are.
        axes: what each axis is.
        pca: what else points can be placed by; None for UMAP.
        key: of cloud and settings.
    """

    coordinates: NDArray[np.floating]
    places: NDArray[np.int64]
    axes: list[str]
    pca: maps.PCAMap | None
    key: str


def cloud_of(one: Shown) -> Cloud:
    """The points of the layer and pooling that a view shows."""
    return _cloud(one.view.folder.name, one.layer, one.pooling)


@st.cache_resource(show_spinner=False, max_entries=16, ttl=1800)
def _cloud(key: str, layer: int, pooling: str) -> Cloud:
    """Shared and never written to: up to 20,000 points of a wide model are 60 MB."""
    view = results.find(key)
    assert view is not None  # the page has just found it
    table = view.table(pooling)
    columns = tasks.get(view.facts["request"]["task"]).columns
    texts = table[[name for name in columns if name in table]].astype(str).agg(" ‖ ".join, axis=1)
    if "token" in table:
        texts = table["token"] + " · " + texts
    return Cloud(view.points(layer, pooling), table, texts.tolist())


def _layout(one: Shown, cloud: Cloud, request: MapRequest) -> Layout | Reply | InputError:
    """The map, or how it stands on its way, or why there can be none."""
    key = f"{one.view.folder.name[:8]}{request.key(one.layer, one.pooling)[:8]}"
    places = maps.drawn(len(cloud.points), request)
    try:
        if request.kind == "pca":
            found = _pca(one.view.folder.name, one.layer, one.pooling, json.dumps(request.as_json()))
            named = [
                f"PC {number} ({100 * share:.1f} % of the variance)"
                if np.isfinite(share)
                else f"PC {number} (no variance)"
                for number, share in enumerate(found.shares, start=1)
            ]
            return Layout(found.coordinates, places, named, found, key)
    except InputError as error:
        return error
    reply = desk.ask("maps", _question(one, request))
    if reply.kind != "done":
        return reply
    axes = [f"UMAP {number}" for number in range(1, request.dimensions + 1)]
    return Layout(reply.arrays["coordinates"], places, axes, None, key)


@st.cache_resource(show_spinner=False, max_entries=32, ttl=1800)
def _pca(key: str, layer: int, pooling: str, settings: str) -> maps.PCAMap:
    request = maps.from_json(json.loads(settings))
    points = _cloud(key, layer, pooling).points
    return maps.pca(points[maps.drawn(len(points), request)], request.dimensions)


def _question(one: Shown, request: MapRequest) -> dict[str, Any]:
    return {"view": one.view.folder.name, "layer": one.layer, "pooling": one.pooling, "map": request.as_json()}


def _own_places(
    one: Shown, request: MapRequest, layout: Layout | Reply | InputError, reply: Reply | None
) -> NDArray[np.floating] | Reply | None:
    """Where own sentences lie in the map; None while there are none, or no map."""
    if reply is None or reply.kind != "done" or not isinstance(layout, Layout):
        return None
    points = reply.arrays["points"]
    if layout.pca is not None:
        return layout.pca.place(points)
    placed = desk.ask("maps", _question(one, request), {"points": points})
    return placed.arrays["coordinates"] if placed.kind == "done" else placed


def _on_its_way(one: Shown, layout: Reply | InputError) -> None:
    if isinstance(layout, InputError):
        forms.error_beside(forms.sentence(layout))
        return
    if layout.kind == "failed":
        forms.error_beside(forms.sentence(InputError(layout.message, field=layout.field)) + f" {layout.advice}")
        if st.button("Try again", key=one.prefix + "map_again", icon=":material/refresh:"):
            desk.forget("maps", layout.id)
            st.rerun()
        return
    told = layout.progress
    words = "waiting for its turn" if layout.kind == "waiting" else told.text
    st.progress(told.fraction, text=wording.plain(f"UMAP: {words}"))
    if st.button("Stop", key=one.prefix + "map_stop", icon=":material/stop_circle:"):
        desk.forget("maps", layout.id)
        st.session_state[PREFIX + "map"] = "PCA"
        st.rerun()


# ----------------------------------------------------------------------------------------------------------- picture


def _picture(
    one: Shown,
    cloud: Cloud,
    layout: Layout,
    request: MapRequest,
    colour: str,
    reply: Reply | None,
    placed: NDArray[np.floating] | Reply | None,
    room: NDArray[Any] | None,
) -> None:
    column = cloud.table[colour].iloc[layout.places] if colour in cloud.table else None
    own = placed if isinstance(placed, np.ndarray) else None
    figure = map_figures.figure(
        layout.coordinates,
        layout.axes,
        column,
        [cloud.texts[place] for place in layout.places],
        own=own,
        own_texts=[] if own is None or reply is None else explore_own.labels(reply),
        range_of=room,
        equal=request.kind == "pca" and one.of == 1,
        compact=one.of > 1,
    )
    corners = _corners(one, layout)
    count, kept = len(layout.places), len(cloud.points)
    many = (
        f"{count:,} points"
        if count == kept
        else f"{count:,} of {kept:,} points drawn at random with seed {request.seed}"
    )
    if kept < one.entry["n"]:
        many += f", of {one.entry['n']:,} in the cloud"
    told = f"View {one.number}: " if one.of > 1 else ""
    told += f"layer {one.layer}, {one.pooling}; {many}, d = {one.entry['d']}"
    if colour != UNCOLOURED and column is None:
        told += f"; there is no {colour} here"
    scatter_map(
        figure,
        key=_component(one),
        name=f"{file_name(one)}-{request.kind}-layer{one.layer}-{one.pooling}",
        words=f"{request.kind.upper()} map of {told}, coloured by {colour}",
        revision=layout.key,
        height=380 if one.of > 1 else 560,
        solid=request.dimensions == 3,
        selection=corners,
        on_drawn=_remember(one, layout.key),
    )
    hint = "" if request.dimensions == 3 else " Draw around points to list them; double-click to see all again."
    st.caption(wording.plain(told + "." + hint))
    _files(one, cloud, layout, request)


def _component(one: Shown) -> str:
    return one.prefix + "map_picture"


def _remember(one: Shown, key: str) -> Any:
    """The callback that puts what was drawn into the address, with the map that it was drawn on."""

    def remember() -> None:
        corners = drawn(_component(one))
        st.query_params.pop(one.prefix + "point", None)
        if len(corners) < 3:
            st.query_params.pop(one.prefix + "lasso", None)
        else:
            st.query_params[one.prefix + "lasso"] = f"{key}:{selection.written(selection.shortened(corners))}"

    return remember


def _corners(one: Shown, layout: Layout) -> list[tuple[float, float]]:
    """The line of the address, if it was drawn on this map."""
    key, _, text = st.query_params.get(one.prefix + "lasso", "").partition(":")
    return (selection.read(text) or []) if key == layout.key and layout.coordinates.shape[1] == 2 else []


def _files(one: Shown, cloud: Cloud, layout: Layout, request: MapRequest) -> None:
    """The points of the map as files, with where they lie and whether they were selected."""

    corners = _corners(one, layout)  # now: when the file is made, there is no page whose address could be read

    def table() -> pd.DataFrame:
        found = cloud.table.iloc[layout.places].reset_index(drop=True)
        for number in range(layout.coordinates.shape[1]):
            found[f"{request.kind}_{number + 1}"] = layout.coordinates[:, number]
        if corners:
            found["selected"] = selection.inside(layout.coordinates, corners)
        return found

    name = f"{file_name(one)}-{request.kind}-layer{one.layer}-{one.pooling}" + (
        f"-view{one.number}" if one.number > 1 else ""
    )
    downloads.points(name, table, key=one.prefix + "map_points")


# ---------------------------------------------------------------------------------------------- selection, neighbours


def _selected(one: Shown, cloud: Cloud, layout: Layout, request: MapRequest) -> None:
    """The table of the points inside the line, and the neighbours of the one that is picked from it."""
    corners = _corners(one, layout)
    if not corners:
        return
    inside = layout.places[selection.inside(layout.coordinates, corners)]
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
            column_config=explore_own.columns(table),
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
    text = st.query_params.get(one.prefix + "point", "")
    if not (text.isascii() and text.isdigit() and int(text) < len(cloud.points)):
        st.caption("Pick a line of the table to see its nearest neighbours.")
        return
    place = int(text)
    metric = explore_own.metric_field(one.prefix)
    st.markdown(f"Nearest to **{wording.plain(cloud.texts[place])}**")
    found = neighbours.nearest(cloud.points, cloud.points[place], metric=metric, leave_out=place)
    explore_own.listed(one, cloud.table, found, metric)

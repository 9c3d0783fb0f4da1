"""The map of a cloud: its settings, and what it is made of: layouts, pictures, own sentences, selections."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from dashboard import explanations
from dashboard.explore import lasso, map_plot, own_sentences
from dashboard.explore.form import PREFIX
from dashboard.explore.layouts import Cloud, Layout, begin, cloud_of, layout_of, let_go, on_its_way, own_places, stop
from dashboard.explore.picture import UNCOLOURED, picture
from dashboard.explore.shown import Shown
from dashboard.steady import steady
from isoviz.exploring import maps, neighbours
from isoviz.exploring.desk import Reply
from isoviz.exploring.maps import MapRequest

TICK = 0.5
"""Seconds between looks at what is on its way."""
POINTS = (1_000, 2_000, 5_000, 10_000, 20_000)
_KIND_NAMES: dict[str, maps.Kind] = {"PCA": "pca", "UMAP": "umap"}
_UNDER_WAY = ("waiting", "running")
_WAITING = PREFIX + "waiting"
_REQUEST = PREFIX + "laid_out"


def section(shown: list[Shown]) -> MapRequest:
    """The maps of all views. While something is on its way they look for it; else nothing does.

    Returns:
        How the clouds are laid out.
    """
    st.subheader("Map", anchor=False)
    lasso.check(shown)
    waiting = bool(st.session_state.get(_WAITING))
    st.fragment(_section, run_every=TICK if waiting else None)(shown)
    laid: MapRequest = st.session_state[_REQUEST]
    return laid


def _section(shown: list[Shown]) -> None:
    clouds = [cloud_of(one) for one in shown]
    begin()
    request, colour = _settings(shown, clouds)
    shared = _axes_shared(len(shown))
    lines = own_sentences.field(shown)
    replies = [own_sentences.ask(one, lines) for one in shown]
    layouts = [layout_of(one, cloud, request) for one, cloud in zip(shown, clouds, strict=True)]
    own = [own_places(one, request, layout, reply) for one, layout, reply in zip(shown, layouts, replies, strict=True)]
    known = [layout.coordinates for layout in layouts if isinstance(layout, Layout)]
    room = np.concatenate(known) if shared and known else None
    linked = lasso.marked(shown, clouds, layouts)
    for one, cloud, layout, reply, placed, marks, column in zip(
        shown, clouds, layouts, replies, own, linked, st.columns(len(shown), gap="medium"), strict=True
    ):
        with column:
            if isinstance(layout, Layout):
                picture(one, cloud, layout, request, colour, reply, placed, room, marks)
            else:
                on_its_way(one, layout)
            own_sentences.trouble(reply)
            if isinstance(placed, Reply):
                own_sentences.trouble(placed)
    umaps = [found for found in layouts if isinstance(found, Reply)]
    let_go([*umaps, *(found for found in own if isinstance(found, Reply))])
    if pending_umaps := [reply for reply in umaps if reply.kind in _UNDER_WAY]:
        stop(pending_umaps)
    explanations.show(request.kind)
    for one, cloud, layout in zip(shown, clouds, layouts, strict=True):
        if isinstance(layout, Layout):
            lasso.listed(one, cloud, layout)
    own_sentences.neighbours_of(shown, clouds, lines, replies)
    pending = [found for found in (*layouts, *replies, *own) if isinstance(found, Reply)]
    waiting = any(reply.kind in _UNDER_WAY for reply in pending)
    told = bool(st.session_state.get(_WAITING)), st.session_state.get(_REQUEST, request)
    st.session_state[_WAITING], st.session_state[_REQUEST] = waiting, request
    if told != (waiting, request):  # the rest of the page must know
        st.rerun()


# ---------------------------------------------------------------------------------------------------------- settings


@steady
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
                map_plot.MOST_GROUPS, len(column) // 2
            )
            if few and name != "row":
                names[name] = None
    order: list[str] = [name for name in ("label", "prediction", "error", "length") if name in names]
    order += [name for name in names if name not in order]
    return str(st.selectbox("Colour by", [*order, UNCOLOURED], key=PREFIX + "colour", bind="query-params"))


@steady
def _axes_shared(views: int) -> bool:
    """Whether the maps have the same axes; one map has its own."""
    if views == 1:
        return False
    axes = st.segmented_control(
        "Axes", ["shared", "own"], default="shared", required=True, key=PREFIX + "axes", bind="query-params"
    )
    return axes == "shared"

"""Clouds of views and where their points lie in the map: PCA at once, UMAP from the process that makes it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from dashboard import forms, wording
from dashboard.explore.form import PREFIX
from dashboard.explore.shown import Shown
from isoviz import tasks
from isoviz.errors import InputError
from isoviz.exploring import desk, maps, results
from isoviz.exploring.desk import Reply
from isoviz.exploring.maps import MapRequest

_ASKED = PREFIX + "maps_asked"
"""The ids of the questions that this session waits for."""


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


def layout_of(one: Shown, cloud: Cloud, request: MapRequest) -> Layout | Reply | InputError:
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


def own_places(
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


def on_its_way(one: Shown, layout: Reply | InputError) -> None:
    """What is told of a map that is not there yet, or cannot be."""
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


def stop(pending: Sequence[Reply]) -> None:
    """The button that ends the UMAPs of all views: one of them among PCA maps would be of no use."""
    several = len(pending) > 1
    st.button(
        "Stop all" if several else "Stop",
        key=PREFIX + "map_stop",
        icon=":material/stop_circle:",
        on_click=_without_umap,
        help=f"And show the PCA map{'s' if several else ''}.",
    )


def _without_umap() -> None:
    """Before the page is drawn: the field that says which map it is can still be set."""
    let_go([])
    st.session_state[PREFIX + "map"] = "PCA"


def let_go(wanted: Sequence[Reply]) -> None:
    """End what this session has asked of UMAP and wants no more, so that nothing is computed that nobody looks at; somebody else
    who waits for it has it started again. What is on its way when the page is left stays."""
    asked = {reply.id for reply in wanted}
    for id in st.session_state.get(_ASKED, set()) - asked:
        desk.let_go("maps", id)
    st.session_state[_ASKED] = asked


def begin() -> None:
    """Before the fields of the map are drawn: on a new visit, what was asked for on an earlier one goes on."""
    if PREFIX + "map" not in st.session_state:
        st.session_state.pop(_ASKED, None)

"""The map of Explore: settings, coordinates (PCA computed here, UMAP by a job), and the figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from dashboard.components.scatter_map import scatter_map
from dashboard.explore import grid, points
from dashboard.explore.form import PREFIX, Pane, cloud_file
from dashboard.explore.points import Cloud, Layout, Shown, cloud_of, cloud_points
from dashboard.shared import downloads, explanations, forms, job_progress, map_figure, resources, wording
from dashboard.shared.forms import choice
from dashboard.shared.stable import stable
from isoviz.errors import InputError
from isoviz.exploring import maps
from isoviz.exploring.jobs import MAP, SENTENCES
from isoviz.exploring.maps import MapRequest
from isoviz.jobs.queue import JobState

# ------------------------------------------------------------------------------------------------------ section

TICK = 0.5
"""Seconds between checks of running jobs."""
POINTS = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 200_000)
_WAITING = PREFIX + "waiting"
_REQUEST = PREFIX + "laid_out"


def section(panes: list[Pane]) -> MapRequest:
    """The maps of all views, refreshed while jobs are running.

    Returns:
        The settings of the maps.
    """
    waiting = bool(st.session_state.get(_WAITING))
    with grid.cell("map", "Map"):
        st.fragment(_section, run_every=TICK if waiting else None)(panes)
    request: MapRequest = st.session_state[_REQUEST]
    return request


def _section(panes: list[Pane]) -> None:
    shown = [Shown(pane, cloud_of(pane)) for pane in panes]
    begin()
    with grid.details("map_fields"):
        request, colour = _settings(panes, [each.cloud for each in shown])
        lines = points.sentence_field(panes)
    for each in shown:
        each.sentences = points.embed_sentences(each.pane, lines)
        each.layout = layout_of(each.pane, each.cloud, request)
        each.placed = own_places(each, request)
    known = [each.layout.coordinates for each in shown if isinstance(each.layout, Layout)]
    same_axes = len({pane.view.facts["model_fingerprint"] for pane in panes}) == 1
    room = np.concatenate(known) if same_axes and known else None
    for each, column in zip(shown, st.columns(len(panes), gap="medium"), strict=True):
        with column:
            if isinstance(each.layout, Layout):
                picture(each, each.layout, request, colour, room)
            elif isinstance(each.layout, JobState):
                job_progress.in_place(MAP, each.layout, "UMAP", key=each.pane.prefix + "map_again")
            else:
                forms.show_error(each.layout)
            for kind, job in ((SENTENCES, each.sentences), (MAP, each.placed)):
                if isinstance(job, JobState):
                    key = f"{each.pane.prefix}own_{kind.name}_retry"
                    job_progress.in_place(kind, job, "Your sentences", key=key)
    umaps = [each.layout for each in shown if isinstance(each.layout, JobState)]
    placing = [each.placed for each in shown if isinstance(each.placed, JobState)]
    release_others([*umaps, *placing])
    if pending := sum(reply.under_way for reply in umaps):
        stop(pending > 1)
    with grid.details("map_help"), st.container(horizontal=True):
        explanations.show(map_figure.EXPLANATIONS[request.kind])
    for each in shown:
        if isinstance(each.layout, Layout):
            points.selected(each.pane, each.cloud, each.layout)
    points.neighbours_of(shown, lines)
    embedding = [each.sentences for each in shown if each.sentences is not None]
    waiting = any(job.under_way for job in (*umaps, *placing, *embedding))
    before = bool(st.session_state.get(_WAITING)), st.session_state.get(_REQUEST, request)
    st.session_state[_WAITING], st.session_state[_REQUEST] = waiting, request
    if before != (waiting, request):  # the rest of the page depends on it
        st.rerun()


# ---------------------------------------------------------------------------------------------------------- settings


@stable
def _settings(panes: list[Pane], clouds: list[Cloud]) -> tuple[MapRequest, str]:
    """Fields of the maps' settings; returns them with the name of the colour column."""
    kind_column, size_column, colour_column, points_column, more_column = st.columns(
        [2, 2, 3, 2, 2], vertical_alignment="bottom"
    )
    with kind_column:
        kind = choice("Map", ["PCA", "UMAP"], PREFIX + "map")
    with size_column:
        size = choice("Dimensions", ["2-D", "3-D"], PREFIX + "size")
    with points_column:
        most = st.selectbox(
            "Points drawn",
            POINTS,
            index=2,
            key=PREFIX + "points",
            bind="query-params",
            help="Larger sets are sampled (seed 0). UMAP and 3-D maps show at most 20,000. Neighbours are searched in the full set.",
        )
    with colour_column:
        of_tasks = [cloud for pane, cloud in zip(panes, clouds, strict=True) if pane.form.own_set is None]
        colour = _colour_field(clouds, all("prediction" in cloud.table for cloud in of_tasks))
    umap = kind == "UMAP"
    with more_column, st.popover("UMAP settings", icon=":material/tune:", disabled=not umap):
        near = st.number_input("Neighbours", 2, 200, 15, key=PREFIX + "neighbours", bind="query-params")
        dist = st.number_input(
            "Minimum distance", 0.0, 1.0, 0.1, 0.05, key=PREFIX + "min_dist", bind="query-params", format="%.2f"
        )
        metric = st.selectbox("Distance", maps.METRICS, key=PREFIX + "umap_metric", bind="query-params")
    laid: maps.Kind = "umap" if umap else "pca"
    dimensions = 3 if size == "3-D" else 2
    return MapRequest(laid, dimensions, int(most), int(near), float(dist), metric), colour


def _colour_field(clouds: list[Cloud], predicted: bool) -> str:
    """Field for the column that colours the points; columns of nearly unique texts are left out."""
    hint = "For predictions and errors, choose a finished run (run:…) as the model, on its own task."
    names = dict.fromkeys(
        str(name)
        for cloud in clouds
        for name, column in cloud.table.items()
        if name not in ("row", "id")
        and (pd.api.types.is_numeric_dtype(column) or column.nunique() <= max(map_figure.MOST_GROUPS, len(column) // 2))
    )
    order = [name for name in ("label", "group", "prediction", "error", "length") if name in names]
    options = [*dict.fromkeys([*order, *names]), UNCOLOURED]
    hint_shown = None if predicted else hint
    return str(st.selectbox("Colour by", options, key=PREFIX + "colour", bind="query-params", help=hint_shown))


# ----------------------------------------------------------------------------------------------- clouds and layouts

_PENDING = PREFIX + "maps_asked"
"""Session key: keys of the jobs this session waits for."""


def layout_of(pane: Pane, cloud: Cloud, request: MapRequest) -> Layout | JobState | InputError:
    """The map, the state of its job, or the error."""
    key = f"{pane.view.folder.name[:8]}{request.key(pane.layer, pane.pooling)[:8]}"
    places = maps.sampled(len(cloud.points), request)
    try:
        if request.kind == "pca":
            pca = _pca(pane.view.folder.name, pane.layer, pane.pooling, request)
            axes = [
                f"PC {number} ({100 * share:.1f} % of the variance)"
                if np.isfinite(share)
                else f"PC {number} (no variance)"
                for number, share in enumerate(pca.shares, start=1)
            ]
            return Layout(pca.coordinates, places, axes, pca, key)
    except InputError as error:
        return error
    state = job_progress.ask(MAP, _map_request(pane, request))
    if state.status != "done" or state.result is None:
        return state
    axes = [f"UMAP {number}" for number in range(1, request.dimensions + 1)]
    return Layout(state.result.arrays["coordinates"], places, axes, None, key)


@st.cache_resource(show_spinner=False, max_entries=32, ttl=1800)
def _pca(key: str, layer: int, pooling: str, request: MapRequest) -> maps.PCAMap:
    every = cloud_points(key, layer, pooling).points
    return maps.pca(every[maps.sampled(len(every), request)], request.dimensions)


def _map_request(pane: Pane, request: MapRequest) -> dict[str, Any]:
    return {"view": pane.view.folder.name, "layer": pane.layer, "pooling": pane.pooling, "map": request.as_json()}


def own_places(shown: Shown, request: MapRequest) -> NDArray[np.floating] | JobState | None:
    """Coordinates of the user's sentences in the map, or the state of their job; None without sentences or a map."""
    layout = shown.layout
    if shown.embedded is None or not isinstance(layout, Layout):
        return None
    embedded = shown.embedded.arrays["points"]
    if layout.pca is not None:
        return layout.pca.place(embedded)
    placed = job_progress.ask(MAP, _map_request(shown.pane, request), {"points": embedded})
    return placed if placed.status != "done" or placed.result is None else placed.result.arrays["coordinates"]


def stop(several: bool) -> None:
    """The button that stops UMAP in all views: one UMAP among PCA maps could not be compared."""
    st.button(
        "Stop all" if several else "Stop",
        key=PREFIX + "map_stop",
        icon=":material/stop_circle:",
        on_click=_without_umap,
        help=f"Stop UMAP and show the PCA map{'s' if several else ''}.",
    )


def _without_umap() -> None:
    """Callback, run before the page is drawn, while the field can still be set."""
    release_others([])
    st.session_state[PREFIX + "map"] = "PCA"


def release_others(pending: Sequence[JobState]) -> None:
    """Release this session's map jobs except the pending ones, so that abandoned UMAPs stop. If another session waits for a job,
    it starts again there. Jobs still running when the user leaves the page go on."""
    keys = {state.key for state in pending}
    for key in st.session_state.get(_PENDING, set()) - keys:
        resources.service().release(MAP, key)
    st.session_state[_PENDING] = keys


def begin() -> None:
    """Called before the map's fields are drawn: a new visit leaves an earlier visit's jobs running."""
    if PREFIX + "map" not in st.session_state:
        st.session_state.pop(_PENDING, None)


# ------------------------------------------------------------------------------------------------------ figure

UNCOLOURED = "nothing"
"""Option of the colour field for no colour."""


def picture(shown: Shown, layout: Layout, request: MapRequest, colour: str, room: NDArray[Any] | None) -> None:
    """The map with its caption and downloads.

    Args:
        colour: the column that colours the points.
        room: points that determine the axes' ranges; None for the map's own points.
    """
    pane, cloud, large = shown.pane, shown.cloud, grid.is_large("map")
    line = points.corners(pane, layout)
    column = cloud.table[colour].iloc[layout.rows] if colour in cloud.table else None
    own = shown.placed if isinstance(shown.placed, np.ndarray) else None
    count = len(layout.rows)
    figure = map_figure.cloud_map(
        layout.coordinates,
        layout.axes,
        column,
        [cloud.texts[place] for place in layout.rows] if count <= maps.MOST_FITTED else layout.rows,
        own=own,
        own_texts=[] if own is None or shown.embedded is None else points.labels(shown.embedded),
        range_of=layout.coordinates if room is None else room,
        equal=request.kind == "pca" and pane.views == 1,
        compact=pane.views > 1 or not large,
    )
    if not large and request.dimensions == 2:  # the toolbar has a row of its own, so the legend has room above
        figure.update_layout(legend={"y": 1.02, "yanchor": "bottom"}, margin={"t": 30})
    kept = len(cloud.points)
    many = f"{count:,} points"
    if count < pane.entry.n:
        kept_of = "" if count == kept or kept == pane.entry.n else f"{kept:,} kept of "
        many += f" drawn at random with seed {request.seed} from {kept_of}{pane.entry.n:,}"
    words = f"View {pane.number}: {pane.where}" if pane.views > 1 else pane.where.capitalize()
    words = words.replace(f"{pane.pooling}, ", f"{pane.pooling}; ") + f"{many}, d = {pane.entry.d}"
    if request.kind == "pca" and count > maps.MOST_FITTED:
        words += f"; axes from {maps.MOST_FITTED:,} of them"
    if colour != UNCOLOURED and column is None:
        words += f"; this view has no {colour}"
    elif column is not None:
        words += meaning(colour, cloud.table)
    scatter_map(
        figure,
        key=points.component(pane),
        name=cloud_file(pane, request.kind),
        about=f"{pane.source} · {pane.where}{many}, d = {pane.entry.d}",
        words=f"{request.kind.upper()} map of {words}, coloured by {colour}",
        place=pane.place,
        revision=layout.key,
        height=(380 if pane.views > 1 else 560) if large else grid.height("map"),
        solid=request.dimensions == 3,
        selection=line,
        on_drawn=points.remember(pane, layout.key),
    )
    hint = "" if request.dimensions == 3 else " Draw around points to list them; double-click to reset the zoom."
    with grid.details(f"map_{pane.number}"):
        st.caption(wording.plain(words + "." + hint))
        _files(pane, cloud, layout, request)


def meaning(column: str, table: pd.DataFrame) -> str:
    """Meaning of a computed column's numbers; empty for the data's own columns."""
    if column == "length":
        return "; length: in tokens"
    if column != "error":
        return ""
    if pd.api.types.is_numeric_dtype(table["prediction"]):
        return "; error: distance between the run's prediction and the label"
    return "; error: 1 − the probability that the run's head gives the true label"


def _files(pane: Pane, cloud: Cloud, layout: Layout, request: MapRequest) -> None:
    """Downloads of the map's points, with coordinates and selection."""

    line = points.corners(pane, layout)  # read the address now: a download is made outside the page

    def table() -> pd.DataFrame:
        frame = cloud.table.iloc[layout.rows].reset_index(drop=True)
        for number in range(layout.coordinates.shape[1]):
            frame[f"{request.kind}_{number + 1}"] = layout.coordinates[:, number]
        if line:
            frame["selected"] = maps.inside(layout.coordinates, line)
        return frame

    downloads.buttons(cloud_file(pane, request.kind), table, key=pane.prefix)

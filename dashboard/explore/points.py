"""Points of the map by name: those that someone drew a line around, own sentences, and their nearest neighbours."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from dashboard import address, job_progress, wording
from dashboard.components.scatter_map import drawn
from dashboard.explore.form import PREFIX, ChosenCloud
from isoviz.exploring import maps, neighbours, own, results, selection
from isoviz.exploring.jobs import SENTENCES
from isoviz.exploring.neighbours import Metric, Neighbours
from isoviz.exploring.points import texts
from isoviz.jobs.kinds import JobKind
from isoviz.jobs.queue import JobState
from isoviz.jobs.results import Result

_FAR: Final = 6.0  # median distances from the centre of a layer; no point of a Gaussian cloud of 200,000 is as far


@dataclass(frozen=True)
class Cloud:
    """The points of one view and what they are.

    Attributes:
        points: (n, d) float16 or float32, all stored points.
        table: (n) lines, see `ViewResult.table`.
        texts: (n,) what each point says.
        has_texts: whether that is words, not only the number or the name of a row.
    """

    points: NDArray[np.floating]
    table: pd.DataFrame
    texts: list[str]
    has_texts: bool = True


@dataclass(frozen=True)
class Layout:
    """A cloud laid out.

    Attributes:
        coordinates: (m, k) of the points that are drawn.
        places: (m,) which points of the cloud those are.
        axes: what each axis is.
        pca: what else points can be placed by; None for UMAP.
        key: of cloud and settings.
        film: (layers, m, 2) the same points in all layers of the view, aligned.
    """

    coordinates: NDArray[np.floating]
    places: NDArray[np.int64]
    axes: list[str]
    pca: maps.PCAMap | None
    key: str
    film: NDArray[np.floating] | None = None

    @property
    def extent(self) -> NDArray[np.floating]:
        """The points that the axes must show. Of a film: those of all layers without far outliers, because one layer's outliers would
        make the other layers too small to read."""
        if self.film is None:
            return self.coordinates
        distance = np.linalg.norm(self.film - np.median(self.film, axis=1, keepdims=True), axis=2)
        return self.film[distance <= _FAR * np.median(distance, axis=1, keepdims=True)]


def cloud_of(one: ChosenCloud) -> Cloud:
    """The points of the layer and pooling that a view shows."""
    return cloud_points(one.view.folder.name, one.layer, one.pooling)


@st.cache_resource(show_spinner=False, max_entries=16, ttl=1800)
def cloud_points(key: str, layer: int, pooling: str) -> Cloud:
    """Shared and never written to; the points are mapped, because 200,000 of a wide model are 300 MB."""
    view = results.find(key)
    assert view is not None  # the page has just found it
    table, task = view.table(pooling), own.task_of(view.facts["request"]["task"])
    has_texts = any(name in table for name in task.columns)
    return Cloud(view.mapped(layer, pooling), table, texts(table, task), has_texts)


# -------------------------------------------------------------------------------------------------- selected points

_MOST_ROWS = 2_000
"""Lines of the table of selected points that are shown; the download holds all."""


def component(one: ChosenCloud) -> str:
    """Key of the map of a view."""
    return one.prefix + "map_picture"


def remember(one: ChosenCloud, key: str) -> Any:
    """The callback that puts what was drawn into the address, with the map that it was drawn on."""

    def kept() -> None:
        line = drawn(component(one))
        st.query_params.pop(one.prefix + "point", None)
        if len(line) < 3:
            st.query_params.pop(one.prefix + "lasso", None)
        else:
            st.query_params[one.prefix + "lasso"] = f"{key}:{selection.written(selection.shortened(line))}"

    return kept


def corners(one: ChosenCloud, layout: Layout) -> list[tuple[float, float]]:
    """The line of the address, if it was drawn on this map."""
    key, _, text = st.query_params.get(one.prefix + "lasso", "").partition(":")
    return (selection.read(text) or []) if key == layout.key and layout.coordinates.shape[1] == 2 else []


def check(chosen: Sequence[ChosenCloud]) -> None:
    """Report, and take out of the address, what cannot be a line around points or a point; a line on another map stays."""
    for one in chosen:
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
    """The points of a map whose rows are selected in other views, or whose texts contain what was searched for.

    Attributes:
        points: (m,) of those that are drawn, which are.
        views: where they are selected.
        search: what was searched for; empty where they are selected.
    """

    points: NDArray[np.bool_]
    views: tuple[int, ...] = ()
    search: str = ""

    @property
    def words(self) -> str:
        """`12 of them contain “cat”`, `12 of them selected in view 1`."""
        count = f"{int(self.points.sum()):,} of them"
        return f"{count} contain “{self.search}”" if self.search else f"{count} selected in {self.where}"

    @property
    def where(self) -> str:
        """`view 1`, `views 1 and 3`."""
        *most, last = map(str, self.views)
        return f"views {', '.join(most)} and {last}" if most else f"view {last}"


def search_field() -> str:
    """What someone looks for in the texts of the points."""
    text = st.text_input(
        "Find in texts",
        key=PREFIX + "find",
        bind="query-params",
        max_chars=100,
        icon=":material/search:",
        help="Highlights the points whose text contains this. Not case-sensitive.",
    )
    return (text or "").strip()


def containing(search: str, cloud: Cloud, layout: object) -> Marks | None:
    """The points of a map whose texts contain this; None where nothing is searched for, or there is no map."""
    if not search or not isinstance(layout, Layout):
        return None
    wanted = search.casefold()
    return Marks(np.array([wanted in cloud.texts[place].casefold() for place in layout.places]), search=search)


def marked(chosen: Sequence[ChosenCloud], clouds: Sequence[Cloud], layouts: Sequence[object]) -> list[Marks | None]:
    """Per view what of its map is selected in other views of the same rows; None where nothing is, or it has no map.

    A row is a row in every layer, pooling, model and direction; of tokens those count that stand in a selected row. Rows of own sets
    match by their ids, where both have ids.
    """
    rows: list[pd.DataFrame | None] = []
    for one, cloud, layout in zip(chosen, clouds, layouts, strict=True):
        line = corners(one, layout) if isinstance(layout, Layout) else []
        if isinstance(layout, Layout) and line:
            rows.append(cloud.table.iloc[layout.places[selection.inside(layout.coordinates, line)]])
        else:
            rows.append(None)
    marks: list[Marks | None] = []
    for one, cloud, layout in zip(chosen, clouds, layouts, strict=True):
        others = [
            (other.number, selected[name].to_numpy(), name)
            for other, selected in zip(chosen, rows, strict=True)
            if other is not one and selected is not None and (name := _same_rows(one, other, cloud.table, selected))
        ]
        if not others or not isinstance(layout, Layout):
            marks.append(None)
            continue
        table = cloud.table.iloc[layout.places]
        points = np.any([np.isin(table[name].to_numpy(), selected) for _, selected, name in others], axis=0)
        marks.append(Marks(points, tuple(number for number, _, _ in others)))
    return marks


def _same_rows(one: ChosenCloud, other: ChosenCloud, table: pd.DataFrame, selected: pd.DataFrame) -> str | None:
    """The column by which the rows of two views match; None where they are of different things."""
    first, second = one.filled.request, other.filled.request
    assert first is not None and second is not None
    if (first.task, first.data, first.split) == (second.task, second.data, second.split):
        return "row"
    both_own = own.is_own(first.task) and own.is_own(second.task)
    return "id" if both_own and "id" in table and "id" in selected else None


def selected(one: ChosenCloud, cloud: Cloud, layout: Layout) -> None:
    """The table of the points inside the line, and the neighbours of the one that is picked from it."""
    line = corners(one, layout)
    if not line:
        return
    inside = layout.places[selection.inside(layout.coordinates, line)]
    with st.container(border=True, key=one.prefix + "selected"):
        view = f"View {one.number}: " if one.views > 1 else ""
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
            st.caption(f"Only the first {len(listed):,} are listed; the files below the map have all.")
        table = cloud.table.iloc[listed]
        digest = hashlib.sha256(inside.tobytes()).hexdigest()[:8]
        event = st.dataframe(
            table,
            key=f"{one.prefix}table_{digest}",
            hide_index=True,
            on_select="rerun",
            selection_mode="single-row",
            height=min(330, 40 + 35 * len(table)),
            column_config=columns(table),
            alt=f"{len(listed)} selected points with their texts, labels and lengths",
        )
        rows = event["selection"]["rows"]
        if rows:
            st.query_params[one.prefix + "point"] = str(int(listed[rows[0]]))
        _neighbours(one, cloud)


def _clear(one: ChosenCloud) -> None:
    for name in ("lasso", "point"):
        st.query_params.pop(one.prefix + name, None)


def _neighbours(one: ChosenCloud, cloud: Cloud) -> None:
    place = _number(st.query_params.get(one.prefix + "point", ""))
    if place is not None and place >= len(cloud.points):
        address.refuse(one.prefix + "point")
        place = None
    if place is None:
        st.caption("Select a row of the table to see its nearest neighbours.")
        return
    metric = metric_field(one.prefix)
    st.markdown(f"Nearest to **{wording.plain(cloud.texts[place])}**")
    nearest = neighbours.nearest(cloud.points, cloud.points[place], metric=metric, leave_out=place)
    neighbour_table(one, cloud.table, nearest, metric)


# ---------------------------------------------------------------------------------------------------- own sentences

MOST_LINES = 20
MOST_LETTERS = 2_000
"""Of all lines together that are read: they stand in the address."""
APART = "||"
"""Between the two texts of a pair."""
_NEAREST = 3
"""Neighbours of each own sentence."""


def sentence_field(chosen: list[ChosenCloud]) -> list[str]:
    """The lines that someone typed, at most `MOST_LINES`."""
    if all(one.of_vectors for one in chosen):  # without an encoder, nothing places a sentence
        return []
    pairs = any(len(own.task_of(_task(one)).inputs) == 2 for one in chosen)
    text = st.text_area(
        "Your own sentences, one per line",
        key=PREFIX + "own",
        bind="query-params",
        height=96,
        placeholder="The cat sat on the mat." + (f" {APART} A cat was sitting." if pairs else ""),
        help="Embedded by the same model, layer and pooling, and placed in the map. Press Ctrl+Enter, or click elsewhere."
        + (f" Write both texts of a pair on one line, separated by {APART}." if pairs else ""),
    )
    # no limit of the field's own: it would drop without a word what someone pastes that is longer
    if text and len(text) > MOST_LETTERS:
        st.caption(f":material/info: Only the first {MOST_LETTERS:,} of {len(text):,} characters are used.")
        text = text[:MOST_LETTERS]
    lines = [line.strip() for line in (text or "").splitlines() if line.strip()]
    if len(lines) > MOST_LINES:
        st.caption(f":material/info: Only the first {MOST_LINES} of {len(lines)} lines are used.")
    return lines[:MOST_LINES]


def embed_sentences(one: ChosenCloud, lines: Sequence[str]) -> JobState | None:
    """How the embedding of the lines stands; None if there are none."""
    if not lines or one.of_vectors:
        return None
    facts = one.view.facts
    assert one.filled.request is not None
    request = {
        "model": one.filled.request.model,
        "fingerprint": facts["model_fingerprint"],
        "layer": one.layer,
        "pooling": one.pooling,
        "max_length": facts["max_length"],
        "direction": one.filled.request.direction,
        "allow_random": one.filled.request.allow_random,
        "prompt": one.filled.request.prompt,
        "truncate": one.filled.request.truncate,
        "texts": _columns(lines, len(own.task_of(_task(one)).inputs)),
    }
    return job_progress.ask(SENTENCES, request)


def labels(sentences: Result) -> list[str]:
    """What each own point is called: its token, or the number of its line."""
    if sentences.facts["tokens"]:
        return list(sentences.facts["tokens"])
    return [f"{int(line) + 1}" for line in sentences.arrays["texts"]]


def progress_of(one: ChosenCloud, kind: JobKind, state: JobState | None) -> None:
    """What is said of sentences that are not embedded or placed yet, or cannot be."""
    if state is None or state.status == "done" or job_progress.refused(state):
        return
    if state.in_trouble:
        job_progress.trouble(state)
        job_progress.retry_button(kind, [state.key], key=f"{one.prefix}own_{kind.name}_retry")
        return
    st.caption(f":material/hourglass_top: Your sentences: {wording.plain(job_progress.step(state))} …")


def neighbours_of(
    chosen: list[ChosenCloud], clouds: Sequence[Cloud], lines: Sequence[str], replies: Sequence[JobState | None]
) -> None:
    """The rows nearest to each own sentence, in the full space."""
    done = [
        (one, cloud, reply.result)
        for one, cloud, reply in zip(chosen, clouds, replies, strict=True)
        if reply is not None and reply.status == "done" and reply.result is not None
    ]
    if not done:
        return
    with st.container(border=True, key=PREFIX + "own_neighbours"):
        st.markdown("**Nearest to your sentences**")
        metric = metric_field(PREFIX + "own_")
        for one, cloud, sentences in done:
            if one.views > 1:
                st.caption(f"View {one.number}: {wording.plain(one.cloud_words)}")
            parts = []
            for line, label, point in zip(
                sentences.arrays["texts"], labels(sentences), sentences.arrays["points"], strict=True
            ):
                nearest = neighbours.nearest(cloud.points, point, metric=metric, k=_NEAREST)
                part = cloud.table.iloc[nearest.places].copy()
                part.insert(0, metric, nearest.values)
                token = f"{label} · " if sentences.facts["tokens"] else ""
                part.insert(0, "yours", f"{int(line) + 1}. {token}{lines[int(line)]}")
                parts.append(part)
            table = pd.concat(parts)
            st.dataframe(
                table,
                key=one.prefix + "own_table",
                hide_index=True,
                column_config=columns(table),
                height=min(400, 40 + 35 * len(table)),
                alt=f"The {_NEAREST} rows nearest to each of {len(lines)} own sentences",
            )
            st.caption(_among(one, len(cloud.points)))


def metric_field(prefix: str) -> Metric:
    """Cosine or distance."""
    chosen = st.segmented_control(
        "Distance",
        neighbours.METRICS,
        default="cosine",
        required=True,
        key=prefix + "near",
        bind="query-params",
        help="cosine compares directions (1 = the same); euclidean measures distance (0 = the same). Both use all dimensions, not "
        "the map.",
    )
    return "euclidean" if chosen == "euclidean" else "cosine"


def neighbour_table(one: ChosenCloud, table: pd.DataFrame, nearest: Neighbours, metric: Metric) -> None:
    """Neighbours as a table."""
    if not len(nearest.places):
        st.caption("This vector is all zeros: it has no direction, so no cosine. Choose euclidean.")
        return
    rows = table.iloc[nearest.places].copy()
    rows.insert(0, metric, nearest.values)
    st.dataframe(
        rows,
        key=one.prefix + "neighbours_table",
        hide_index=True,
        column_config=columns(rows),
        alt=f"The {len(rows)} nearest neighbours by {metric}",
    )
    st.caption(_among(one, len(table)))


def columns(table: pd.DataFrame) -> dict[str, Any]:
    """How the columns of a table of points look: texts wide, numbers short."""
    number, words = st.column_config.NumberColumn, st.column_config.TextColumn
    settings: dict[str, Any] = {
        name: number(format="%.4f", width="small") for name in ("cosine", "euclidean", "error") if name in table
    }
    settings |= {name: number(width="small") for name in ("row", "length") if name in table}
    for name in table.columns:
        if name not in settings and not pd.api.types.is_numeric_dtype(table[name]):
            long = table[name].astype(str).str.len().max() > 24
            settings[name] = words(width="large" if long else "small")
    return settings


def _among(one: ChosenCloud, kept: int) -> str:
    where = f": {one.where.removesuffix(', ')}" if one.where else ""
    return wording.plain(f"Among {kept:,} points in {one.entry.d} dimensions{where}.")


def _task(one: ChosenCloud) -> str:
    return str(one.view.facts["request"]["task"])


def _columns(lines: Sequence[str], count: int) -> list[list[str]]:
    if count < 2:
        return [list(lines)]
    halves = [line.partition(APART) for line in lines]
    if not any(second.strip() for _, _, second in halves):
        return [list(lines)]  # single texts: read as such
    return [[first.strip() for first, _, _ in halves], [second.strip() for _, _, second in halves]]

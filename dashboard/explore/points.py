"""Tables of map points: the selected points, the user's sentences, and their nearest neighbours."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from dashboard.components.scatter_map import drawn
from dashboard.explore.form import PREFIX, Pane
from dashboard.inputs import set_sections
from dashboard.shared import job_progress, wording
from isoviz.errors import InputError
from isoviz.exploring import maps, results, user_sets
from isoviz.exploring.jobs import SENTENCES
from isoviz.exploring.points import Neighbours, nearest, texts
from isoviz.jobs.queue import JobState
from isoviz.jobs.results import Result


@dataclass(frozen=True)
class Cloud:
    """The points of one view, with their metadata.

    Attributes:
        points: (n, d) float16 or float32, all stored points.
        table: (n) rows, see `ViewResult.table`.
        texts: (n,) text of each point.
        has_texts: whether `texts` are real texts, not only row numbers or names.
    """

    points: NDArray[np.floating]
    table: pd.DataFrame
    texts: list[str]
    has_texts: bool = True


@dataclass(frozen=True)
class Layout:
    """A cloud's map.

    Attributes:
        coordinates: (m, k) coordinates of the drawn points.
        rows: (m,) their indices in the cloud.
        axes: titles of the axes.
        pca: projection for further points; None for UMAP.
        key: key of cloud and settings.
    """

    coordinates: NDArray[np.floating]
    rows: NDArray[np.int64]
    axes: list[str]
    pca: maps.PCAMap | None
    key: str


def cloud_of(pane: Pane) -> Cloud:
    """The points of a pane's cloud; of vectors, also with each row's measures once they are known."""
    cloud = cloud_points(pane.view.folder.name, pane.layer, pane.pooling)
    if not pane.of_vectors:
        return cloud
    return replace(cloud, table=set_sections.measured(cloud.table, pane.view.facts["data_fingerprint"]))


@st.cache_resource(show_spinner=False, max_entries=16, ttl=1800)
def cloud_points(key: str, layer: int, pooling: str) -> Cloud:
    """Shared between sessions and read-only. The points are memory-mapped: 200,000 of a wide model are 300 MB."""
    view = results.get(key)
    table, task = view.table(pooling), user_sets.task_of(view.facts["request"]["task"])
    has_texts = any(name in table for name in task.columns)
    return Cloud(view.mapped(layer, pooling), table, texts(table, task), has_texts)


# -------------------------------------------------------------------------------------------------- selected points

_MOST_ROWS = 2_000
"""Most selected points listed; the download contains all."""


def component(pane: Pane) -> str:
    """Key of the map of a view."""
    return pane.prefix + "map_picture"


def remember(pane: Pane, key: str) -> Any:
    """The callback that writes a drawn line into the address, with the key of its map."""

    def write_line() -> None:
        line = drawn(component(pane))
        st.query_params.pop(pane.prefix + "point", None)
        if len(line) < 3:
            st.query_params.pop(pane.prefix + "lasso", None)
        else:
            st.query_params[pane.prefix + "lasso"] = f"{key}:{maps.line_text(maps.shortened_line(line))}"

    return write_line


def corners(pane: Pane, layout: Layout) -> list[tuple[float, float]]:
    """The line in the address, if it was drawn on this map."""
    key, _, text = st.query_params.get(pane.prefix + "lasso", "").partition(":")
    return (maps.line_of(text) or []) if key == layout.key and layout.coordinates.shape[1] == 2 else []


def _number(text: str) -> int | None:
    # Python refuses to parse numbers with thousands of digits
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


@dataclass
class Shown:
    """One view's map, with what is drawn on it.

    Attributes:
        layout: the map, the state of its job, or the error.
        sentences: the job that embeds the user's sentences; None without sentences.
        placed: coordinates of the sentences in the map, or the state of their job.
    """

    pane: Pane
    cloud: Cloud
    layout: Layout | JobState | InputError | None = None
    sentences: JobState | None = None
    placed: NDArray[np.floating] | JobState | None = None

    @property
    def embedded(self) -> Result | None:
        """The user's sentences as points, once they are embedded."""
        return self.sentences.result if self.sentences is not None and self.sentences.status == "done" else None


def selected(pane: Pane, cloud: Cloud, layout: Layout) -> None:
    """The table of the points inside the line, and the neighbours of the point selected in it."""
    line = corners(pane, layout)
    if not line:
        return
    inside = layout.rows[maps.inside(layout.coordinates, line)]
    with st.container(border=True, key=pane.prefix + "selected"):
        view = f"View {pane.number}: " if pane.views > 1 else ""
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{view}{len(inside):,} of {len(layout.rows):,} points selected**")
            st.button(
                "Clear",
                key=pane.prefix + "clear",
                icon=":material/close:",
                type="tertiary",
                on_click=_clear,
                args=(pane,),
            )
        if not len(inside):
            st.caption("No points inside this line.")
            return
        listed = inside[:_MOST_ROWS]
        if len(listed) < len(inside):
            st.caption(f"Only the first {len(listed):,} are listed; the files below the map have all.")
        table = cloud.table.iloc[listed]
        digest = hashlib.sha256(inside.tobytes()).hexdigest()[:8]
        event = st.dataframe(
            table,
            key=f"{pane.prefix}table_{digest}",
            hide_index=True,
            on_select="rerun",
            selection_mode="single-row",
            height=min(330, 40 + 35 * len(table)),
            column_config=columns(table),
            alt=f"{len(listed)} selected points with their texts, labels and lengths",
        )
        rows = event["selection"]["rows"]
        if rows:
            st.query_params[pane.prefix + "point"] = str(int(listed[rows[0]]))
        _neighbours(pane, cloud)


def _clear(pane: Pane) -> None:
    for name in ("lasso", "point"):
        st.query_params.pop(pane.prefix + name, None)


def _neighbours(pane: Pane, cloud: Cloud) -> None:
    place = _number(st.query_params.get(pane.prefix + "point", ""))
    if place is None or place >= len(cloud.points):
        st.caption("Select a row of the table to see its nearest neighbours.")
        return
    st.markdown(f"Nearest to **{wording.plain(cloud.texts[place])}**")
    near = nearest(cloud.points, cloud.points[place], leave_out=place)
    if not len(near.places):
        st.caption("This vector is all zeros: it has no direction, so no cosine.")
        return
    _near(pane, "neighbours_table", _rows(cloud, near), f"The {len(near.places)} nearest neighbours", len(cloud.points))


# ---------------------------------------------------------------------------------------------------- own sentences

MOST_LINES = 20
MOST_LETTERS = 2_000
"""Most characters of all sentences together, because the address contains them."""
PAIR_SEPARATOR = "||"
"""Separates the two texts of a pair."""
_NEAREST = 3
"""Neighbours listed for each of the user's sentences."""


def sentence_field(panes: list[Pane]) -> list[str]:
    """Field for the user's sentences; returns at most `MOST_LINES` lines."""
    if all(pane.of_vectors for pane in panes):  # sentences need an encoder
        return []
    pairs = any(len(pane.task.inputs) == 2 for pane in panes)
    text = st.text_area(
        "Your own sentences, one per line",
        key=PREFIX + "own",
        bind="query-params",
        height=96,
        placeholder="The cat sat on the mat." + (f" {PAIR_SEPARATOR} A cat was sitting." if pairs else ""),
        help="Embedded by the same model, layer and pooling, and placed in the map. Press Ctrl+Enter, or click elsewhere."
        + (f" Write both texts of a pair on one line, separated by {PAIR_SEPARATOR}." if pairs else ""),
    )
    # no `max_chars`: the field would silently cut longer pasted text
    if text and len(text) > MOST_LETTERS:
        st.caption(f":material/info: Only the first {MOST_LETTERS:,} of {len(text):,} characters are used.")
        text = text[:MOST_LETTERS]
    lines = [line.strip() for line in (text or "").splitlines() if line.strip()]
    if len(lines) > MOST_LINES:
        st.caption(f":material/info: Only the first {MOST_LINES} of {len(lines)} lines are used.")
    return lines[:MOST_LINES]


def embed_sentences(pane: Pane, lines: Sequence[str]) -> JobState | None:
    """State of the job that embeds the lines; None without lines."""
    if not lines or pane.of_vectors:
        return None
    facts = pane.view.facts
    assert pane.form.request is not None
    of_view = ("model", "direction", "allow_random", "prompt", "truncate")
    request = {name: getattr(pane.form.request, name) for name in of_view} | {
        "fingerprint": facts["model_fingerprint"],
        "layer": pane.layer,
        "pooling": pane.pooling,
        "max_length": facts["max_length"],
        "texts": _columns(lines, len(pane.task.inputs)),
    }
    return job_progress.ask(SENTENCES, request)


def labels(sentences: Result) -> list[str]:
    """Label of each of the user's points: its token, or the number of its line."""
    if sentences.facts["tokens"]:
        return list(sentences.facts["tokens"])
    return [f"{int(line) + 1}" for line in sentences.arrays["texts"]]


def neighbours_of(shown: Sequence[Shown], lines: Sequence[str]) -> None:
    """The rows nearest to each of the user's sentences, in the full space."""
    embedded = [(each.pane, each.cloud, each.embedded) for each in shown if each.embedded is not None]
    if not embedded:
        return
    with st.container(border=True, key=PREFIX + "own_neighbours"):
        st.markdown("**Nearest to your sentences**")
        for pane, cloud, sentences in embedded:
            if pane.views > 1:
                st.caption(f"View {pane.number}: {wording.plain(pane.cloud_words)}")
            parts = []
            for line, label, point in zip(
                sentences.arrays["texts"], labels(sentences), sentences.arrays["points"], strict=True
            ):
                part = _rows(cloud, nearest(cloud.points, point, k=_NEAREST))
                token = f"{label} · " if sentences.facts["tokens"] else ""
                part.insert(0, "yours", f"{int(line) + 1}. {token}{lines[int(line)]}")
                parts.append(part)
            alt = f"The {_NEAREST} rows nearest to each of your {len(lines)} sentences"
            _near(pane, "own_table", pd.concat(parts), alt, len(cloud.points))


def _rows(cloud: Cloud, near: Neighbours) -> pd.DataFrame:
    rows = cloud.table.iloc[near.places].copy()
    rows.insert(0, "cosine", near.cosines)
    return rows


def _near(pane: Pane, key: str, rows: pd.DataFrame, alt: str, count: int) -> None:
    """A table of nearest points, of `count` points in all."""
    height = min(400, 40 + 35 * len(rows))
    st.dataframe(rows, key=pane.prefix + key, hide_index=True, column_config=columns(rows), height=height, alt=alt)
    cloud = f": {pane.where.removesuffix(', ')}" if pane.where else ""
    st.caption(wording.plain(f"By cosine, among {count:,} points in {pane.entry.d} dimensions{cloud}."))


def columns(table: pd.DataFrame) -> dict[str, Any]:
    """Column formats of a table of points: wide texts, short numbers."""
    number_column, text_column = st.column_config.NumberColumn, st.column_config.TextColumn
    settings: dict[str, Any] = {
        name: number_column(format="%.4f", width="small") for name in ("cosine", "error") if name in table
    }
    settings |= {name: number_column(width="small") for name in ("row", "length") if name in table}
    for name in table.columns:
        if name not in settings and not pd.api.types.is_numeric_dtype(table[name]):
            long = table[name].astype(str).str.len().max() > 24
            settings[name] = text_column(width="large" if long else "small")
    return settings


def _columns(lines: Sequence[str], count: int) -> list[list[str]]:
    if count < 2:
        return [list(lines)]
    halves = [line.partition(PAIR_SEPARATOR) for line in lines]
    if not any(second.strip() for _, _, second in halves):
        return [list(lines)]  # a task of single texts
    return [[first.strip() for first, _, _ in halves], [second.strip() for _, _, second in halves]]

"""Own sentences: typed, embedded like the rows, placed in the map, with their nearest neighbours; and lists of neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from dashboard import forms, wording
from dashboard.explore.form import PREFIX
from dashboard.explore.shown import Shown
from isoviz import tasks
from isoviz.errors import InputError
from isoviz.exploring import desk, neighbours
from isoviz.exploring.desk import Reply
from isoviz.exploring.neighbours import Metric, Neighbours

if TYPE_CHECKING:
    from dashboard.explore.layouts import Cloud

MOST_LINES = 20
MOST_LETTERS = 2_000
"""Of all lines together that are read: they stand in the address."""
APART = "||"
"""Between the two texts of a pair."""
_NEAREST = 3
"""Neighbours of each own sentence."""


def field(shown: list[Shown]) -> list[str]:
    """The lines that somebody typed, at most `MOST_LINES`."""
    pairs = any(len(tasks.get(_task(one)).inputs) == 2 for one in shown)
    text = st.text_area(
        "Your own sentences, one per line",
        key=PREFIX + "own",
        bind="query-params",
        height=96,
        placeholder="The cat sat on the mat." + (f" {APART} A cat was sitting." if pairs else ""),
        help="Read by the same model, layer and pooling, and placed in the map. Press Ctrl+Enter (or click elsewhere)."
        + (f" The two texts of a pair stand on one line with {APART} between them." if pairs else ""),
    )
    # no limit of the field's own: it would drop without a word what somebody pastes that is longer
    if text and len(text) > MOST_LETTERS:
        st.caption(f":material/info: The first {MOST_LETTERS:,} of {len(text):,} letters are read.")
        text = text[:MOST_LETTERS]
    lines = [line.strip() for line in (text or "").splitlines() if line.strip()]
    if len(lines) > MOST_LINES:
        st.caption(f":material/info: The first {MOST_LINES} of {len(lines)} lines are read.")
    return lines[:MOST_LINES]


def ask(one: Shown, lines: Sequence[str]) -> Reply | None:
    """How the embedding of the lines stands; None if there are none."""
    if not lines:
        return None
    facts = one.view.facts
    assert one.filled.request is not None
    question = {
        "model": one.filled.request.model,
        "fingerprint": facts["model_fingerprint"],
        "layer": one.layer,
        "pooling": one.pooling,
        "max_length": facts["max_length"],
        "direction": one.filled.request.direction,
        "texts": _columns(lines, len(tasks.get(_task(one)).inputs)),
    }
    return desk.ask("sentences", question)


def labels(reply: Reply) -> list[str]:
    """What each own point is called: its token, or the number of its line."""
    if reply.facts["tokens"]:
        return list(reply.facts["tokens"])
    return [f"{int(line) + 1}" for line in reply.arrays["texts"]]


def trouble(reply: Reply | None) -> None:
    """What is told of sentences that are not placed yet, or cannot be."""
    if reply is None or reply.kind == "done":
        return
    if reply.kind == "failed":
        forms.error_beside(forms.sentence(InputError(reply.message, field=reply.field)) + f" {reply.advice}")
        return
    words = "starting" if reply.kind == "waiting" else reply.progress.text
    st.caption(f":material/hourglass_top: Your sentences: {wording.plain(words)} …")


def neighbours_of(
    shown: list[Shown], clouds: Sequence[Cloud], lines: Sequence[str], replies: Sequence[Reply | None]
) -> None:
    """The rows nearest to each own sentence, in the full space."""
    done = [
        (one, cloud, reply)
        for one, cloud, reply in zip(shown, clouds, replies, strict=True)
        if reply is not None and reply.kind == "done"
    ]
    if not done:
        return
    with st.container(border=True, key=PREFIX + "own_neighbours"):
        st.markdown("**Nearest to your sentences**")
        metric = metric_field(PREFIX + "own_")
        for one, cloud, reply in done:
            if one.of > 1:
                st.caption(f"View {one.number}: {wording.plain(one.cloud)}")
            parts = []
            for line, label, point in zip(reply.arrays["texts"], labels(reply), reply.arrays["points"], strict=True):
                found = neighbours.nearest(cloud.points, point, metric=metric, k=_NEAREST)
                part = cloud.table.iloc[found.places].copy()
                part.insert(0, metric, found.values)
                token = f"{label} · " if reply.facts["tokens"] else ""
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
        "Near means",
        neighbours.METRICS,
        default="cosine",
        required=True,
        key=prefix + "near",
        bind="query-params",
        help="cosine: the direction alone, 1 is the same. euclidean: the distance, 0 is the same. Both in all dimensions, not "
        "in the map.",
    )
    return "euclidean" if chosen == "euclidean" else "cosine"


def listed(one: Shown, table: pd.DataFrame, found: Neighbours, metric: Metric) -> None:
    """Neighbours as a table."""
    if not len(found.places):
        st.caption("It has no direction (all zeros), so no cosine with any other.")
        return
    rows = table.iloc[found.places].copy()
    rows.insert(0, metric, found.values)
    st.dataframe(
        rows,
        key=one.prefix + "neighbours_table",
        hide_index=True,
        column_config=columns(rows),
        alt=f"The {len(rows)} nearest neighbours by {metric}",
    )
    st.caption(_among(one, len(table)))


def columns(table: pd.DataFrame) -> dict[str, Any]:
    """How the columns of a table of points are shown: texts wide, numbers short."""
    number, words = st.column_config.NumberColumn, st.column_config.TextColumn
    found: dict[str, Any] = {
        name: number(format="%.4f", width="small") for name in ("cosine", "euclidean", "error") if name in table
    }
    found |= {name: number(width="small") for name in ("row", "length") if name in table}
    for name in table.columns:
        if name not in found and not pd.api.types.is_numeric_dtype(table[name]):
            long = table[name].astype(str).str.len().max() > 24
            found[name] = words(width="large" if long else "small")
    return found


def _among(one: Shown, kept: int) -> str:
    return wording.plain(f"Among {kept:,} points in {one.entry['d']} dimensions: layer {one.layer}, {one.pooling}.")


def _task(one: Shown) -> str:
    return str(one.view.facts["request"]["task"])


def _columns(lines: Sequence[str], count: int) -> list[list[str]]:
    if count < 2:
        return [list(lines)]
    halves = [line.partition(APART) for line in lines]
    if not any(second.strip() for _, _, second in halves):
        return [list(lines)]  # single texts: read as such
    return [[first.strip() for first, _, _ in halves], [second.strip() for _, _, second in halves]]

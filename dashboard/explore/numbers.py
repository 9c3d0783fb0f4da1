"""What was read, and all numbers of it: the first line and the last part of the Explore page."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import downloads, wording
from dashboard.explore import number_table
from dashboard.explore.form import PREFIX, Filled
from dashboard.explore.shown import Shown, file_name, view_names
from dashboard.steady import steady
from isoviz.exploring import results
from isoviz.exploring.results import ViewResult
from isoviz.metrics.catalogue import METRICS

TABLES_AFTER = 1.0
"""Seconds that the first table of a session follows the figures."""
_SEEN = PREFIX + "tables_seen"


@steady
def heading(views: list[ViewResult], all_filled: list[Filled]) -> None:
    """What was read, how, and what a reader must know."""
    for (view, filled), named in _alike(list(zip(views, all_filled, strict=True))):
        facts = view.facts
        seconds = facts["reading_seconds"] + facts["measuring_seconds"]
        model = filled.request.model if filled.request else facts["request"]["model"]
        told = [
            *([f"{named}: {model} on {facts['request']['task']}"] if len(views) > 1 else []),
            f"The first {facts['rows']:,} of {facts['rows_in_split']:,} rows of {facts['request']['split']}",
            *([f"read as {facts['request']['direction']}"] if facts["request"].get("direction") else []),
            f"at most {facts['max_length']} tokens each",
            f"{view.depth} layer{'' if view.depth == 1 else 's'} after the embeddings",
            f"computed in {wording.duration(seconds)} ({facts['device']})",
        ]
        if len(views) == 1:
            kept, limit = wording.size(results.size()), wording.size(results.limit())
            told.append(f"all kept views take {kept}; above {limit} those unseen for longest are removed")
        st.caption(wording.plain(" · ".join(told)))
        notes = [f"Not all numbers are there yet: {_titles(view.pending)}."] if view.pending else []
        for note in [*notes, *facts["warnings"]]:
            st.caption(f":material/info: {wording.plain(note)}")


def _alike(views: list[tuple[ViewResult, Filled]]) -> Iterator[tuple[tuple[ViewResult, Filled], str]]:
    """The first of all views of the same thing, and what they are called together: `View 2`, `Views 1, 3`."""
    alike: dict[tuple[str, str], list[int]] = {}
    for number, (view, filled) in enumerate(views):
        alike.setdefault((view.folder.name, filled.request.model if filled.request else ""), []).append(number)
    for numbers in alike.values():
        yield views[numbers[0]], view_names([number + 1 for number in numbers])


def _titles(measures: Iterable[str]) -> str:
    return ", ".join(METRICS[name].title if name in METRICS else name for name in measures)


@steady
def section(shown: list[Shown]) -> None:
    """Every measure of every layer and pooling, with n, d and notes; downloads."""
    st.subheader("All numbers", anchor=False)
    _figures_first(shown)
    by_view = {id(one.filled): one for one in shown}
    for (_, filled), named in _alike([(one.view, one.filled) for one in shown]):
        one = by_view[id(filled)]
        assert one.filled.request is not None
        request = one.filled.request
        together = one.view.together
        table = number_table.frame([*one.view.entries, *([together] if together else [])])
        about = (
            f"{request.model} on {request.task} ({request.split}, {one.view.facts['rows']} rows), by layer and pooling."
        )
        notes = [number_table.of_shrinkage(one.view.facts["shrinkage"])]
        if together:
            notes.insert(0, f"The line without a layer: {number_table.of_layers(together)}.")
        caption = " ".join([about, *notes])
        if len(shown) > 1:
            st.markdown(f"**{named}**: {wording.plain(about)}")
        st.dataframe(
            table.rename(columns=number_table.COLUMNS),
            key=one.prefix + "numbers",
            hide_index=True,
            column_config=_columns(table),
            placeholder="–",
            alt=f"Every measure of {len(table)} clouds, one line per layer and pooling",
        )
        st.caption(wording.plain(" ".join(notes)))
        # the number keeps the keys apart when two views are of the same thing
        name = file_name(one) if one.number == 1 else f"{file_name(one)}-view{one.number}"
        downloads.buttons(name, table, functools.partial(number_table.latex, table, caption), parquet_too=True)


def _figures_first(shown: list[Shown]) -> None:
    """In a new tab, let the browser draw what it has got before it loads a megabyte of scripts for its first table."""
    first = not st.session_state.get(_SEEN)
    st.session_state[_SEEN] = True
    if first and not any(one.view.pending for one in shown):  # else somebody waited for it here, and the tab is not new
        time.sleep(TABLES_AFTER)


def _columns(table: pd.DataFrame) -> dict[str, Any]:
    words, told = number_table.COLUMNS, number_table.HELP
    fine = ("isoscore", "isoscore_star", "isoscore_unbiased", "low", "high", "ev_1", "mean_cosine", "abs_correlation")
    coarse = ("participation_ratio", "effective_rank", "twonn", "mean_norm")
    small = ("sigma_min", "sigma_median", "sigma_max")
    formats = dict.fromkeys(fine, "%.4f") | dict.fromkeys(coarse, "%.2f") | dict.fromkeys(small, "%.3g")
    return {
        **{words[name]: st.column_config.Column(help=told[name]) for name in told},
        **{
            words[name]: st.column_config.NumberColumn(format=how, help=told.get(name)) for name, how in formats.items()
        },
        words["notes"]: st.column_config.TextColumn(width="large"),
    }

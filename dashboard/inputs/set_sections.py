"""Sections on a stored set of vectors: sorted lists of its rows, and its slices. A folded section computes nothing."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from dashboard.components import figure
from dashboard.shared import downloads, job_progress, theme, wording
from dashboard.shared.forms import choice
from isoviz import vectors
from isoviz.errors import shortened
from isoviz.formatting import decimals
from isoviz.jobs import queue
from isoviz.jobs.results import Result
from isoviz.metrics.each_row import Order, Rows
from isoviz.operations.jobs import OF_SET
from isoviz.readouts.slices import LENGTH, Slice
from isoviz.vectors.sets import facts_of

ROWS: Final = "Hubs, rows never found, near-duplicates"
SLICES: Final = "By slice"
GATE: Final = "A gate in CI, on files or a database"
_SEARCH: Final = " --queries questions.parquet --pairs relevance.csv"
_CHECK: Final = """\
# once (or the file below), then in CI
isoviz check {file}{saved} --save baseline.json
isoviz check {file}{paired} --baseline baseline.json --fail-on {limits} --strict"""
_LISTS: Final[tuple[Order, ...]] = ("hubs", "never found", "near-duplicates")
_LISTED: Final = 100
_NAMED: Final = 5
_COLOURS: Final = ("N_10", "reciprocity", "local dimension", "share of queries")
"""Columns that a map can be coloured by."""


def draw(key: str, prefix: str) -> None:
    """Both sections, folded."""
    _fold(ROWS, prefix + "rows", lambda: rows(key, prefix))
    draw_slices(key, prefix)
    _fold(GATE, prefix + "gate", lambda: gate(key, prefix))


def draw_slices(key: str, prefix: str, what: str = "slices") -> None:
    """The slices, folded; nothing for a set without a column to slice by. `what`: see `OF_SET`."""
    if columns_of(key):
        _fold(SLICES, prefix + "slices", lambda: slices(key, prefix, what))


def _fold(title: str, name: str, content: Callable[[], None]) -> None:
    panel = st.expander(title, key=name, bind="query-params")
    if panel.open:
        with panel:
            content()


def columns_of(key: str) -> list[str]:
    """What a set can be sliced by."""
    facts = facts_of(key) or {}
    known = (
        ("label",) if facts.get("relation") == "relevance" else ("group", "label")
    )  # a search's groups are its two sides
    columns = facts.get("columns", [])
    return [*(name for name in known if name in columns), *([LENGTH] if "text" in columns else [])]


def result(key: str, prefix: str, what: str, **more: Any) -> Result | None:
    """The result of an `OF_SET` job, or its progress."""
    state = job_progress.ask(OF_SET, {"vectors": key, "what": what, **more})
    if state.status != "done":
        job_progress.follow(OF_SET, state, key=f"{prefix}{what}_stop", retry=True)
    return state.result if state.status == "done" else None


# ----------------------------------------------------------------------------------------------------------------- rows


def rows(key: str, prefix: str) -> None:
    """How unevenly rows are found, and lists of the most telling ones."""
    found = result(key, prefix, "rows")
    if found is None:
        return
    table = _rows(found)
    st.markdown(" ".join(table.sentences))
    by: Any = choice(
        "List",
        list(_LISTS),
        prefix + "row_list",
        "hubs: found most often. near-duplicates: the nearest pairs.",
    )
    order, columns = table.order(by), vectors.load(key).columns
    if not len(order):
        st.caption("There are none.")

    def frame(some: Any) -> pd.DataFrame:
        measures = pd.DataFrame(table.table(some))
        known = columns.iloc[table.row[some]].reset_index(drop=True)
        if "text" in columns and by == "near-duplicates":
            known["nearest text"] = columns["text"].iloc[table.nearest[some]].to_numpy()
        return pd.concat([measures[["row"]], known, measures.drop(columns="row")], axis=1)

    st.dataframe(frame(order[:_LISTED]), hide_index=True, height=330, alt=f"{by}: rows with their texts and measures")
    st.caption(
        f"{min(len(order), _LISTED):,} of {len(order):,} listed; the files have all {len(table.row):,} rows. Nearness is by cosine, and "
        "copies of a row count once."
    )
    downloads.buttons("rows", lambda: frame(slice(None)), key=prefix)


def _rows(found: Result) -> Rows:
    return Rows(n=found.facts["n"], queries=found.facts["queries"], **found.arrays)


def measured(table: pd.DataFrame, key: str) -> pd.DataFrame:
    """A map's table, with the measures of each row if they are known."""
    found = queue.look(OF_SET, queue.content_key(OF_SET, {"vectors": key, "what": "rows"}, None)).result
    if found is None or "row" not in table:
        return table
    of_rows, place = _rows(found), table["row"].to_numpy()
    size = 1 + max(int(place.max(initial=0)), int(of_rows.row.max()))
    known = {}
    for name, values in of_rows.table().items():
        if name in _COLOURS:
            every = np.full(size, np.nan)
            every[of_rows.row] = values
            known[name] = every[place]
    return table.assign(**known)


# --------------------------------------------------------------------------------------------------------------- slices


def slices(key: str, prefix: str, what: str = "slices") -> None:
    """A table of every measure by slice, and one of them as dots with intervals."""
    by = choice("Slice by", columns_of(key), prefix + "slice_by", "length: quartiles of the number of characters.")
    found = result(key, prefix, what, by=by)
    if found is None:
        return
    undefined = {None: np.nan}
    every = [
        Slice(**{name: undefined.get(value, value) for name, value in one.items()}) for one in found.facts["slices"]
    ]
    show_slices(every, prefix)


def show_slices(every: list[Slice], prefix: str) -> None:
    """What differs from the rest, one measure as dots, and all measures as a table."""
    if not every:
        st.caption("No measure has units in two slices.")
        return
    measures = list(dict.fromkeys(one.measure for one in every))
    measure = str(st.selectbox("Measure", measures, key=prefix + "slice_measure", bind="query-params"))
    shown = [one for one in every if one.measure == measure]
    apart = [
        f"{one.slice} {one.verdict.removeprefix('differs ')}" for one in shown if one.verdict.startswith("differs")
    ]
    more = f" and {len(apart) - _NAMED:,} more" if len(apart) > _NAMED else ""
    words = (
        f"different from the rest: {'; '.join(apart[:_NAMED])}{more}"
        if apart
        else "no slice is shown to differ from the rest"
    )
    st.markdown(
        f"**{wording.plain(f'{measure}: {words}.')}** {len(every):,} tests of all measures, corrected by Holm's method."
    )
    figure.draw(
        dots(shown),
        key=prefix + "slices_figure",
        words=f"{measure} of {len(shown)} slices with 95 % intervals",
        caption="Bars: 95 % intervals. Open marks: the rest of the set.",
    )
    table = pd.DataFrame([{**vars(one), "differs from the rest": one.verdict} for one in every])
    height = min(330, 37 + 35 * len(table))
    st.dataframe(table, hide_index=True, height=height, alt="Every measure of every slice")
    downloads.buttons("slices", table, key=prefix)


# ----------------------------------------------------------------------------------------------------------------- gate


def gate(key: str, prefix: str) -> None:
    """The command that fails when these vectors change, and the baseline that it compares with."""
    found, facts = result(key, prefix, "baseline"), facts_of(key)
    if found is None or facts is None:
        return
    baseline, limits = found.facts["baseline"], "neighbour_recall10"
    paired = search = "" if baseline["named"] else " --same-rows"
    scores = np.array(list(baseline["searches"].values()))
    sentence = f"The gate fails when these {baseline['n']:,} rows lose one in ten of their nearest rows of today."
    if len(scores):
        search, paired, limits = _SEARCH, _SEARCH + paired, "ndcg10=0.01"
        today = f"nDCG@10 is {decimals(scores[:, 0].mean())} on {len(scores):,} questions today."
        sentence = f"{today} The gate fails when it falls by more than 1 point."
    st.markdown(f"**{sentence}**")
    file = shlex.quote(facts["name"])
    lines = _CHECK.format(file=file, saved=search.replace(" --same-rows", ""), paired=paired, limits=limits)
    st.code(lines, language="bash", wrap_lines=True)
    st.caption(
        "Exit code 1: a measure changed beyond its tolerance or, with *--strict*, the rows cannot exclude it. The file may also be the "
        "address of a database, such as `postgresql://host/db?table=docs`: a random sample of its rows is read, nothing is written."
    )
    downloads.button("Baseline (JSON)", lambda: json.dumps(baseline), "baseline.json", key=prefix + "baseline")


def dots(shown: list[Slice]) -> go.Figure:
    """A measure of each slice with its interval, and of the rest."""
    names = [one.slice for one in shown]
    plot, rest = go.Figure(), {"size": 9, "symbol": "circle-open", "color": theme.PALETTE[1]}
    values = [one.value for one in shown]
    bars = theme.error_bars(values, [(one.low, one.high) for one in shown])
    own = {"size": 9, "color": theme.PALETTE[0]}
    plot.add_scatter(x=values, y=names, mode="markers", error_x=bars, name="slice", marker=own)
    plot.add_scatter(x=[one.rest for one in shown], y=names, mode="markers", name="the rest", marker=rest)
    axis = {"autorange": "reversed", "tickvals": names, "ticktext": [shortened(name, 24) for name in names]}
    return theme.titled(plot, shown[0].measure, "", height=140 + 34 * len(shown), yaxis=axis)

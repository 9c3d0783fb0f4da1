"""Sections of the Explore page: ask, wait, what was read, and all numbers. The figures are in `explore_views`, the map in
`explore_map`."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import downloads, explore_figures, explore_tables, forms, job_progress, resources, wording
from dashboard.components.figure import draw
from dashboard.explore_form import PREFIX, Filled, forget_hub_models
from dashboard.explore_views import Shown, file_name
from dashboard.job_progress import Waited
from dashboard.logs import read_tail
from dashboard.steady import steady
from isoviz.errors import InputError, IsoVizError
from isoviz.exploring import jobs, results
from isoviz.exploring.jobs import State
from isoviz.exploring.results import ViewResult
from isoviz.metrics.catalogue import METRICS

TABLES_AFTER = 1.0
"""Seconds that the first table of a session follows the figures."""
_SEEN = PREFIX + "tables_seen"


@steady
def ask(all_filled: list[Filled]) -> list[ViewResult]:
    """The button, the progress of jobs that run, what went wrong, or what will be here; the views, once all are there.

    A view is there as soon as it has pictures, though some of its numbers may still be on their way.
    """
    states = [jobs.look(filled.key) if filled.key else State("none") for filled in all_filled]
    if any(state.kind != "done" for state in states):
        resources.expect_views()
    ready = all(filled.request is not None for filled in all_filled)
    kinds = {state.kind for state in states}
    label = "Look again" if kinds & {"failed", "lost"} else "Look"
    if st.button(
        label,
        key=PREFIX + "look",
        type="primary",
        icon=":material/visibility:",
        disabled=not ready or kinds <= {"running", "done"},
    ):
        states = [
            state if state.kind in ("running", "done") else _started(filled)
            for filled, state in zip(all_filled, states, strict=True)
        ]
    found: list[ViewResult] = []
    quiet = True
    running: dict[str, list[int]] = {}
    progress = st.container()
    for number, (filled, state) in enumerate(zip(all_filled, states, strict=True), start=1):
        quiet &= state.kind in ("none", "done")
        view = results.find(filled.key) if filled.key else None
        if state.kind == "running" and filled.key is not None:
            running.setdefault(filled.key, []).append(number)
        elif state.kind in ("failed", "lost"):
            _trouble(filled, state)
        if view is not None:
            found.append(view)
    if running:
        with progress:
            # nothing else is on the page yet: its first pictures are looked for closely
            patience = 0.0 if found else job_progress.TICK - 0.1
            watched = _waited(running, len(all_filled))
            job_progress.watch(watched, key=PREFIX + "stop", patience=patience, before=forget_hub_models)
    if len(found) == len(all_filled):
        return found
    if quiet:
        _nothing_yet(all_filled)
    if kinds <= {"none", "running", "done"}:
        _soon()
    return []


def _started(filled: Filled) -> State:
    assert filled.request is not None and filled.key is not None
    try:
        return jobs.start(filled.request, filled.key)
    except IsoVizError as error:
        return State("failed", message=str(error), field=error.field, advice=error.advice or "")


def _waited(running: dict[str, list[int]], of: int) -> list[Waited]:
    """The jobs that run, each once, by the numbers of the views that wait for it."""
    found = []
    for key, numbers in running.items():
        view = results.find(key)
        news = functools.partial(_news, key, None if view is None else view.pending)
        look, stop = functools.partial(jobs.look, key), functools.partial(jobs.stop, key)
        found.append(Waited(_views(numbers) if of > 1 else "", look, stop, news))
    return found


def _news(key: str, pending: tuple[str, ...] | None) -> bool:
    """Whether there are pictures (`pending` is None where there were none), or more numbers than all but those that were."""
    view = results.find(key)
    return view is not None and view.pending != pending


def _trouble(filled: Filled, state: State) -> None:
    """Why there is no view, beside the field it is about; the log where it may tell more."""
    error = InputError(state.message, field=state.field)
    advice = f" {state.advice}" if state.advice else ""
    with filled.place_of(state.field) or st.container():
        forms.error_beside(forms.sentence(error) + advice)
    text = None if state.log is None else read_tail(state.log)
    if text and (state.kind == "lost" or state.field is None):
        with st.expander("Log", icon=":material/terminal:"):
            st.code(text, language=None, wrap_lines=True, height=240)


def _soon() -> None:
    """Empty axes where the first picture will be: the browser loads what draws it before there is something to draw."""
    figure = explore_figures.layer_profile([], "isoscore", "")
    figure.update_layout(height=220)
    words = "Empty axes: a measure of every layer will be drawn here"
    draw(figure, key=PREFIX + "soon", words=words)


def _nothing_yet(all_filled: list[Filled]) -> None:
    """The page before the first look."""
    with st.container(border=True):
        st.markdown("#### Nothing to see yet")
        st.markdown(
            "Each row of the task goes through the encoder once. Every layer then becomes a cloud of points: how evenly it "
            "spreads, which dimensions stand out, how the layers differ. Press *Look*; the bundled model takes well under a minute."
        )
        for filled in all_filled:
            if filled.request is None:
                continue
            rows = min(filled.request.max_rows, filled.rows_in_split)
            st.caption(f"To be read: the first {rows:,} of {filled.rows_in_split:,} rows of {filled.request.split}.")


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
        yield views[numbers[0]], _views([number + 1 for number in numbers])


def _views(numbers: list[int]) -> str:
    """`View 2`, `Views 1, 3`."""
    return f"View{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def _titles(measures: Iterable[str]) -> str:
    return ", ".join(METRICS[name].title if name in METRICS else name for name in measures)


@steady
def numbers(shown: list[Shown]) -> None:
    """Every measure of every layer and pooling, with n, d and notes; downloads."""
    st.subheader("All numbers", anchor=False)
    _figures_first(shown)
    by_view = {id(one.filled): one for one in shown}
    for (_, filled), named in _alike([(one.view, one.filled) for one in shown]):
        one = by_view[id(filled)]
        assert one.filled.request is not None
        request = one.filled.request
        together = one.view.together
        table = explore_tables.frame([*one.view.entries, *([together] if together else [])])
        about = (
            f"{request.model} on {request.task} ({request.split}, {one.view.facts['rows']} rows), by layer and pooling."
        )
        notes = [explore_tables.of_shrinkage(one.view.facts["shrinkage"])]
        if together:
            notes.insert(0, f"The line without a layer: {explore_tables.of_layers(together)}.")
        caption = " ".join([about, *notes])
        if len(shown) > 1:
            st.markdown(f"**{named}**: {wording.plain(about)}")
        st.dataframe(
            table.rename(columns=explore_tables.COLUMNS),
            key=one.prefix + "numbers",
            hide_index=True,
            column_config=_columns(table),
            placeholder="–",
            alt=f"Every measure of {len(table)} clouds, one line per layer and pooling",
        )
        st.caption(wording.plain(" ".join(notes)))
        # the number keeps the keys apart when two views are of the same thing
        name = file_name(one) if one.number == 1 else f"{file_name(one)}-view{one.number}"
        downloads.buttons(name, table, functools.partial(explore_tables.latex, table, caption), parquet_too=True)


def _figures_first(shown: list[Shown]) -> None:
    """In a new tab, let the browser draw what it has got before it loads a megabyte of scripts for its first table."""
    first = not st.session_state.get(_SEEN)
    st.session_state[_SEEN] = True
    if first and not any(one.view.pending for one in shown):  # else somebody waited for it here, and the tab is not new
        time.sleep(TABLES_AFTER)


def _columns(table: pd.DataFrame) -> dict[str, Any]:
    words, told = explore_tables.COLUMNS, explore_tables.HELP
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

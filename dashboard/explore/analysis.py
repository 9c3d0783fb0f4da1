"""From the form of Explore to its views: the button that has them computed, the wait, what went wrong, and what was read."""

from __future__ import annotations

import functools
from collections.abc import Iterable

import streamlit as st

from dashboard import actions, examples, job_progress, measures, reading, resources, wording
from dashboard.components.figure import draw
from dashboard.explore import figures
from dashboard.explore.form import MY_TEXTS, MY_VECTORS, PREFIX, Filled, alike, forget_hub_models, view_names
from dashboard.job_progress import Waited
from dashboard.steady import steady
from isoviz import metrics
from isoviz.demo import EXAMPLE
from isoviz.errors import IsoVizError
from isoviz.exploring import own, results
from isoviz.exploring.jobs import VIEW
from isoviz.exploring.results import ViewResult
from isoviz.jobs import queue
from isoviz.jobs.queue import JobState

_FIRST_AT_ONCE = 10_000_000
"""Numbers of a set of vectors whose first pictures take a second or two."""

_BEFORE_A_TASK = (
    "Pick a model and a task, then press Analyse",
    "Each row of the task goes through the encoder once. You then see how evenly each "
    "layer's vectors spread, which dimensions stand out and how the layers differ. The bundled model takes well under a minute.",
)
_BEFORE = {
    MY_TEXTS: (
        "Paste or upload texts",
        "Each text goes through the encoder once, and every layer becomes a cloud of points. Labels are optional: they colour the map.",
    ),
    MY_VECTORS: (
        "Upload vectors, or name a file",
        "You get every measure of isotropy, the spectrum, the cosines and a map. Labels are optional: they colour the map.",
    ),
}
"""What a page without a view says: title and text."""

# --------------------------------------------------------------------------------------- from the form to the views


@steady
def ask(all_filled: list[Filled]) -> list[ViewResult]:
    """The button, the progress of jobs that run, what went wrong, or what will be here; the views, once all are there.

    A view is there as soon as it has pictures, though some of its numbers may still be on their way.
    """
    states = [queue.look(VIEW, filled.key) if filled.key else JobState("none") for filled in all_filled]
    if any(state.status != "done" for state in states):
        resources.expect_jobs()
    ready = all(filled.request is not None for filled in all_filled)
    if ready and resources.service().refusal() is None:
        states = [
            _at_once(filled) if filled.at_once and state.status == "none" else state
            for filled, state in zip(all_filled, states, strict=True)
        ]
    statuses = {state.status for state in states}
    needed = statuses & {"failed", "lost"} or any(filled.at != MY_VECTORS for filled in all_filled)
    settled = {"waiting", "running", "done"}
    if needed and actions.button(
        "Retry" if statuses & {"failed", "lost"} else "Analyse",
        key=PREFIX + "look",
        type="primary",
        icon=":material/visibility:",
        disabled=not ready or statuses <= settled,
    ):
        states = [
            state if state.status in settled else _started(filled)
            for filled, state in zip(all_filled, states, strict=True)
        ]
    views: list[ViewResult] = []
    quiet = True
    running: dict[str, list[int]] = {}
    progress = st.container()
    for number, (filled, state) in enumerate(zip(all_filled, states, strict=True), start=1):
        quiet &= state.status in ("none", "done")
        view = results.find(filled.key) if filled.key else None
        if state.under_way and filled.key is not None:
            running.setdefault(filled.key, []).append(number)
        elif state.in_trouble:
            job_progress.trouble(state, place=filled.place_of(state.field))
        if view is not None:
            views.append(view)
    if running:
        with progress:
            # nothing else is on the page yet: its first pictures are looked for closely
            patience = 0.0 if views else job_progress.TICK - 0.1
            watched = _waited(running, len(all_filled))
            job_progress.watch(watched, key=PREFIX + "stop", patience=patience, before=forget_hub_models)
    if len(views) == len(all_filled):
        return views
    if quiet:
        _nothing_yet(all_filled)
    if ready and statuses <= {"none", *settled}:
        _soon()
    return []


def _at_once(filled: Filled) -> JobState:
    """Start what needs no button; of a set of vectors that is not large, its first pictures are here when this returns."""
    assert filled.request is not None and filled.key is not None and filled.taken is not None
    small = filled.taken.kind == "vectors" and filled.taken.n * filled.taken.d <= _FIRST_AT_ONCE
    if small and results.find(filled.key) is None:
        try:
            resources.service().show_vectors(filled.request, filled.key, reading.still_wanted())
        except IsoVizError as error:
            return JobState("failed", message=str(error), field=error.field, advice=error.advice or "")
        return JobState("none")  # the rest begins once these are on the screen: see `complete`
    return _started(filled)


def complete(all_filled: list[Filled]) -> None:
    """At the end of the page: have the slow measures computed of views whose first pictures have just been drawn.

    A process that started before would take the processor from them.
    """
    waiting = [filled for filled in all_filled if filled.at_once and filled.key and results.find(filled.key)]
    begun = [filled for filled in waiting if queue.look(VIEW, filled.key or "").status == "none"]
    if not begun or resources.service().refusal() is not None:
        return
    if any(state.status in ("waiting", "running", "done") for state in map(_started, begun)):
        st.rerun()


def _started(filled: Filled) -> JobState:
    assert filled.request is not None and filled.key is not None
    try:
        return resources.service().start_view(filled.request, filled.key)
    except IsoVizError as error:
        return JobState("failed", message=str(error), field=error.field, advice=error.advice or "")


def _waited(running: dict[str, list[int]], view_count: int) -> list[Waited]:
    """The jobs that run, each once, by the numbers of the views that wait for it."""
    jobs_waited_for = []
    for key, numbers in running.items():
        view = results.find(key)
        news = functools.partial(_news, key, None if view is None else view.pending)
        look, stop = (
            functools.partial(queue.look, VIEW, key),
            functools.partial(resources.service().stop_job, VIEW, key),
        )
        jobs_waited_for.append(Waited(view_names(numbers) if view_count > 1 else "", look, stop, news))
    return jobs_waited_for


def _news(key: str, pending: tuple[str, ...] | None) -> bool:
    """Whether there are pictures (`pending` is None where there were none), or more numbers than all but those that were."""
    view = results.find(key)
    return view is not None and view.pending != pending


def _soon() -> None:
    """Empty axes where the first picture will be: the browser loads what draws it before there is something to draw."""
    figure = figures.layer_profile([], measures.of_clouds()[0].slug, "")
    figure.update_layout(height=220)
    words = "Empty axes: a measure of every layer will be drawn here"
    draw(figure, key=PREFIX + "soon", words=words)


def _nothing_yet(all_filled: list[Filled]) -> None:
    """The page before the first look."""
    title, text = _BEFORE.get(all_filled[0].at, _BEFORE_A_TASK)
    with st.container(border=True):
        st.markdown(f"#### {title}")
        st.markdown(text)
        for filled in all_filled:
            if filled.request is None or filled.at_once:
                continue
            rows = min(filled.request.max_rows, filled.rows_in_split)
            what = "texts" if filled.taken else f"rows of {filled.request.split}"
            st.caption(f"Reads the first {rows:,} of {filled.rows_in_split:,} {what}.")


# --------------------------------------------------------------------------------------------------- what was read


@steady
def heading(views: list[ViewResult], all_filled: list[Filled]) -> None:
    """What was read, how, and what a reader must know."""
    for (view, filled), named in alike(list(zip(views, all_filled, strict=True))):
        facts = view.facts
        seconds = facts["reading_seconds"] + facts["measuring_seconds"]
        model = filled.request.model if filled.request else facts["request"]["model"]
        parts = _read_parts(view, filled, seconds)
        if len(views) > 1:
            of = f"{model} on {facts['request']['task']}" if filled.taken is None else filled.taken.name
            parts.insert(0, f"{named}: {of}")
        is_example = view.folder.name.startswith(EXAMPLE)
        if len(views) == 1 and not is_example:
            kept, limit = wording.size(results.STORE.size()), wording.size(results.STORE.limit())
            parts.append(f"cached views use {kept} of {limit}; the least recently used are removed first")
        st.caption(f"{examples.BADGE} " * is_example + wording.plain(" · ".join(parts)))
        notes = [f"Still being computed: {_titles(view.pending)}."] if view.pending else []
        for note in [*notes, *facts["warnings"]]:
            st.caption(f":material/info: {wording.plain(note)}")


def _read_parts(view: ViewResult, filled: Filled, seconds: float) -> list[str]:
    """What was read of a view, and how."""
    facts, request = view.facts, view.facts["request"]
    computed = f"computed in {wording.duration(seconds)} ({facts['device']})"
    if request["task"] == own.VECTORS:
        return [f"{facts['name']}: {facts['rows']:,} vectors", computed]
    rows = f"{facts['rows']:,} of {facts['rows_in_split']:,}"
    what = f"rows of {request['split']}" if filled.taken is None else f"texts of {filled.taken.name}"
    return [
        f"The first {rows} {what}",
        *([f"read as {request['direction']}"] if request.get("direction") else []),
        *([f"prompt {request['prompt']}"] if request.get("prompt") else []),
        *([f"first {request['truncate']} dimensions of sentence vectors"] if request.get("truncate") else []),
        f"at most {facts['max_length']} tokens each",
        f"{view.depth} layer{'' if view.depth == 1 else 's'} after the embeddings",
        computed,
    ]


def _titles(measures: Iterable[str]) -> str:
    return ", ".join(metrics.get(name).title if name in metrics.catalogue() else name for name in measures)

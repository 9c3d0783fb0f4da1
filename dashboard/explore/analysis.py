"""Computing the views of Explore: the button, progress, errors, and the summary of the data read."""

from __future__ import annotations

import functools

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.explore.form import MY_TEXTS, MY_VECTORS, PREFIX, ViewForm, distinct, view_names
from dashboard.inputs import model_form
from dashboard.shared import actions, examples, job_progress, reading, resources, wording
from dashboard.shared.job_progress import WatchedJob
from dashboard.shared.stable import stable
from isoviz import metrics
from isoviz.demo import EXAMPLE
from isoviz.errors import IsoVizError
from isoviz.exploring import results, user_sets
from isoviz.exploring.jobs import VIEW
from isoviz.exploring.results import ViewResult
from isoviz.jobs import queue
from isoviz.jobs.queue import JobState

_FIRST_AT_ONCE = 10_000_000
"""Largest n × d of vectors whose first figures take a second or two."""

_FIRST_SECONDS = 3.0
"""Longest that the page waits for a view's first figures after *Analyse*, before it offers to stop."""

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
"""Empty state of the page: title and text."""

# --------------------------------------------------------------------------------------- computing views


@stable
def obtain(view_forms: list[ViewForm], place: DeltaGenerator) -> list[ViewResult]:
    """Draw the button at its place, progress, errors or the empty state; return the views once all exist.

    A view exists as soon as it has figures, even while some of its measures are still being computed.
    """
    states = [queue.look(VIEW, form.key) if form.key else JobState("none") for form in view_forms]
    if any(state.status != "done" for state in states):
        resources.expect_jobs()
    ready = all(form.request is not None for form in view_forms)
    if ready and resources.service().refusal() is None:
        states = [
            _started_automatically(form) if form.automatic and state.status == "none" else state
            for form, state in zip(view_forms, states, strict=True)
        ]
    statuses = {state.status for state in states}
    needed = statuses & {"failed", "lost"} or any(form.source != MY_VECTORS for form in view_forms)
    settled = {"waiting", "running", "done"}
    with place:
        pressed = needed and actions.button(
            "Retry" if statuses & {"failed", "lost"} else "Analyse",
            key=PREFIX + "look",
            type="primary",
            icon=":material/visibility:",
            disabled=not ready or statuses <= settled,
        )
    if pressed:
        both = zip(view_forms, states, strict=True)
        states = [state if state.status in settled else _started(form) for form, state in both]
    first, progress, blank = st.empty(), st.container(), st.empty()
    if pressed and (running := _running(view_forms, states)):
        job_progress.await_news(running, _FIRST_SECONDS, first, before=model_form.forget)
        states = [queue.look(VIEW, form.key) if form.key else JobState("none") for form in view_forms]
    views: list[ViewResult] = []
    quiet = True
    for form, state in zip(view_forms, states, strict=True):
        quiet &= state.status in ("none", "done")
        view = results.find(form.key) if form.key else None
        if state.in_trouble:
            st.session_state[PREFIX + "change"] = True  # the message may be beside a field
            job_progress.trouble(state, place=form.error_slots.get(state.field or ""))
        if view is not None:
            views.append(view)
    if running := _running(view_forms, states):
        with progress:
            job_progress.watch(running, key=PREFIX + "stop", before=model_form.forget)
    if len(views) == len(view_forms):
        return views
    if quiet:
        _empty_state(view_forms, blank)
    return []


def _started_automatically(form: ViewForm) -> JobState:
    """Start a view that needs no button. The first figures of a small set of vectors are ready on return."""
    assert form.request is not None and form.key is not None and form.own_set is not None
    if form.own_set.n * form.own_set.d <= _FIRST_AT_ONCE and results.find(form.key) is None:
        try:
            resources.service().show_vectors(form.request, form.key, reading.still_wanted())
        except IsoVizError as error:
            return JobState("failed", message=str(error), field=error.field, advice=error.advice or "")
        return JobState("none")  # the other measures start once these figures are on screen: see `complete`
    return _started(form)


def complete(view_forms: list[ViewForm]) -> None:
    """At the end of the page: start the slow measures of views whose first figures have just been drawn.

    Started earlier, they would delay the figures.
    """
    waiting = [form for form in view_forms if form.automatic and form.key and results.find(form.key)]
    incomplete = [form for form in waiting if queue.look(VIEW, form.key or "").status == "none"]
    if not incomplete or resources.service().refusal() is not None:
        return
    if any(state.status in ("waiting", "running", "done") for state in map(_started, incomplete)):
        st.rerun()


def _started(form: ViewForm) -> JobState:
    assert form.request is not None and form.key is not None
    try:
        return resources.service().start_view(form.request, form.key)
    except IsoVizError as error:
        return JobState("failed", message=str(error), field=error.field, advice=error.advice or "")


def _running(view_forms: list[ViewForm], states: list[JobState]) -> list[WatchedJob]:
    """The running jobs, each once, with the numbers of the views that wait for it."""
    watched = []
    running: dict[str, list[int]] = {}
    for number, (form, state) in enumerate(zip(view_forms, states, strict=True), start=1):
        if state.under_way and form.key is not None:
            running.setdefault(form.key, []).append(number)
    for key, numbers in running.items():
        view = results.find(key)
        pending = None if view is None else view.pending  # None before the first figures

        def news(key: str = key, pending: tuple[str, ...] | None = pending) -> bool:
            now = results.find(key)
            return now is not None and now.pending != pending

        look = functools.partial(queue.look, VIEW, key)
        stop = functools.partial(resources.service().stop_job, VIEW, key)
        watched.append(WatchedJob(view_names(numbers) if len(view_forms) > 1 else "", look, stop, news))
    return watched


def _empty_state(view_forms: list[ViewForm], place: DeltaGenerator) -> None:
    """The page before the first analysis, in an empty element."""
    title, text = _BEFORE.get(view_forms[0].source, _BEFORE_A_TASK)
    with place.container(border=True):
        st.markdown(f"## {title}")
        st.markdown(text)


# --------------------------------------------------------------------------------------------------- summary of the data


@stable
def heading(views: list[ViewResult], view_forms: list[ViewForm], place: DeltaGenerator) -> None:
    """Summary of the data read, at its place among the fields, and notes."""
    for (view, form), named in distinct(list(zip(views, view_forms, strict=True))):
        facts = view.facts
        seconds = facts["reading_seconds"] + facts["measuring_seconds"]
        model = form.request.model if form.request else facts["request"]["model"]
        parts = _read_parts(view, form, seconds)
        if len(views) > 1:
            of = f"{model} on {facts['request']['task']}" if form.own_set is None else form.own_set.name
            parts.insert(0, f"{named}: {of}")
        is_example = view.folder.name.startswith(EXAMPLE)
        place.caption(f"{examples.BADGE} " * is_example + wording.plain(" · ".join(parts)))
        titles = (metrics.get(name).title if name in metrics.catalogue() else name for name in view.pending)
        notes = [f"Still being computed: {', '.join(titles)}."] if view.pending else []
        for note in [*notes, *facts["warnings"]]:
            st.caption(f":material/info: {wording.plain(note)}")


def _read_parts(view: ViewResult, form: ViewForm, seconds: float) -> list[str]:
    """Parts of the summary of a view's data."""
    facts, request = view.facts, view.facts["request"]
    computed = f"computed in {wording.duration(seconds)} ({facts['device']})"
    if request["task"] == user_sets.VECTORS:
        return [f"{facts['name']}: {facts['rows']:,} vectors", computed]
    rows = f"{facts['rows']:,} of {facts['rows_in_split']:,}"
    what = f"rows of {request['split']}" if form.own_set is None else f"texts of {form.own_set.name}"
    return [
        f"The first {rows} {what}",
        *([f"read as {request['direction']}"] if request.get("direction") else []),
        *([f"prompt {request['prompt']}"] if request.get("prompt") else []),
        *([f"first {request['truncate']} dimensions of sentence vectors"] if request.get("truncate") else []),
        f"at most {facts['max_length']} tokens each",
        f"{view.depth} layer{'' if view.depth == 1 else 's'} after the embeddings",
        computed,
    ]

"""The panel of the What-if page: sliders on one side, instant numbers on the other, and slow results as they arrive.

It is one fragment, so a move of a slider redraws only the panel. It waits for background results in short steps, so that the
visitor's next move interrupts the wait; figures stay on screen until their data have changed.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.shared import actions, forms, job_progress, resources, wording
from dashboard.whatif import drawing as drawing
from dashboard.whatif import export_panel, form
from dashboard.whatif.drawing import View
from dashboard.whatif.form import PREFIX
from dashboard.whatif.to_train import make_it_a_run
from dashboard.whatif.waiting import PATIENCE, answers, offer_check, refused_steps, wait_for
from isoviz.errors import AccessError, InputError
from isoviz.runs.examples import is_example
from isoviz.runs.rows import RunRow
from isoviz.whatif import chains, export, jobs, notebook
from isoviz.whatif.chains import Step
from isoviz.whatif.embeddings import Cloud, Embeddings
from isoviz.whatif.engine import Answer, NotReadyError, WhatIf, engine_of
from isoviz.whatif.request import LayerRequest, request_for
from isoviz.whatif.scheduler import Rank

TICK = 0.5
"""Seconds between checks of a layer's training."""

_WAITED = PREFIX + "layer_waited"
"""Session key: request of the layer that this visitor waits for."""
_STOPPED = PREFIX + "layer_stopped"
"""Session key: key of the layer that this visitor stopped."""


def draw(run: RunRow, key: str, cloud: Cloud) -> None:
    """The fragment: the chain, its numbers, and the slow results.

    It gets the run's row, so that the page keeps working if someone deletes the run.
    """
    try:
        engine = engine_of(key, cloud)
    except KeyError:  # evicted from the cache since the page was drawn
        st.rerun()
    embeddings = engine.embeddings
    left, right = st.columns([2, 3], gap="large")
    with left:
        st.header("Transforms, in this order", anchor=False)
        steps = form.editor(embeddings.train.shape[1])
    if steps is None:
        with right:
            st.caption("Fix the step on the left to see its numbers.")
        return
    with right:
        st.header("Effect of the transforms", anchor=False)
        summary, numbers, detail = st.empty(), st.empty(), st.empty()
    with left:
        _share(run.id, cloud, steps, embeddings)
    figures = st.container()
    below = st.container()
    view = View(
        embeddings, run, chains.write(steps) if steps else drawing.NO_STEPS, summary, numbers, detail, figures, below
    )
    with refused_steps(left, numbers, summary):
        _follow(engine, steps, view, run)


def _follow(engine: WhatIf, steps: tuple[Step, ...], view: View, run: RunRow) -> None:
    """The instant numbers as soon as they are available, then everything else. The visitor's next move interrupts this."""
    until = time.monotonic() + PATIENCE
    both = _answers(engine, steps, view, until)
    if both is None:
        return
    start, answer = both
    _release_previous(None)
    first, full = engine.cached_full(()), engine.cached_full(steps)
    drawing.numbers(view, start, answer, first, full)
    drawing.spectrum(view, start, answer)
    if first is None or full is None:
        lead = drawing.lead(start, answer, steps)
        key = f"{engine.embeddings.folder}|{engine.embeddings.cloud}|{Rank.FOLLOW.name}|{chains.write(steps)}"
        what = "refitted head, intervals, TwoNN, map"
        if wait_for(lambda: engine.stages(steps), Rank.FOLLOW, key, view.summary, until, what=what, lead=lead) is None:
            return
        first, full = engine.full(()), engine.full(steps)
        drawing.numbers(view, start, answer, first, full)
    drawing.reading(view, start, answer, full, steps)
    drawing.maps(view, start, answer, first, full)
    drawing.downloads_of(view, start, answer, first, full, steps)
    with view.below:
        measured = functools.partial(export.effects_of, engine.embeddings, start, answer, first, full)
        content = f"{engine.embeddings.key}|{engine.embeddings.cloud}"
        export_panel.draw(
            run.id, content, steps, lambda: export.of_run(engine, steps, measured()), lambda: _export_spec(run, engine)
        )
        make_it_a_run(run, steps)


def _export_spec(run: RunRow, engine: WhatIf) -> Mapping[str, Any]:
    """Specification of the run's model for the export. Raises `InputError` if the run has none."""
    if is_example(run.id):
        raise InputError("examples ship without weights", field="run")
    request = request_for(run, resources.library().folder_of(run.id))
    return export.spec_of_run(run.config, Path(request.checkpoint), engine.embeddings.cloud, engine.embeddings.key)


def _answers(engine: WhatIf, steps: tuple[Step, ...], view: View, until: float) -> tuple[Answer, Answer] | None:
    """The numbers without and with the chain; None if a layer is not trained or the computation takes too long."""

    def prepare(waiting: NotReadyError) -> bool:
        drawing.numbers(view, engine.cached_answer(()), None, None, None)
        _release_previous(waiting.request)
        return waiting.request is None or _train(waiting.request, view, until)

    return answers(engine, steps, f"{engine.embeddings.folder}|{engine.embeddings.cloud}", view.summary, until, prepare)


def _train(request: LayerRequest, view: View, until: float) -> bool:
    """Start training an IsoLayer and wait; False if that failed, was stopped, or takes too long."""
    place: DeltaGenerator | None = None
    while True:
        state = jobs.look(request)
        stopped = state.status == "none" and st.session_state.get(_STOPPED) == request.key
        if (state.status == "none" and not stopped) or state.status == "waiting":
            try:
                state = resources.service().start_whatif(request)
            except AccessError as error:
                with view.summary.container():
                    reason = wording.plain(actions.sentences(error) or "")
                    st.caption(f":material/block: IsoLayer is trained on the server. {reason}")
                return False
        if stopped or state.in_trouble:
            with view.summary.container():
                if stopped:
                    st.caption("You stopped IsoLayer's training.")
                else:
                    forms.show_error(f"IsoLayer: {state.message or 'its process ended unexpectedly'}. {state.advice}")
                st.button("Train again", key=PREFIX + "again", on_click=_train_again, args=(request,))
            return False
        if place is None:
            with view.summary.container():
                place, buttons = st.empty(), st.container(horizontal=True)
            buttons.button(
                "Stop",
                key=f"{PREFIX}stop_{request.key}",
                icon=":material/stop_circle:",
                on_click=_stop,
                args=(request,),
            )
        text = f"Training IsoLayer: {job_progress.step(state)}, {wording.duration(state.seconds)}"
        place.caption(f":material/hourglass_top: {wording.plain(text)}")
        if time.monotonic() > until:
            offer_check(buttons)
            return False
        time.sleep(TICK)


def _stop(request: LayerRequest) -> None:
    if actions.perform(resources.service().stop_whatif, request):
        st.session_state[_STOPPED] = request.key


def _train_again(request: LayerRequest) -> None:
    st.session_state.pop(_STOPPED, None)
    actions.attempt(resources.service().start_whatif, request)


def _release_previous(request: LayerRequest | None) -> None:
    """Release the layer that this visitor no longer waits for: its training stops, and restarts if another visitor waits for it."""
    previous: LayerRequest | None = st.session_state.get(_WAITED)
    if previous is not None and previous != request:
        resources.service().release_whatif(previous)
    st.session_state[_WAITED] = request


def _share(run_id: str, cloud: str, steps: tuple[Step, ...], embeddings: Embeddings) -> None:
    with st.container(horizontal=True, gap="small"):
        with st.popover("Copy link", icon=":material/link:"):
            st.caption("Opens this run with these transforms, for anyone with access to this server.")
            st.code(form.link(run_id, cloud, steps), language=None, wrap_lines=True)
        with st.popover("As Python", icon=":material/code:"):
            st.caption("The same numbers in a notebook.")
            source = notebook.source(run_id, cloud, steps, str(embeddings.facts["primary"]), embeddings.train.shape[1])
            st.code(source, language="python", wrap_lines=True)

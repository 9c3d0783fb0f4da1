"""The panel of the What-if page: sliders on one side, numbers at once on the other, and everything else as it comes.

It is one fragment: a move of a slider draws it alone. What follows in the background is waited for here, in short steps, so that
the visitor's next move ends the waiting; figures that wait stay on screen as they are until theirs have changed.
"""

from __future__ import annotations

import functools
import secrets
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import forms, job_progress, wording
from dashboard.whatif import drawing as drawing
from dashboard.whatif import form
from dashboard.whatif.drawing import View
from dashboard.whatif.form import PREFIX
from dashboard.whatif.to_train import make_it_a_run
from isoviz.errors import InputError, IsoVizError
from isoviz.runs.rows import RunRow
from isoviz.whatif import chains, jobs, notebook
from isoviz.whatif.background import BACKGROUND, settled
from isoviz.whatif.chains import Step
from isoviz.whatif.embeddings import Cloud, Embeddings, load
from isoviz.whatif.engine import Answer, NotReadyError, WhatIf
from isoviz.whatif.request import LayerRequest

LOOK = 0.05
"""Seconds between looks at what the background computes; the page listens to its visitor all the while."""

TICK = 0.5
"""Seconds between looks at a process that trains a layer."""

PATIENCE = 60.0
"""Seconds for which a visit waits for what follows; after that it says how to look again."""

_WAITED = PREFIX + "layer_waited"
"""The request of the layer that a visitor waits for."""
_STOPPED = PREFIX + "layer_stopped"
"""The key of the one that a visitor stopped."""

_LOADED = 2
"""Clouds whose coordinates are held in memory; each takes about 200 MB at 5,000 × 768."""


@functools.lru_cache(maxsize=_LOADED)
def _engine(key: str, cloud: Cloud, folder: Path) -> WhatIf:
    del folder  # for the cache: another home, other arrays
    return WhatIf(load(key, cloud))


def draw(run: RunRow, key: str, cloud: Cloud) -> None:
    """The fragment: the chain, its numbers, and what follows them.

    The run's row comes along, so that what is on screen goes on when somebody deletes the run.
    """
    try:
        found = load(key, cloud)
    except KeyError:  # made room for others since the page was drawn
        st.rerun()
    engine = _engine(key, cloud, found.folder)
    left, right = st.columns([2, 3], gap="large")
    with left:
        st.subheader("Transforms, in this order", anchor=False)
        steps = form.editor(found.train.shape[1])
    if steps is None:
        with right:
            st.caption("Mend the step on the left; the numbers follow.")
        return
    with right:
        st.subheader("After, against no transform", anchor=False)
        said, numbers, detail = st.empty(), st.empty(), st.empty()
    with left:
        _share(run.id, cloud, steps, found)
    figures = st.container()
    below = st.container()
    view = View(found, run, chains.write(steps) if steps else drawing.NO_STEPS, said, numbers, detail, figures, below)
    try:
        _follow(engine, steps, view, run)
    except InputError as error:
        with left:
            forms.error_beside(forms.sentence(error))
        numbers.caption("These numbers wait for the step on the left to be mended.")
        said.empty()  # nothing is pending any more


def _follow(engine: WhatIf, steps: tuple[Step, ...], view: View, run: RunRow) -> None:
    """The numbers at once, or when they are there; then everything else. A visitor's next move ends this one."""
    until = time.monotonic() + PATIENCE
    start, answer = _at_once(engine, ()), _at_once(engine, steps)
    if start is None or answer is None:
        drawing.numbers(view, start, answer, None, None)
        if not _layers(engine, steps, view, until):
            return
        if not _wait(lambda: (engine.answer(()), engine.answer(steps)), "numbers", engine, steps, view, until):
            return
        start, answer = engine.answer(()), engine.answer(steps)
    _let_go(None)
    first, full = engine.known(()), engine.known(steps)
    drawing.numbers(view, start, answer, first, full)
    drawing.spectrum(view, start, answer)
    if first is None or full is None:
        lead = drawing.lead(start, answer, steps)
        if not _wait(lambda: (engine.full(()), engine.full(steps)), "all", engine, steps, view, until, lead):
            return
        first, full = engine.full(()), engine.full(steps)
        drawing.numbers(view, start, answer, first, full)
    drawing.reading(view, start, answer, full, steps)
    drawing.maps(view, start, answer, first, full)
    drawing.downloads_of(view, start, answer, first, full, steps)
    with view.below:
        make_it_a_run(run, steps)


def _at_once(engine: WhatIf, steps: tuple[Step, ...]) -> Answer | None:
    try:
        return engine.answer(steps, build=False)
    except NotReadyError:
        return None


def _layers(engine: WhatIf, steps: tuple[Step, ...], view: View, until: float) -> bool:
    """Have a process train the IsoLayers of the chain, one after the other; False if that failed, was stopped, or takes too long."""
    place: DeltaGenerator | None = None
    while True:
        try:
            engine.image(steps, build=False)
            return True
        except NotReadyError as waiting:
            request = waiting.request
        _let_go(request)
        if request is None:
            return True  # only something to compute here; a later layer is asked for after that
        state = jobs.look(request)
        stopped = state.status == "none" and st.session_state.get(_STOPPED) == request.key
        if (state.status == "none" and not stopped) or state.status == "waiting":
            state = jobs.start(request)
        if stopped or state.in_trouble:
            with view.said.container():
                if stopped:
                    st.caption("IsoLayer was not trained to its end: you stopped it.")
                else:
                    forms.error_beside(f"IsoLayer: {state.message or 'its process is gone'}. {state.advice}")
                st.button("Train it again", key=PREFIX + "again", on_click=_train_again, args=(request,))
            return False
        if place is None:
            with view.said.container():
                place, buttons = st.empty(), st.container(horizontal=True)
            buttons.button(
                "Stop",
                key=f"{PREFIX}stop_{request.key}",
                icon=":material/stop_circle:",
                on_click=_stop,
                args=(request,),
            )
        told = f"IsoLayer is being trained: {job_progress.step(state)}, {wording.duration(state.seconds)}"
        place.caption(f":material/hourglass_top: {wording.plain(told)}")
        if time.monotonic() > until:
            _later(buttons)
            return False
        time.sleep(TICK)


def _stop(request: LayerRequest) -> None:
    jobs.stop(request)
    st.session_state[_STOPPED] = request.key


def _train_again(request: LayerRequest) -> None:
    st.session_state.pop(_STOPPED, None)
    jobs.start(request)


def _let_go(request: LayerRequest | None) -> None:
    """End the training of a layer that this visitor has moved away from; somebody else who waits for it has it started again."""
    older: LayerRequest | None = st.session_state.get(_WAITED)
    if older is not None and older != request:
        jobs.stop(older)
    st.session_state[_WAITED] = request


def _wait(
    compute: Callable[[], Any],
    what: str,
    engine: WhatIf,
    steps: tuple[Step, ...],
    view: View,
    until: float,
    lead: str = "",
) -> bool:
    """Have the background compute; False if it takes too long. Each look lets a visitor's next move through.

    Args:
        lead: what can be said already, in Markdown; it stays.
    """
    viewer = st.session_state.setdefault(PREFIX + "viewer", secrets.token_hex(8))
    found = engine.embeddings
    key = f"{found.folder}|{found.cloud}|{what}|{'~'.join(step.text for step in steps)}"
    began = time.monotonic()
    future: Future[Any] = BACKGROUND.ask(viewer, key, compute)
    told = ""
    while not future.done():
        seconds = time.monotonic() - began
        text = f"pending: {'numbers' if what == 'numbers' else 'refitted head, intervals, TwoNN, map'}"
        text += f" · {seconds:.0f} s" if seconds >= 1 else ""
        if text != told:
            view.said.markdown(f"{lead} :gray[:material/hourglass_top: {text}]")
            told = text
        if time.monotonic() > until:
            with view.said.container():
                st.markdown(lead)
                _later(st.container())
            return False
        time.sleep(LOOK)
    if future.cancelled():  # this visitor's other tab asked for something else
        future = BACKGROUND.ask(viewer, key, compute)
    if not settled(future):
        error = future.exception()
        if isinstance(error, NotReadyError):  # a layer further on in the chain
            return _layers(engine, steps, view, until) and _wait(compute, what, engine, steps, view, until, lead)
        if isinstance(error, IsoVizError):
            raise error
        if error is not None:
            raise RuntimeError(f"{type(error).__name__} while computing") from error
    future.result()
    return True


def _later(place: DeltaGenerator) -> None:
    place.caption("Still being computed. It goes on; look again in a while.")
    place.button("Look again", key=PREFIX + "look_again", icon=":material/refresh:")


def _share(run_id: str, cloud: str, steps: tuple[Step, ...], found: Embeddings) -> None:
    with st.container(horizontal=True, gap="small"):
        with st.popover("Copy link", icon=":material/link:"):
            st.caption("Brings this run and these transforms to anybody who can open this server.")
            st.code(form.link(run_id, cloud, steps), language=None, wrap_lines=True)
        with st.popover("As Python", icon=":material/code:"):
            st.caption("The same numbers in a notebook.")
            source = notebook.source(run_id, cloud, steps, str(found.facts["primary"]), found.train.shape[1])
            st.code(source, language="python", wrap_lines=True)

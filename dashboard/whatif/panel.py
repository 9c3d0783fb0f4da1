"""The panel of the What-if page: sliders on one side, instant numbers on the other, and slow results as they arrive.

It is one fragment, so a move of a slider redraws only the panel. It waits for background results in short steps, so that the
visitor's next move interrupts the wait; figures stay on screen until their data have changed.
"""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.components import bundle
from dashboard.shared import exported, forms
from dashboard.whatif import drawing, export_panel, form, waiting
from dashboard.whatif.drawing import View
from dashboard.whatif.form import PREFIX
from dashboard.whatif.to_train import make_it_a_run
from dashboard.whatif.verdict_card import Card
from isoviz.errors import InputError
from isoviz.readouts.division import Part
from isoviz.runs.rows import RunRow
from isoviz.whatif import chains
from isoviz.whatif.embeddings import Cloud
from isoviz.whatif.engine import engine_of
from isoviz.whatif.images import NotReadyError
from isoviz.whatif.scheduler import Rank

_follow_held_sliders = st.components.v2.component("isoviz_held_slider", js=bundle("held_slider.js"))
"""Streamlit sends a slider's value only when it is released; this sends it while it is held."""


def draw(run: RunRow | None, key: str, part: Cloud | Part = "shown") -> None:
    """The fragment: the chain, its numbers, and the slow results.

    Args:
        run: the run, or None for a set of vectors. It is the row, so that the page keeps working if someone deletes the run.
        key: key of the run's embeddings, or of the set.
        part: the run's cloud, or the part of the set.
    """
    exported.begin()  # the last chain may have had more figures
    try:
        engine = engine_of(key, part)
    except KeyError:  # evicted from the cache since the page was drawn
        st.rerun()
    left, right = st.columns([2, 5], gap="large")
    with left, st.container(key=PREFIX + "sticky"):  # stays in view: see `app.css`
        st.markdown("**Transforms, in this order**")
        steps = form.editor(engine.train.shape[1])
        if steps is not None:
            _follow_held_sliders(key=PREFIX + "held", data={"container": PREFIX + "sticky"})
    if steps is None:
        right.caption("Fix the step on the left to see its numbers.")
        return
    with right:
        card = Card(engine, steps) if run is None else None
        summary, figures, table, slow = map(_reserved, ("summary", "quick", "readouts", "slow"))
        summary, table = summary.empty(), table.empty()
        st.header("All measures", anchor=False)
        view = View(engine, run, steps, summary, st.empty(), table, figures, slow, st.container())
    try:
        _follow(view, card, f"{key}|{part}")
    except InputError as error:  # the chain cannot be applied
        with left:
            forms.show_error(forms.sentence(error))
        view.numbers.caption("Fix the step on the left to see these numbers.")
        summary.empty()


def _reserved(name: str) -> DeltaGenerator:
    """A container whose room `app.css` reserves from the start, so that nothing below moves when it is filled."""
    container = st.container(key=PREFIX + name)
    container.empty()
    return container


def _follow(view: View, card: Card | None, key: str) -> None:
    """The instant numbers as soon as they are available, then everything else. The visitor's next move interrupts this."""
    engine, steps = view.engine, view.steps

    def prepare(missing: NotReadyError) -> bool:
        drawing.numbers(view, engine.cached_answer(()), None, None, None)
        return waiting.train_layer(missing.request, view.summary)

    both = waiting.answers(engine, steps, key, view.summary, prepare)
    if both is None:
        return
    start, answer = both
    waiting.release_previous(None)
    first, full = engine.cached_full(()), engine.cached_full(steps)
    drawing.spectrum(view, start, answer)
    if card is not None:
        card.fill(full if first is not None else None)  # with all numbers it has buttons, which are drawn once
    drawing.numbers(view, start, answer, first, full)
    if first is None or full is None:
        drawing.table(view, start, answer, None)
        full = waiting.wait_for(
            lambda: engine.stages(steps),
            Rank.FOLLOW,
            f"{key}|{Rank.FOLLOW.name}|{chains.write(steps)}",
            view.summary,
            what="intervals and slow read-outs" if card else "refitted head, intervals, TwoNN, map",
            lead=drawing.lead(start, answer, steps),
        )
        first = engine.full(())
        drawing.numbers(view, start, answer, first, full)
        if card is not None:
            card.fill(full)
    drawing.summary(view, start, answer, full)
    drawing.table(view, start, answer, full)
    drawing.correlations(view)
    if card is None:
        drawing.maps(view, start, answer, first, full)
    with view.below:
        export_panel.draw(view, full, card.sentences if card else ())
        export_panel.offer_page(view)
        if view.run is not None:
            make_it_a_run(view.run, steps)

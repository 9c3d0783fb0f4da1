"""What-if on vectors without a run: a demo set, an upload, or texts through an encoder."""

from __future__ import annotations

import functools
from typing import Final

import streamlit as st

from dashboard.inputs import model_form, vectors_form
from dashboard.shared import forms, job_progress, menu, resources, wording
from dashboard.shared.job_progress import WatchedJob
from dashboard.shared.steady import steady
from dashboard.whatif import form, readouts_panel
from dashboard.whatif.form import PREFIX
from isoviz.errors import InputError
from isoviz.vectors import demo_sets
from isoviz.whatif.texts import ENCODED, FIRST_LAYER, TextsRequest, recorded
from isoviz.whatif.vectors import engine_of

RUN = "A finished run"
VECTORS, OWN = menu.WHATIF_OWN.values()
LAYERS: Final = ("1", "2", "3", "4")
"""Layers of the bundled encoder."""


def start_field() -> bool:
    """Field: start with vectors instead of a run. A run in the address selects runs."""
    selected = st.segmented_control(
        "Start with",
        [RUN, VECTORS],
        default=RUN,
        required=True,
        key=PREFIX + "from",
        bind="query-params",
        help="A run brings its rows, labels and trained head. Vectors or texts need no run.",
    )
    return selected == VECTORS


def draw() -> None:
    """The page below that field."""
    key = _selected_key()
    if key is None:
        return
    try:
        engine = engine_of(key)
    except KeyError:
        forms.show_error("These vectors are no longer on this server. Load them again.")
        return
    except InputError as error:
        forms.show_error(forms.sentence(error))
        return
    form.follow_address()
    facts = engine.vector_set.facts
    parts = [f"{engine.vector_set.n:,} vectors, d = {engine.vector_set.d}"]
    if "model" in facts:
        vectors_text = (
            "its own sentence vectors" if facts["pooling"] == "sentence" else f"mean of tokens, layer {facts['layer']}"
        )
        parts.insert(0, f"{facts['model']}, {vectors_text}")
    rest = "" if engine.crosses else engine.division.rest
    st.caption(wording.plain(f"{' · '.join(parts)} · {engine.division.words} {rest}"))
    for note in engine.division.notes:
        st.caption(f":material/info: {wording.plain(note)}")
    st.fragment(readouts_panel.draw)(key)


@steady
def _selected_key() -> str | None:
    """The key of the vectors, once they exist."""
    titles = {title: slug for slug, title in demo_sets.TITLES.items()}
    selected = st.selectbox("Vectors", [*titles, OWN], key=PREFIX + "set", bind="query-params")
    if selected != OWN:
        layer = st.segmented_control(
            "Layer of the bundled encoder",
            LAYERS,
            default=str(FIRST_LAYER),
            required=True,
            key=PREFIX + "layer",
            bind="query-params",
            help="Each text becomes the mean of its tokens at this layer.",
        )
        return _encoded(TextsRequest(titles[str(selected)], layer=int(layer or FIRST_LAYER)))
    own_set = vectors_form.draw(PREFIX, "either")
    if own_set is None:
        return None
    model = _encoder_field() if own_set.kind == "texts" else ""
    st.page_link(
        menu.EXPLORE,
        label="Look at them in Explore",
        icon=":material/layers:",
        query_params=menu.explore_own(own_set.key, own_set.kind, model),
    )
    if own_set.kind == "vectors":
        return own_set.key
    source = model_form.show_source(model) if model else None
    return None if source is None else _encoded(TextsRequest(own_set.key, source.name))


def _encoder_field() -> str:
    """The encoder of the user's texts; empty until the user has chosen one, because the answer depends on it."""
    model = st.selectbox(
        "Which encoder do you use?",
        model_form.options(),
        index=None,
        key=PREFIX + "model",
        bind="query-params",
        accept_new_options=True,
        placeholder=model_form.PLACEHOLDER,
        help=model_form.HELP,
    )
    if not model:
        st.caption("Whether a transform helps depends on the encoder. Choose yours to encode these texts.")
    return str(model or "")


def _encoded(request: TextsRequest) -> str | None:
    """The key of the texts' vectors. Starts the encoder, which takes seconds, unless the vectors are bundled."""
    if (key := recorded(request)) is not None:
        return key
    state = job_progress.ask(ENCODED, request.as_json())
    if state.status == "done":
        return state.key
    if job_progress.refused(state):
        return None
    if state.under_way:
        resources.expect_jobs()
        stop = functools.partial(resources.service().stop_job, ENCODED, request.key)
        look = functools.partial(job_progress.ask, ENCODED, request.as_json())
        job_progress.watch([WatchedJob("Encoding", look, stop)], key=PREFIX + "stop")
    elif state.in_trouble:
        job_progress.trouble(state)
    return None

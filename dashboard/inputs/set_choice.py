"""Fields for a set of vectors: a demo set, an upload, or texts through an encoder."""

from __future__ import annotations

from typing import Final

import streamlit as st

from dashboard.inputs import model_form, vectors_form
from dashboard.shared import job_progress, menu, resources
from dashboard.shared.stable import stable
from isoviz.models.sources import ModelSource
from isoviz.vectors import demo_sets
from isoviz.whatif.texts import ENCODED, FIRST_LAYER, TextsRequest, recorded

LAYERS: Final = ("1", "2", "3", "4")
"""Layers of the bundled encoder."""


@stable
def key_field(prefix: str, first: str) -> str | None:
    """The key of the vectors, once they exist.

    Args:
        prefix: prefix of the page's widget keys.
        first: the demo set of a first visit, or `menu.OWN_SET`.
    """
    titles = {title: slug for slug, title in demo_sets.TITLES.items()}
    set_column, layer_column = st.columns([3, 2], vertical_alignment="bottom")
    selected = set_column.selectbox(
        "Vectors",
        [*titles, menu.OWN_SET],
        index=[*titles.values(), menu.OWN_SET].index(first),
        key=prefix + "set",
        bind="query-params",
    )
    if selected != menu.OWN_SET:
        layer = layer_column.segmented_control(
            "Layer of the bundled encoder",
            LAYERS,
            default=str(FIRST_LAYER),
            required=True,
            key=prefix + "layer",
            bind="query-params",
            help="Each text becomes the mean of its tokens at this layer.",
        )
        return encoded(prefix, TextsRequest(titles[str(selected)], layer=int(layer or FIRST_LAYER)))
    own_set = vectors_form.draw(prefix, "either")
    if own_set is None:
        return None
    model = _encoder_field(prefix) if own_set.kind == "texts" else ""
    st.page_link(
        menu.EXPLORE,
        label="Look at them in Explore",
        icon=":material/layers:",
        query_params=menu.explore_own(own_set.key, own_set.kind, model),
    )
    if own_set.kind == "vectors":
        return own_set.key
    source = model_form.show_encoder(model) if model else None
    return None if source is None else through(prefix, own_set.key, source)


def _encoder_field(prefix: str) -> str:
    """The encoder of the user's texts; empty until the user has chosen one, because the answer depends on it."""
    model = st.selectbox(
        "Which encoder do you use?",
        model_form.encoders_offered(),
        index=None,
        key=prefix + "model",
        bind="query-params",
        accept_new_options=True,
        placeholder=model_form.PLACEHOLDER,
        help=model_form.ENCODER_HELP,
    )
    if not model:
        st.caption("The answer depends on the encoder. Choose yours to encode these texts.")
    return str(model or "")


def through(prefix: str, texts: str, source: ModelSource) -> str | None:
    """The same for texts of a key and an encoder of the user's, whose weights may be read in another number format."""
    return encoded(prefix, TextsRequest(texts, source.name, dtype=model_form.weights_field(prefix, source)))


def encoded(prefix: str, request: TextsRequest) -> str | None:
    """The key of the texts' vectors. Starts the encoder, which takes seconds, unless the vectors are bundled."""
    if (key := recorded(request)) is not None:
        return key
    state = job_progress.ask(ENCODED, request.as_json())
    if state.under_way:
        resources.expect_jobs()
    return None if job_progress.follow(ENCODED, state, "Encoding", key=prefix + "stop") else state.key

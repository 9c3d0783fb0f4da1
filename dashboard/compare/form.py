"""Fields of the Compare page: documents, questions, relevance, and encoders or their vectors."""

from __future__ import annotations

from typing import Final

import streamlit as st

from dashboard.inputs import model_form, set_choice, set_sections, vectors_form
from dashboard.shared import forms, job_progress
from dashboard.shared.stable import stable
from isoviz.operations import jobs
from isoviz.readouts.encoders import MOST, EncoderComparison
from isoviz.vectors import demo_sets
from isoviz.vectors.intake import SetSummary

PREFIX: Final = "compare_"
OWN_TEXTS, OWN_VECTORS, DEMO = "Your texts", "Your vectors", "Bundled search"


@stable
def draw() -> EncoderComparison | None:
    """The fields, and the comparison once it is made."""
    source = forms.choice("Compare on", [OWN_TEXTS, OWN_VECTORS, DEMO], PREFIX + "from")
    loaded: list[SetSummary] = []
    if source == OWN_VECTORS:
        loaded = vectors_form.draw_several(PREFIX)
    elif source == OWN_TEXTS and (texts := vectors_form.draw(PREFIX, "texts", search=True)) is not None:
        loaded = [texts]
    if source != DEMO and not loaded:
        return None
    key = loaded[0].key if loaded else demo_sets.RETRIEVAL
    sets = _named(loaded) if source == OWN_VECTORS else _encoded(key)
    margin_column, slices_column, _ = st.columns([1, 1, 2])
    margin = margin_column.number_input(
        "Margin, points of nDCG@10",
        0.1,
        20.0,
        1.0,
        0.5,
        format="%g",
        key=PREFIX + "margin",
        bind="query-params",
        help="A loss up to this does no harm. nDCG@10 goes from 0 to 100 points.",
    )
    slices = set_sections.columns_of(key) if loaded and loaded[0].relation == "relevance" else []
    by = None
    if slices:
        words = (
            "The change of nDCG@10 in each slice of the questions against the rest. length: quartiles of their texts."
        )
        by = slices_column.selectbox(
            "By slice", slices, index=None, placeholder="none", key=PREFIX + "slice", bind="query-params", help=words
        )
    if sets is None:
        return None
    request = jobs.compare_request(sets, margin / 100, by)
    if (found := jobs.find_comparison(request)) is not None:
        return found
    state = job_progress.ask(jobs.COMPARE, request)
    if job_progress.follow(jobs.COMPARE, state, "Comparing", key=PREFIX + "comparing", retry=state.field is None):
        return None
    return jobs.find_comparison(request)


def _encoded(texts: str) -> dict[str, str] | None:
    """Name → key of the vectors by each chosen encoder; None until all exist."""
    models = st.multiselect(
        "Encoders, the first is what the others are compared with",
        model_form.encoders_offered(),
        key=PREFIX + "models",
        bind="query-params",
        accept_new_options=True,
        max_selections=MOST,
        placeholder=model_form.PLACEHOLDER,
        help=model_form.ENCODER_HELP,
    )
    if len(models) < 2:
        st.caption("Choose at least two encoders.")
        return None
    keys: dict[str, str] = {}
    for place, model in enumerate(models):
        source = model_form.show_encoder(model)
        key = source and set_choice.through(f"{PREFIX}{place}_", texts, source)
        keys |= {model: key} if key else {}
    return keys if len(keys) == len(models) else None


def _named(loaded: list[SetSummary]) -> dict[str, str] | None:
    if len(loaded) < 2:
        st.caption("Add the files of at least two encoders.")
        return None
    names = [one.name for one in loaded]
    differ = len(set(names)) == len(names)
    return {one.name if differ else f"{place}. {one.name}": one.key for place, one in enumerate(loaded, 1)}

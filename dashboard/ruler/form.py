"""The fields of the Ruler page beside those for the vectors: which rows are related, what is asked, and two sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from dashboard.inputs import model_form
from dashboard.shared import forms, job_progress, resources
from dashboard.shared.stable import stable
from isoviz import vectors
from isoviz.exploring.jobs import SENTENCES
from isoviz.operations.jobs import SetRequest
from isoviz.operations.ruler import Known, known_in
from isoviz.vectors.sets import Relation

PREFIX: Final = "ruler_"
"""Prefix of this page's widget keys."""
_OFFERED: Final = PREFIX + "offered"
"""Session key: how the last set could say which rows are related."""


@stable
def related_fields(key: str, relation: Relation | None, *, rated: bool) -> tuple[Known | None, float | None]:
    """Fields: how related rows are known, if the set says it in several ways, and from which score on; None for the default.

    Args:
        relation: what the set's pairs mean.
        rated: their scores differ, so that it matters which are related.
    """
    known = _known(key)
    titles: dict[str, Known] = {_title(one, relation): one for one in known}
    if st.session_state.get(_OFFERED, titles) != titles:  # the newest relation is answered
        st.session_state[PREFIX + "known"] = next(iter(titles))
    st.session_state[_OFFERED] = titles
    if len(known) == 1:
        return None, None
    how_column, score_column = st.columns([3, 2])
    title = how_column.selectbox("Related pairs", list(titles), key=PREFIX + "known", bind="query-params")
    selected = titles[str(title)]
    least = None
    if selected == "pairs" and rated:
        least = score_column.number_input(
            "Related from score",
            value=None,
            key=PREFIX + "from",
            bind="query-params",
            placeholder="0.8 × max",
            help="Scored pairs count as related from this score on. Empty: from 0.8 of the highest score.",
        )
    return None if selected == known[0] else selected, least


def _title(known: Known, relation: Relation | None) -> str:
    pairs = "queries and documents" if relation == "relevance" else "the set's pairs"
    return {"pairs": pairs, "labels": "same label", "none": "not known"}[known]


@st.cache_data(show_spinner=False, max_entries=64)
def _known(key: str) -> list[Known]:
    return known_in(vectors.load(key))


def question_fields(search: bool) -> tuple[float | None, float]:
    """Fields: the share of related pairs, None for the default, and the wanted precision; both from 0 to 1."""
    share_column, precision_column = st.columns(2)
    share = share_column.number_input(
        "Related, % of pairs",
        0.0001,
        99.99,
        None,
        5.0,
        format="%g",
        key=PREFIX + "share",
        bind="query-params",
        placeholder="as in the set" if search else "50",
        help="Of the pairs that you will compare, how many are related. Every probability depends on it. In a search it is known: "
        "relevant pairs divided by queries times documents.",
    )
    precision = precision_column.number_input(
        "Wanted precision, %",
        1.0,
        99.99,
        90.0,
        1.0,
        format="%g",
        key=PREFIX + "precision",
        bind="query-params",
        help="Of the pairs above the threshold, how many are to be related. In a search also: of the best hits, how many are to be right.",
    )
    return None if share is None else share / 100, precision / 100


def base(request: SetRequest) -> SetRequest:
    """The request with the usual share and precision, on which floor, distributions and transforms do not depend."""
    return SetRequest(request.vectors, request.known, request.related_from)


# ------------------------------------------------------------------------------------------------------ sentences

MOST_LETTERS: Final = 1_000
"""Most characters of a sentence, because the address contains it."""
_EXAMPLES: Final = ("The cat sat on the mat.", "A cat was sitting on a mat.")


def sentence_fields() -> tuple[str, str] | None:
    """Two fields for sentences; None unless both can be read."""
    resources.expect_jobs()
    texts: list[str] = []
    for name, example in zip(("first", "second"), _EXAMPLES, strict=True):
        text = st.text_input(
            f"{name.capitalize()} sentence",
            key=PREFIX + name,
            bind="query-params",
            placeholder=example,
            help="Read by the encoder that made the vectors. Press Enter.",
        )
        texts.append((text or "").strip())
        if len(texts[-1]) > MOST_LETTERS:
            forms.show_error(f"At most {MOST_LETTERS:,} characters (got {len(texts[-1]):,}).")
            return None
    return (texts[0], texts[1]) if all(texts) else None


def vectors_of(sentences: tuple[str, ...], facts: Mapping[str, Any]) -> NDArray[np.floating] | None:
    """(n, d) vectors of the sentences; None while they are computed or if they cannot be, which it shows.

    Args:
        facts: of the set: `model`, `layer`, `pooling` and `max_length`.
    """
    source, error = model_form.resolve(facts["model"])
    if source is None:
        forms.show_error(error)
        return None
    if source.kind != "hub" and facts.get("model_fingerprint", source.fingerprint) != source.fingerprint:
        forms.show_error("The encoder has changed since it made these vectors. Encode the texts again.")
        return None
    request = {
        "model": facts["model"],
        "fingerprint": source.fingerprint,
        "layer": facts["layer"],
        "pooling": facts["pooling"],
        "max_length": facts["max_length"],
        "texts": [list(sentences)],
    }
    state = job_progress.ask(SENTENCES, request)
    if job_progress.follow(SENTENCES, state, "Your sentences", key=PREFIX + "sentences_stop", retry=True):
        return None
    if state.status != "done" or state.result is None:
        return None
    points: NDArray[np.floating] = state.result.arrays["points"]
    if not np.linalg.norm(points, axis=1).all():
        forms.show_error("The vector of a sentence is all zeros, so it has no cosine.")
        return None
    return points

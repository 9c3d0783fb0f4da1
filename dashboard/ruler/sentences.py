"""Two typed sentences as vectors of the encoder that made a set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from dashboard.inputs import model_form
from dashboard.ruler.form import PREFIX
from dashboard.shared import forms, job_progress, resources
from isoviz.exploring.jobs import SENTENCES

MOST_LETTERS: Final = 1_000
"""Most characters of a sentence, because the address contains it."""
_EXAMPLES: Final = ("The cat sat on the mat.", "A cat was sitting on a mat.")


def fields() -> tuple[str, str] | None:
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

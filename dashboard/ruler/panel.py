"""The Ruler page for one set of vectors: its figure, what a cosine and two sentences mean on it, a threshold, transforms, files."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any, Final

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from dashboard.components import figure
from dashboard.export import button
from dashboard.inputs import set_sections
from dashboard.ruler import figures, form
from dashboard.ruler.form import PREFIX
from dashboard.shared import downloads, explanations, exported, forms, job_progress, menu, wording
from dashboard.shared.exported import ExportedTable
from isoviz.formatting import decimals
from isoviz.operations import jobs
from isoviz.operations.jobs import RULER, SetRequest
from isoviz.readouts.ruler import SIX_LINES, Ruler, near_misses
from isoviz.readouts.ruler.near_misses import NearMisses
from isoviz.runs import citing
from isoviz.vectors.sets import facts_of

_NEAR: Final = (
    "English sentences in which one name, number or negation was changed: how high is their cosine with the original?"
)
_SHARED: Final = ("layer", "either", "model")
"""Fields that What-if has too."""


def draw(key: str) -> None:
    """The page below the fields for the vectors.

    Args:
        key: key of a stored set of vectors.
    """
    stored = facts_of(key)
    if stored is None or stored["what"] != "vectors":
        forms.show_error("These vectors are no longer on this server. Load them again.")
        return
    facts: Mapping[str, Any] = stored.get("facts", {})
    top = st.container()
    left, right = st.columns([3, 2], gap="medium")
    with right:
        with st.container(border=True, gap="small"):
            title = "What does this cosine mean?"
            name = PREFIX + "cosine"
            cosine = st.number_input(title, -1.0, 1.0, 0.62, 0.01, format="%.3f", key=name, bind="query-params")
            reading = st.container()
        best_hit = st.container()
        with st.container(border=True, gap="small"):
            st.markdown("**From which cosine on are pairs related?**")
            share, precision = form.question_fields(stored["relation"] == "relevance")
            rated = stored["relation"] == "similarity" and "related" not in facts
            known, least = form.related_fields(key, stored["relation"], rated=rated)
            threshold = st.container()
        with st.container(border=True, gap="small"):
            st.markdown("**Type two sentences**")
            pair = _pair(facts)
            spoken = st.container()
            near = _near_misses(facts)
            counted = st.container()
    request = SetRequest(key, known, least, share, precision)
    ruler = _ruler(request, top, threshold)
    shown = ruler or jobs.find(form.base(request))
    if shown is None:
        return
    if shown.alike:
        top.markdown(f":material/warning: {wording.plain(shown.alike)}")
    marks = {figures.YOURS: cosine}
    answers: tuple[str, ...] = ()
    if ruler is not None:
        reading.markdown(wording.plain(ruler.read(cosine).sentence))
        answers = _threshold(ruler)
        for place, text in zip((threshold.markdown, threshold.caption), answers, strict=False):
            place(text)
        if ruler.hits is not None:
            best_hit.container(border=True).markdown(f"**Is my best hit right?**\n\n{ruler.hits.advice}")
            answers = (ruler.hits.advice, *answers)
    if pair is not None:
        between = _cosine(pair)
        marks[figures.SENTENCES] = between
        if ruler is not None:
            spoken.markdown(f"Their cosine: {wording.plain(ruler.read(between).sentence)}")
    found = ruler and (ruler.hits or ruler.related)
    if found and found.threshold and found.threshold.recommended:
        marks[figures.THRESHOLD] = found.threshold.cosine
    if near is not None:
        answers = (*answers, near.sentence(marks.get(figures.THRESHOLD, cosine)))
        counted.markdown(wording.plain(answers[-1]))
    with left:
        _figure(shown, marks, stored["name"], near)
    _transforms(shown, stored["name"])
    set_sections.draw_slices(key, PREFIX, "ruler slices")
    if ruler is not None:
        _take_home(ruler, pair, request, cosine, answers)


def _pair(facts: Mapping[str, Any]) -> NDArray[np.floating] | None:
    if "model" not in facts:
        st.caption("These vectors came without their encoder. Load texts instead and choose it, to type sentences.")
        return None
    typed = form.sentence_fields()
    return None if typed is None else form.vectors_of(typed, facts)


def _near_misses(facts: Mapping[str, Any]) -> NearMisses | None:
    """A switch for near misses, read by the encoder that made the vectors."""
    if "model" not in facts or not st.toggle("Near misses", key=PREFIX + "near", bind="query-params", help=_NEAR):
        return None
    points = form.vectors_of(near_misses.texts(), facts)
    return None if points is None else near_misses.near_misses(points)


def _cosine(pair: NDArray[np.floating]) -> float:
    first, second = pair.astype(np.float64)
    return float(np.clip(first @ second / np.linalg.norm(first) / np.linalg.norm(second), -1, 1))


def _ruler(request: SetRequest, top: DeltaGenerator, card: DeltaGenerator) -> Ruler | None:
    """The ruler of a request, measured in the background; until then, draws the progress, or why there is none.

    Args:
        top: where it draws.
        card: where it draws what is wrong with the related pairs, beside their fields.
    """
    if (found := jobs.find(request)) is not None:
        return found
    state = job_progress.ask(RULER, request.as_json())
    with card if state.field in ("pairs", "labels") else top:
        waiting = job_progress.follow(RULER, state, "Measuring", key=PREFIX + "measuring", retry=state.field is None)
    return None if waiting else jobs.find(request)


def _threshold(ruler: Ruler) -> tuple[str, ...]:
    """What separates related pairs, and how sure that is."""
    related = ruler.related
    if related is None:
        return (
            "Related pairs are not known, so there is no threshold to choose: only how rare a cosine is among unrelated pairs.",
        )
    return f"{related.advice} Related pairs: {ruler.relation}.", f"{related.certainty} 95 % intervals."


def _figure(ruler: Ruler, marks: Mapping[str, float], name: str, near: NearMisses | None) -> None:
    related = f" {ruler.related.pairs:,} related pairs: {ruler.relation}." if ruler.related is not None else ""
    drawn = f"{ruler.rows:,} of {ruler.n:,}" if ruler.rows < ruler.n else f"{ruler.n:,}"
    about = f"{name}: n = {drawn} rows, d = {ruler.d}. {ruler.compared:,} unrelated pairs: {ruler.protocol}."
    figure.draw(
        figures.distribution(ruler, marks, near),
        key=PREFIX + "distribution",
        words=f"Cosines of {ruler.compared:,} unrelated and of related pairs of {name}, with the noise floor",
        name=downloads.file_name("isoviz", "ruler", name),
        caption=about + related,
        about=about,
        explanation=figures.DISTRIBUTION,
        table=lambda: figures.densities(ruler, near),
    )


def _transforms(ruler: Ruler, name: str) -> None:
    """The same after each transform, and the noise floor as numbers."""
    left, right = st.columns([3, 2], gap="medium")
    with left:
        st.header("The same after a transform", anchor=False)
        st.markdown(
            "Rescaling a score changes no ranking, so it separates nothing better. Centring and whitening do change rankings."
        )
        frame = figures.variants(ruler)
        _table(frame, "variants", "Noise floor, AUC and its gain by transform")
        with st.container(horizontal=True, vertical_alignment="center"):
            explanations.show(figures.VARIANTS, "How to read this table")
            query = {"whatif_from": menu.WHATIF_OWN["whatif_from"], "whatif_set": str(st.session_state[PREFIX + "set"])}
            query |= {
                "whatif_" + field: st.query_params[PREFIX + field]
                for field in _SHARED
                if PREFIX + field in st.query_params
            }
            st.page_link(menu.WHATIF, label="Try transforms in What-if", icon=":material/tune:", query_params=query)
        downloads.buttons(downloads.file_name("isoviz", "ruler", name, "transforms"), frame)
    with right:
        st.header("Noise floor", anchor=False)
        st.markdown("How high the cosines of unrelated pairs lie, with 95 % intervals that count rows.")
        _table(figures.floor(ruler), "floor", "Quantiles of the cosines of unrelated pairs")


def _table(frame: pd.DataFrame, key: str, words: str) -> None:
    columns = {}
    for name in frame.select_dtypes("number"):  # as many decimals as keep each number below 1
        places = max((len(decimals(value).partition(".")[2]) for value in frame[name].dropna()), default=3)
        columns[str(name)] = st.column_config.NumberColumn(format=f"%.{places}f")
    exported.note(PREFIX + key, ExportedTable(words, frame))
    st.dataframe(frame, key=PREFIX + key, hide_index=True, column_config=columns, alt=words)


def _take_home(
    ruler: Ruler, pair: NDArray[np.floating] | None, request: SetRequest, cosine: float, answers: Sequence[str]
) -> None:
    st.header("Take it home", anchor=False)
    st.markdown(
        "The ruler as JSON, and what reads it without IsoViz: `pair.npy` holds the two vectors that you compare"
        + ("." if pair is not None else ", such as those of two sentences that you type above.")
    )
    with st.container(horizontal=True):
        reading = ruler.read(cosine)
        numbers = pd.DataFrame([reading.model_dump(exclude={"sentence"})])
        exported.note(
            PREFIX + "reading",
            ExportedTable(
                "What this cosine means", numbers, (reading.sentence, *(wording.unmarked(text) for text in answers))
            ),
        )
        code = functools.partial(_code, ruler, request, cosine)
        button.offer("Ruler", ruler.model or "", code=code)
        downloads.button("Ruler (JSON)", lambda: ruler.model_dump_json(indent=1), "ruler.json", key=PREFIX + "json")
        if pair is not None:
            downloads.button("Your sentences (pair.npy)", lambda: _npy(pair), "pair.npy", key=PREFIX + "pair")
    st.code(SIX_LINES, language="python", wrap_lines=True)
    st.caption(
        wording.plain(
            f"Vectors {ruler.corpus} · {', '.join(f'{name} {number}' for name, number in ruler.versions.items())}"
        )
    )


def _code(ruler: Ruler, request: SetRequest, cosine: float) -> dict[str, str]:
    """For the page as a file: where the numbers come from, what computes the same and reads them, and BibTeX."""
    origin = {"model": ruler.model, **(ruler.cloud or {}), "vectors": ruler.corpus, "unrelated pairs": ruler.protocol}
    origin |= {"related pairs": ruler.relation, **ruler.versions}
    settings = {name: value for name, value in request.as_json().items() if name != "vectors" and value is not None}
    arguments = ", ".join(
        [f"vectors.load({request.vectors!r})", *(f"{name}={value!r}" for name, value in settings.items())]
    )
    return {
        "Computed from": "\n".join(f"{name}: {value}" for name, value in origin.items() if value is not None),
        "The same in Python": "from isoviz import vectors\nfrom isoviz.operations.ruler import of_set\n\n"
        f"print(of_set({arguments}).read({cosine!r}).sentence)",
        "Without IsoViz": SIX_LINES,
        "BibTeX": "\n\n".join(citing.bibtex_of([(ruler.model or "", "", "")]).values()),
    }


def _npy(array: NDArray[np.floating]) -> bytes:
    buffer = BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()

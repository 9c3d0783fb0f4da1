"""Fields of the Compare page: documents, questions, relevance, and encoders or their vectors."""

from __future__ import annotations

from typing import Any, Final

import streamlit as st

from dashboard.inputs import model_form, set_choice
from dashboard.shared import actions, address, forms, job_progress, reading, resources, wording
from dashboard.shared.stable import stable
from dashboard.streamlit_private import uploaded_content
from isoviz.errors import InputError
from isoviz.operations import jobs
from isoviz.readouts.encoders import MOST, EncoderComparison
from isoviz.vectors import demo_sets, intake
from isoviz.vectors.intake import ImportRequest, Kind, SetSummary
from isoviz.vectors.reading import TEXTS, VECTORS
from isoviz.whatif.texts import TextsRequest

PREFIX: Final = "compare_"
OWN_TEXTS, OWN_VECTORS, DEMO = "Your texts", "Your vectors", "Bundled search"
_ROLES: Final = {"file": "Documents", "questions": "Questions", "relations": "Relevance"}
_EXPECTED: Final = {
    OWN_TEXTS: {
        "file": "One text per line, or a table with a text and an id; also with documents and questions in one, told apart by a column.",
        "questions": "As the documents. Leave this empty if the documents' file has them.",
        "relations": "A table with query, document and relevance: ids, or row numbers from 1. Leave it empty to compare neighbours only.",
    },
    OWN_VECTORS: {
        "file": "A file of vectors from each encoder, of the same documents; or of documents and questions, told apart by a column.",
        "questions": "A file from each encoder, in the same order. Leave this empty if the documents' files have them.",
        "relations": "A table with query, document and relevance: ids, or row numbers from 1. Leave it empty to compare neighbours only.",
    },
}
"""Source → role of a file → what its field expects."""
_FIELDS: Final = {"queries": "questions", "pairs": "relations"}
"""Field of an error → role of the file; others are about the documents."""


@stable
def draw() -> EncoderComparison | None:
    """The fields, and the comparison once it is made."""
    source = forms.choice("Compare on", [OWN_TEXTS, OWN_VECTORS, DEMO], PREFIX + "from")
    if source == DEMO:
        sets = _encoded(demo_sets.RETRIEVAL)
    else:
        with st.container(border=True):
            loaded = _uploads(source)
        if loaded is None:
            return None
        sets = _encoded(loaded[0].key) if source == OWN_TEXTS else _named(loaded)
    margin = st.number_input(
        "Margin, points of nDCG@10",
        0.1,
        20.0,
        1.0,
        0.5,
        format="%g",
        key=PREFIX + "margin",
        bind="query-params",
        width=220,
        help="A loss up to this does no harm. nDCG@10 goes from 0 to 100 points.",
    )
    if sets is None:
        return None
    request = jobs.compare_request(sets, margin / 100)
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
        model_form.options(),
        key=PREFIX + "models",
        bind="query-params",
        accept_new_options=True,
        max_selections=MOST,
        placeholder=model_form.PLACEHOLDER,
        help=model_form.HELP,
    )
    if len(models) < 2:
        st.caption("Choose at least two encoders.")
        return None
    sources = {model: model_form.show_source(model) for model in models}
    keys = {
        model: source and set_choice.encoded(f"{PREFIX}{place}_", TextsRequest(texts, source.name))
        for place, (model, source) in enumerate(sources.items())
    }
    found = {model.rstrip("/").rpartition("/")[2]: key for model, key in keys.items() if key}
    if len(found) == len(models):
        return found
    return {model: key for model, key in keys.items() if key} if all(keys.values()) else None


def _named(loaded: list[SetSummary]) -> dict[str, str] | None:
    names = [one.name for one in loaded]
    if len(loaded) < 2:
        st.caption("Add the files of at least two encoders.")
        return None
    return {
        name if names.count(name) == 1 else f"{name} ({place})": one.key
        for place, (name, one) in enumerate(zip(names, loaded, strict=True), 1)
    }


# --------------------------------------------------------------------------------------------------------- uploads


def _uploads(source: str) -> list[SetSummary] | None:
    """Three fields side by side, and what they gave; None without."""
    problem = st.session_state.get(PREFIX + "problem")
    for column, (role, title) in zip(st.columns(3), _ROLES.items(), strict=True):
        with column:
            st.file_uploader(
                title,
                type=reading.upload_types(*("table",) if role == "relations" else _holds(source)),
                accept_multiple_files=source == OWN_VECTORS and role != "relations",
                key=_key(source, role),
                on_change=_read,
                args=(source,),
                disabled=actions.refusal() is not None,
            )
            st.caption(_EXPECTED[source][role])
            if problem is not None and _FIELDS.get(problem.field or "", "file") == role:
                forms.show_error(forms.sentence(problem))
    actions.notice()
    if problem is not None:
        return None
    keys = [key for key in st.query_params.get(_parameter(source), "").split(".") if key]
    loaded = [intake.describe(key) for key in keys]
    found = [one for one in loaded if one is not None]
    if len(found) < len(keys):
        address.refuse(_parameter(source))
        forms.show_error("The data for this link is no longer on this server. Load it again.")
        return None
    for one in found:
        st.caption(f":material/check_circle: {wording.plain(_title(one))}")
    for note in dict.fromkeys(note for one in found for note in one.notes):
        st.caption(wording.plain(note))
    return found or None


def _title(one: SetSummary) -> str:
    size = f"{one.n:,} texts" if one.kind == "texts" else f"{one.n:,} vectors of {one.d:,} dimensions"
    return f"{one.name}: {size}, {'with' if one.relation == 'relevance' else 'without'} relevance"


def _holds(source: str) -> tuple[Any, ...]:
    return TEXTS if source == OWN_TEXTS else VECTORS


def _key(source: str, role: str) -> str:
    return f"{PREFIX}{_kind(source)}.{role}"


def _kind(source: str) -> Kind:
    return "texts" if source == OWN_TEXTS else "vectors"


def _parameter(source: str) -> str:
    return f"{PREFIX}{_kind(source)}"


def _read(source: str) -> None:
    """Read the files and put the keys of what they hold into the address. An error stands below its field."""
    st.session_state[PREFIX + "problem"] = None
    given = {role: st.session_state.get(_key(source, role)) or [] for role in _ROLES}
    documents, questions, relations = (one if isinstance(one, list) else [one] for one in given.values())
    if not documents or (questions and not relations):
        if documents:
            missing = InputError.at("pairs", "add which documents are relevant to these questions")
            st.session_state[PREFIX + "problem"] = missing
        return
    if questions and len(questions) != len(documents):
        counts = f"{len(questions)} files for {len(documents)} files of documents; give as many"
        st.session_state[PREFIX + "problem"] = InputError.at("queries", counts)
        return
    keys = []
    for place, file in enumerate(documents):
        chosen = {"file": file, "questions": questions[place] if questions else None}
        chosen["relations"] = relations[0] if relations else None
        files = {role: (one.name, uploaded_content(one)) for role, one in chosen.items() if one is not None}
        wanted = reading.still_wanted(in_callback=True)
        summary = actions.noted(
            PREFIX + "problem", resources.service().keep_vectors, ImportRequest(_kind(source)), files, wanted
        )
        if summary is None:
            return
        keys.append(summary.key)
    st.query_params[_parameter(source)] = ".".join(keys)

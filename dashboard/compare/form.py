"""Fields of the Compare page: documents, questions, relevance, and encoders or their vectors."""

from __future__ import annotations

from typing import Final

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
_KINDS: Final[dict[str, Kind]] = {OWN_TEXTS: "texts", OWN_VECTORS: "vectors"}
_ROLES: Final = {"file": "Documents", "questions": "Questions", "relations": "Relevance"}
_EXPECTED: Final = {
    (
        "texts",
        "file",
    ): "One text per line, or a table with a text and an id. Questions may be in it, told apart by a column.",
    ("texts", "questions"): "As the documents. Leave this empty if the documents' file has them.",
    (
        "vectors",
        "file",
    ): "A file from each encoder, of the same documents. Questions may be in it, told apart by a column.",
    (
        "vectors",
        "questions",
    ): "A file from each encoder, in the same order. Leave this empty if the documents' files have them.",
}
"""Kind and role of a file → what its field expects."""
_RELEVANCE: Final = (
    "A table with query, document and relevance: ids, or row numbers from 1. Leave it empty to compare neighbours only."
)
_FIELDS: Final = {"queries": "questions", "pairs": "relations"}
"""Field of an error → role of the file; others are about the documents."""
_PROBLEM: Final = PREFIX + "problem"


@stable
def draw() -> EncoderComparison | None:
    """The fields, and the comparison once it is made."""
    source = forms.choice("Compare on", [OWN_TEXTS, OWN_VECTORS, DEMO], PREFIX + "from")
    loaded: list[SetSummary] = []
    if source != DEMO:
        with st.container(border=True):
            loaded = _uploads(_KINDS[source])
        if not loaded:
            return None
    sets = _named(loaded) if source == OWN_VECTORS else _encoded(loaded[0].key if loaded else demo_sets.RETRIEVAL)
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
    keys: dict[str, str] = {}
    for place, model in enumerate(models):
        source = model_form.show_source(model)
        key = source and set_choice.encoded(f"{PREFIX}{place}_", TextsRequest(texts, source.name))
        keys |= {model: key} if key else {}
    return keys if len(keys) == len(models) else None


def _named(loaded: list[SetSummary]) -> dict[str, str] | None:
    if len(loaded) < 2:
        st.caption("Add the files of at least two encoders.")
        return None
    names = [one.name for one in loaded]
    differ = len(set(names)) == len(names)
    return {one.name if differ else f"{place}. {one.name}": one.key for place, one in enumerate(loaded, 1)}


# --------------------------------------------------------------------------------------------------------- uploads


def _uploads(kind: Kind) -> list[SetSummary]:
    """Three fields side by side, and what they gave."""
    problem = st.session_state.get(_PROBLEM)
    for column, (role, title) in zip(st.columns(3), _ROLES.items(), strict=True):
        with column:
            holds = ("table",) if role == "relations" else TEXTS if kind == "texts" else VECTORS
            st.file_uploader(
                title,
                type=reading.upload_types(*holds),
                accept_multiple_files=kind == "vectors" and role != "relations",
                key=f"{PREFIX}{kind}.{role}",
                on_change=_read,
                args=(kind,),
                disabled=actions.refusal() is not None,
            )
            st.caption(_EXPECTED.get((kind, role), _RELEVANCE))
            if problem is not None and _FIELDS.get(problem.field or "", "file") == role:
                forms.show_error(forms.sentence(problem))
    actions.notice()
    keys = [key for key in st.query_params.get(PREFIX + kind, "").split(".") if key]
    loaded = [one for one in map(intake.describe, keys) if one is not None]
    if problem is not None or len(loaded) < len(keys):
        if problem is None:
            address.refuse(PREFIX + kind)
            forms.show_error("The data for this link is no longer on this server. Load it again.")
        return []
    for one in loaded:
        size = f"{one.n:,} texts" if one.kind == "texts" else f"{one.n:,} vectors of {one.d:,} dimensions"
        known = "with" if one.relation == "relevance" else "without"
        st.caption(f":material/check_circle: {wording.plain(f'{one.name}: {size}, {known} relevance')}")
    for note in dict.fromkeys(note for one in loaded for note in one.notes):
        st.caption(wording.plain(note))
    return loaded


def _read(kind: Kind) -> None:
    """Read the files and put the keys of what they hold into the address. An error stands below its field."""
    given = [st.session_state.get(f"{PREFIX}{kind}.{role}") or [] for role in _ROLES]
    documents, questions, relations = (one if isinstance(one, list) else [one] for one in given)
    st.session_state[_PROBLEM] = problem = None
    if documents and questions and not relations:
        problem = InputError.at("pairs", "add which documents are relevant to these questions")
    elif questions and len(questions) != len(documents):
        counts = f"{len(questions)} files for {len(documents)} files of documents; give as many"
        problem = InputError.at("queries", counts)
    if problem is not None or not documents:
        st.session_state[_PROBLEM] = problem
        return
    keys = []
    for place, file in enumerate(documents):
        chosen = {"file": file} | ({"questions": questions[place]} if questions else {})
        chosen |= {"relations": relations[0]} if relations else {}
        files = {role: (one.name, uploaded_content(one)) for role, one in chosen.items()}
        wanted = reading.still_wanted(in_callback=True)
        summary = actions.noted(_PROBLEM, resources.service().keep_vectors, ImportRequest(kind), files, wanted)
        if summary is None:
            return
        keys.append(summary.key)
    st.query_params[PREFIX + kind] = ".".join(keys)

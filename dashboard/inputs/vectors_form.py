"""A user's vectors or texts: upload, paste or path. A guarded process reads them; the address then holds the set's key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

import streamlit as st

from dashboard.shared import actions, forms, reading, resources, wording
from dashboard.shared.stable import stable
from dashboard.streamlit_private import uploaded_content
from isoviz.errors import InputError, listed, without_password
from isoviz.jobs import guarded
from isoviz.operations.access.service import OWN_VECTORS, VECTOR_MODULES
from isoviz.operations.access.uploads import Files
from isoviz.tables.protocol import Holds
from isoviz.vectors import Columns, intake
from isoviz.vectors.columns import places_of
from isoviz.vectors.intake import ImportRequest, Kind, SetSummary
from isoviz.vectors.oddities import Oddity
from isoviz.vectors.pairs import places_of as places_of_pairs
from isoviz.vectors.reading import TEXTS, VECTORS

UPLOAD, PASTE, PATH = "Upload", "Paste", "Path or database"
_SOURCES: Final[dict[Kind, list[str]]] = {
    "vectors": [UPLOAD, PATH],
    "texts": [PASTE, UPLOAD, PATH],
    "either": [UPLOAD, PASTE, PATH],
}
_HOLDS: Final[dict[Kind, tuple[Holds, ...]]] = {"vectors": VECTORS, "texts": TEXTS, "either": (*VECTORS, "texts")}
_EVERY: Final = "text, label, group and id are optional."
_FIRST: Final[dict[Kind, str]] = {
    "vectors": f"One vector per row: an array, a column of lists, or one column per dimension; {_EVERY}",
    "texts": "One text per line, or a table with a text; label, group and id are optional.",
    "either": f"Vectors or texts, one per row; {_EVERY}",
}
_ADDRESS: Final = (
    "A file on the server, `hub:owner/name:split` for a data set of the Hugging Face hub, or the address of a database, such as "
    "`postgresql://host/db?table=docs`. Of a database, a random sample of its rows is read; nothing is written."
)
_PASTED: Final = "pasted texts"
_COLUMN_HELP: Final = {
    "points": "A column of lists, a pattern such as dim_*, names with commas, or an array of the file.",
    "text": "The text of each row.",
    "label": "The class of each row, or its slice, such as an area; colours the map.",
    "group": "Another grouping, such as query and document.",
    "id": "A name for each row; rows with the same id match across sets.",
    "query": "The id of a question, or its row number from 1.",
    "document": "The id of a document, or its row number from 1.",
    "relevance": "Above 0: relevant. Without it, each pair is relevant.",
}
_ROLES: Final = {"file": "Documents, or any rows", "questions": "Questions", "relations": "Relevance"}
"""Role of a file → title of its field."""
_EXPECTED: Final = {
    "questions": "Of a search, in the form of the documents; or in their file, told apart by a column.",
    "relations": "Of a search: query, document, relevance. Or scored pairs: left, right, score. Ids, or row numbers from 1.",
}
_SEVERAL: Final = "A file from each encoder, of the same documents."
_COLUMNS_OF: Final = {
    "file": ("points", "text", "label", "group", "id"),
    "questions": ("points", "text", "label", "id"),
    "relations": ("query", "document", "relevance"),
}
"""Role of a file → the columns that can be chosen."""
_FIELDS: Final = {"queries": "questions", "pairs": "relations", "labels": "beside"}
"""Field of an error → role of its file, if it is not `file`."""
SAVED_FROM: Final = "saved_from"
"""Session key: the address that the page was saved at from which a set has just been read."""
_LAST: Final = "own_set"
"""Session key: the key of the set that this visitor used last, on any page."""


@dataclass(frozen=True)
class _Form:
    """Widget keys of one form, because a page may have several.

    Attributes:
        prefix: prefix of the page or view.
        kind: what the form accepts.
        several: it takes uploads of several encoders.
        search: uploads come first.
    """

    prefix: str
    kind: Kind
    several: bool = False
    search: bool = False

    @property
    def sources(self) -> list[str]:
        """What it reads from; the first is the default."""
        every = [UPLOAD] if self.several else _SOURCES[self.kind]
        return sorted(every, key=lambda source: source != UPLOAD) if self.search else every

    @property
    def parameter(self) -> str:
        """Query parameter that holds the set's key, or several with dots."""
        return f"{self.prefix}{self.kind}"

    def key(self, name: str) -> str:
        """Key of a widget; `problem` is the session key of the last input's error, `names` of the columns of its files."""
        return f"{self.prefix}own.{self.kind}.{name}"

    def value(self, name: str) -> Any:
        """What a widget holds; its text without blanks around it."""
        value = st.session_state.get(self.key(name))
        return value.strip() if isinstance(value, str) else value

    def files(self, role: str) -> list[Any]:
        """The uploads in a field."""
        value = self.value(role) or []
        return value if isinstance(value, list) else [value]

    def columns(self, role: str) -> dict[str, str | None]:
        """The columns chosen for a file."""
        return {name: self.value(f"{role}.{name}") or None for name in _COLUMNS_OF[role]}

    def options(self, name: str) -> dict[str, Any]:
        """Of a widget whose change reads the input."""
        disabled = actions.refusal() is not None
        return {"key": self.key(name), "on_change": _read_input, "args": (self,), "disabled": disabled}


@stable
def draw(prefix: str, kind: Kind, *, search: bool = False) -> SetSummary | None:
    """Draw the form, and return the loaded set; None if none is loaded.

    Args:
        prefix: prefix of the page or view. `{prefix}{kind}` in the address holds the set's key.
        kind: `texts`, `vectors`, or `either` (the file decides).
        search: offer uploads first, because a search is three files.
    """
    return next(iter(_drawn(_Form(prefix, kind, search=search))), None)


@stable
def draw_several(prefix: str) -> list[SetSummary]:
    """The form for the vectors of several encoders, and the loaded sets. `{prefix}vectors` in the address holds their keys."""
    return _drawn(_Form(prefix, "vectors", several=True))


def _drawn(form: _Form) -> list[SetSummary]:
    if actions.refusal() is None:
        guarded.warm(f"{OWN_VECTORS}:ready", VECTOR_MODULES)
    with st.container(border=True):
        source = form.sources[0]
        if len(form.sources) > 1:
            source = forms.choice("From", form.sources, form.key("from"), label_visibility="collapsed")
        problem = form.value("problem")
        if source == PASTE:
            example = "The cat sat on the mat.\nA dog barked all night."
            hint = "Press Ctrl+Enter, or click elsewhere."
            st.text_area("Texts, one per line", height=150, placeholder=example, help=hint, **form.options("lines"))
        else:
            _files(form, source, problem)
            _details(form)
        if source == PASTE or (problem is not None and _FIELDS.get(problem.field) == "beside"):
            forms.show_error(problem)
        return [] if form.several and problem else _loaded(form)


# ------------------------------------------------------------------------------------------------------- sources


def _files(form: _Form, source: str, problem: InputError | None) -> None:
    """Three fields side by side; an error stands below its field."""
    for column, (role, title) in zip(st.columns(3), _ROLES.items(), strict=True):
        expected = _EXPECTED.get(role, _SEVERAL if form.several else _FIRST[form.kind])
        with column:
            if role == "file" and source == PATH:
                st.text_input(PATH, placeholder="/path/to/vectors.npy", **form.options("path"))
                expected = _ADDRESS
            else:
                holds = ("table",) if role == "relations" else _HOLDS[form.kind]
                more: dict[str, Any] = {"accept_multiple_files": form.several and role != "relations"}
                st.file_uploader(title, type=reading.upload_types(*holds), **more, **form.options(role))
            st.caption(expected)
            if problem is not None and _FIELDS.get(problem.field or "", "file") == role:
                forms.show_error(problem)
            elif role == "relations" and form.value("questions") and not form.value(role):
                st.caption(":material/arrow_upward: Add which documents are relevant to these questions.")
    actions.notice()


def _details(form: _Form) -> None:
    """Roles of the columns, and further files; drawn only when opened, because few users need them."""
    panel = st.expander("Columns and further files", icon=":material/tune:", key=form.key("more"), on_change="rerun")
    if not panel.open:
        return
    with panel:
        for role, title in _ROLES.items():
            if role == "file" or form.value(role):
                _pickers(form, role, title)
        if form.kind == "texts":
            return
        st.file_uploader(
            "Texts, labels or ids of an array",
            type=reading.upload_types("table"),
            help="A table with one row per vector, in the same order, or with a column `id` that both have.",
            **form.options("beside"),
        )
        st.toggle(
            "Skip bad rows",
            help="Leaves out rows without a readable vector, and says how many.",
            **form.options("skip"),
        )


def _pickers(form: _Form, role: str, title: str) -> None:
    """A field for each column of a file, which lists all of them; its placeholder is what was found by name."""
    offered: list[str] = (form.value("names") or {}).get(role, [])
    if role == "relations":
        found = dict(zip(_COLUMNS_OF[role], places_of_pairs(offered, {})[1], strict=False))
    else:
        found = places_of(offered, Columns(), role)
    names = [name for name in _COLUMNS_OF[role] if name != "points" or form.kind != "texts"]
    st.caption(f"Columns of {wording.plain(', '.join(one.name for one in form.files(role)) or title.lower())}")
    for column, name in zip(st.columns(len(names)), names, strict=True):
        column.selectbox(
            "Vectors" if name == "points" else name.capitalize(),
            offered,
            index=None,
            accept_new_options=True,
            placeholder=found.get(name) or ("found by content" if name in ("points", "text") else "none"),
            help=_COLUMN_HELP[name],
            **form.options(f"{role}.{name}"),
        )


def _read_input(form: _Form) -> None:
    """Read the input and put its key into the address. On an error, show it beside its field and change nothing else."""
    source = form.value("from") or form.sources[0]
    st.session_state[form.key("problem")] = None
    request = ImportRequest(
        form.kind,
        columns=Columns(**form.columns("file")),
        asked=Columns(**form.columns("questions")),
        linked=form.columns("relations"),
        skip_bad=bool(form.value("skip")),
    )
    uploads = {role: form.files(role) for role in (*_ROLES, "beside")}
    if source == PASTE:
        lines = form.value("lines") or ""
        pasted = {"file": ("pasted.txt", lines.encode("utf-8", "replace"))}
        if lines:
            _keep(form, ImportRequest("texts", name=_PASTED), [pasted])
        return
    if source == PATH:
        uploads["file"] = []
        request = replace(request, file=_with_password(form, form.value("path") or ""))
    if uploads["questions"] and not uploads["relations"]:  # one more file is to come
        return
    if form.several and uploads["questions"] and len(uploads["questions"]) != len(uploads["file"]):
        counts = f"{len(uploads['questions'])} files for {len(uploads['file'])} files of documents; give as many"
        st.session_state[form.key("problem")] = InputError.at("queries", counts)
        return
    sets = []
    for place in range(len(uploads["file"]) or bool(request.file)):
        chosen = {role: files[min(place, len(files) - 1)] for role, files in uploads.items() if files}
        sets.append({role: (one.name, uploaded_content(one)) for role, one in chosen.items()})
    if sets:
        _keep(form, request, sets)


def _with_password(form: _Form, path: str) -> str:
    """The path as it was entered. Of a database's address, the field then shows neither user nor password."""
    remembered, shown = form.key("address"), without_password(path)
    if "…@" not in path and shown != path:
        st.session_state[remembered], st.session_state[form.key("path")] = path, shown
    entered = st.session_state.get(remembered, "")
    return entered if without_password(entered) == shown else path


def _keep(form: _Form, request: ImportRequest, sets: Sequence[Files]) -> None:
    """Store sets and put their keys into the address. On an error, only note it in the session."""
    wanted = reading.still_wanted(in_callback=True)
    problem, keys = form.key("problem"), []
    for files in sets:
        summary = actions.noted(problem, resources.service().keep_vectors, request, files, wanted)
        names = st.session_state[problem].choices if summary is None else summary.names
        st.session_state[form.key("names")] = names
        if summary is None:
            return
        keys.append(summary.key)
        st.session_state[SAVED_FROM] = summary.saved_from
    st.query_params[form.parameter] = ".".join(keys)


def has_set(prefix: str) -> bool:
    """Whether the address has a set, or this visitor has loaded one on any page."""
    return _Form(prefix, "either").parameter in st.query_params or _LAST in st.session_state


# ---------------------------------------------------------------------------------------------------- the loaded set


def _loaded(form: _Form) -> list[SetSummary]:
    """The sets in the address, else the one this visitor used last, so that no page asks for the same file again."""
    keys = [key for key in st.query_params.get(form.parameter, "").split(".") if key]
    if not keys:
        last = intake.describe(st.session_state.get(_LAST, ""))
        if last is None or form.several or form.kind not in (last.kind, "either"):
            return []
        keys = [last.key]
        st.query_params[form.parameter] = last.key
    sets = [one for one in map(intake.describe, keys) if one is not None]
    if len(sets) < len(keys):
        del st.query_params[form.parameter]
        forms.show_error("The data for this link is no longer on this server. Load it again.")
        return []
    if not form.several:
        st.session_state[_LAST] = keys[0]
    for caution in dict.fromkeys(caution for one in sets for caution in cautions(one)):
        st.warning(caution)
    for note in dict.fromkeys(note for one in sets for note in one.notes):
        st.caption(wording.plain(note))
    for place, summary in enumerate(sets):
        if not form.several:
            _oddities(form, summary, "form")
        with st.container(horizontal=True, vertical_alignment="center"):
            columns = f"Columns read as dimensions: {listed(summary.dimensions, 300)}." if summary.dimensions else None
            st.caption(
                f":material/check_circle: {wording.plain(title(summary))}",
                help=wording.plain(columns) if columns else None,
                width="stretch",
            )
            actions.button(
                "Delete",
                key=form.key("delete") + f".{place}" * (place > 0),
                icon=":material/delete:",
                type="tertiary",
                on_click=_delete,
                args=(form, summary.key),
            )
    return sets


def cautions(summary: SetSummary) -> list[str]:
    """What may have been read wrongly, as Markdown."""
    found = []
    if summary.odd:
        found.append(
            f"{wording.plain(listed(summary.odd, 120))}: read as dimensions, but they look like ids, labels or times. To leave them out, "
            "name the columns of the vectors under *Columns and further files*."
        )
    return [*found, f"{wording.plain(summary.skipped)}."] if summary.skipped else found


def title(summary: SetSummary) -> str:
    """One-line description of a set."""
    size = f"{summary.n:,} vectors of {summary.d:,} dimensions" if summary.kind == "vectors" else f"{summary.n:,} texts"
    columns = [name for name in summary.columns if name != "text" or summary.kind == "vectors"]
    pairs = {"similarity": ["similarity scores"], "relevance": ["relevance"], None: []}[summary.relation]
    listed = ", ".join([*columns, *pairs])
    return f"{summary.name}: {size}" + (f", with {listed}" if listed else "")


def oddities(prefix: str, summary: SetSummary) -> None:
    """What was found in the vectors of a page's form that may not belong there, each with a button that leaves it out."""
    _oddities(_Form(prefix, "vectors"), summary, "page")


def _oddities(form: _Form, summary: SetSummary, place: str) -> None:
    for name, (places, count) in summary.oddities.items():
        words = f"{count:,} of {summary.n:,} rows repeat an earlier one (the first is row {places[0] + 1:,}) and count as rows of their own"
        if name == "constant":
            words = f"{count:,} of {summary.d:,} dimensions are constant ({listed(places, 60)}) and count as directions without variance"
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(f":material/info: {words}", width="content")
            actions.button(
                "Leave out",
                key=form.key(f"{place}.{name}"),
                type="tertiary",
                on_click=_keep,
                args=(form, ImportRequest(form.kind, stored=summary.key, leave_out=cast("Oddity", name)), [{}]),
            )


def _delete(form: _Form, key: str) -> None:
    if actions.perform(resources.service().forget_vectors, key):
        st.query_params.pop(form.parameter, None)
        st.session_state.pop(_LAST, None)

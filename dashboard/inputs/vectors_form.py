"""A user's vectors or texts: upload, paste or path. A guarded process reads them; the address then holds the set's key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import streamlit as st

from dashboard.shared import actions, address, forms, reading, resources, wording
from dashboard.shared.stable import stable
from dashboard.streamlit_private import uploaded_content
from isoviz.access.service import OWN_VECTORS, VECTOR_MODULES
from isoviz.access.uploads import Files
from isoviz.errors import listed, without_password
from isoviz.jobs import guarded
from isoviz.tables.protocol import Holds
from isoviz.vectors import Columns, intake
from isoviz.vectors.intake import ImportRequest, Kind, SetSummary
from isoviz.vectors.reading import TEXTS, VECTORS
from isoviz.vectors.sets import Relation

UPLOAD, PASTE, PATH = "Upload", "Paste", "Path on the server"
_SOURCES: Final[dict[Kind, list[str]]] = {
    "vectors": [UPLOAD, PATH],
    "texts": [PASTE, UPLOAD, PATH],
    "either": [UPLOAD, PASTE, PATH],
}
_HOLDS: Final[dict[Kind, tuple[Holds, ...]]] = {"vectors": VECTORS, "texts": TEXTS, "either": (*VECTORS, "texts")}
_HINTS: Final[dict[Kind, str]] = {
    "vectors": "One vector per row: an array, a column of lists, or one column per dimension. Columns `text`, `label`, `group` and "
    "`id` are optional.",
    "texts": "One text per line, or a table with a column `text`. Columns `label`, `group` and `id` are optional.",
    "either": "A table of texts or vectors, an array, or one text per line. Columns `text`, `label`, `group` and `id` are optional.",
}
_DATABASE: Final = "postgresql://host/db?table=docs"
_PASTED: Final = "pasted texts"
_COLUMN_HELP: Final = {
    "points": "A column of lists, a pattern such as dim_*, names with commas, or an array of the file.",
    "text": "The text of each row.",
    "label": "The class of each row; colours the map.",
    "group": "Another grouping, such as query and document.",
    "id": "A name for each row; rows with the same id match across sets.",
}
_ANNOTATIONS: Final = {
    "labels": "A table with a column `label`, and a column `id` or one row per vector in the same order.",
    "queries": "A table with the columns `query`, `document` and `relevance`. Queries and documents are ids of rows.",
    "pairs": "A table with the columns `left`, `right` and `score`. Left and right are ids of rows.",
}
ANNOTATION_PROBLEM: Final = "annotation_problem"
"""Session key: the error of the last file of labels, queries or pairs."""
ANNOTATED: Final = "annotated"
"""Session key: a file has just been added, so the whole page must be drawn again."""
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
    """

    prefix: str
    kind: Kind

    @property
    def parameter(self) -> str:
        """Query parameter that holds the set's key."""
        return f"{self.prefix}{self.kind}"

    def key(self, name: str) -> str:
        """Key of a widget; `problem` is the session key of the last input's error."""
        return f"{self.prefix}own.{self.kind}.{name}"

    def value(self, name: str) -> Any:
        """What a widget holds; its text without blanks around it."""
        value = st.session_state.get(self.key(name))
        return value.strip() if isinstance(value, str) else value

    def options(self, name: str) -> dict[str, Any]:
        """Of a widget whose change reads the input."""
        disabled = actions.refusal() is not None
        return {"key": self.key(name), "on_change": _read_input, "args": (self,), "disabled": disabled}


@stable
def draw(prefix: str, kind: Kind) -> SetSummary | None:
    """Draw the form, and return the loaded set; None if none is loaded.

    Args:
        prefix: prefix of the page or view. `{prefix}{kind}` in the address holds the set's key.
        kind: `texts`, `vectors`, or `either` (the file decides).
    """
    form = _Form(prefix, kind)
    if actions.refusal() is None:
        guarded.warm(f"{OWN_VECTORS}:ready", VECTOR_MODULES)
    with st.container(border=True):
        source = forms.choice("From", _SOURCES[kind], form.key("from"), label_visibility="collapsed")
        {UPLOAD: _upload, PASTE: _paste, PATH: _path}[source](form)
        if source != PASTE:
            _details(form)
        forms.show_error(form.value("problem"))
        return _loaded(form)


# ------------------------------------------------------------------------------------------------------- sources


def _upload(form: _Form) -> None:
    st.file_uploader(
        "File", type=reading.upload_types(*_HOLDS[form.kind]), help=_HINTS[form.kind], **form.options("file")
    )
    actions.notice()


def _paste(form: _Form) -> None:
    example = "The cat sat on the mat.\nA dog barked all night."
    hint = "Press Ctrl+Enter, or click elsewhere."
    st.text_area("Texts, one per line", height=150, placeholder=example, help=hint, **form.options("lines"))


def _path(form: _Form) -> None:
    hint = (
        f"Or `hub:owner/name:split` for a data set of the Hugging Face hub, or a database's address, such as `{_DATABASE}`. "
        f"{_HINTS[form.kind]}"
    )
    st.text_input("File on the server", placeholder="/path/to/vectors.npy", help=hint, **form.options("path"))


def _details(form: _Form) -> None:
    """Roles of the columns, and further files; drawn only when opened, because few users need them."""
    panel = st.expander("Columns and further files", icon=":material/tune:", key=form.key("more"), on_change="rerun")
    if not panel.open:
        return
    with panel:
        names = [name for name in _COLUMN_HELP if name != "points" or form.kind != "texts"]
        for column, name in zip(st.columns(len(names)), names, strict=True):
            column.text_input(
                "Vectors" if name == "points" else name.capitalize(),
                help=f"{_COLUMN_HELP[name]} If empty, the column is found by name.",
                **form.options(name),
            )
        questions, relevance = st.columns(2)
        questions.file_uploader(
            "Questions of a search",
            type=reading.upload_types(*_HOLDS[form.kind]),
            help="As the documents, in a file of their own. Leave it empty if the documents' file has them, told apart by a column.",
            **form.options("questions"),
        )
        relevance.file_uploader(
            "Relevance or scored pairs",
            type=reading.upload_types("table"),
            help="A table with query, document and relevance, or with two rows and a score: ids, or row numbers from 1.",
            **form.options("relations"),
        )
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


def _read_input(form: _Form) -> None:
    """Read the input and put its key into the address. On an error, show it below the form and change nothing else."""
    source = form.value("from") or _SOURCES[form.kind][0]
    st.session_state[form.key("problem")] = None
    columns = Columns(**{name: form.value(name) or None for name in _COLUMN_HELP})
    request = ImportRequest(form.kind, columns=columns, skip_bad=bool(form.value("skip")))
    files: dict[str, tuple[str, bytes | memoryview]] = {
        role: (table.name, uploaded_content(table))
        for role in ("file", "beside", "questions", "relations")
        if (table := form.value(role)) is not None
    }
    if source == PASTE:
        lines = form.value("lines") or ""
        request, files = ImportRequest("texts", name=_PASTED), {}
        if lines:
            files["file"] = ("pasted.txt", lines.encode("utf-8", "replace"))
    elif source == PATH:
        files.pop("file", None)
        request = replace(request, file=_with_password(form, form.value("path") or ""))
    if request.file or "file" in files:
        _keep(form.key("problem"), form.parameter, request, files)


def _with_password(form: _Form, path: str) -> str:
    """The path as it was entered. Of a database's address, the field then shows neither user nor password."""
    remembered, shown = form.key("address"), without_password(path)
    if "…@" not in path and shown != path:
        st.session_state[remembered], st.session_state[form.key("path")] = path, shown
    entered = st.session_state.get(remembered, "")
    return entered if without_password(entered) == shown else path


def _keep(problem: str, parameter: str, request: ImportRequest, files: Files) -> bool:
    """Store a set and put its key into the address. On an error, only note it in the session under the key `problem`."""
    wanted = reading.still_wanted(in_callback=True)
    summary = actions.noted(problem, resources.service().keep_vectors, request, files, wanted)
    if summary is not None:
        st.query_params[parameter] = summary.key
        st.session_state[SAVED_FROM] = summary.saved_from
    return summary is not None


def annotation_buttons(
    prefix: str, key: str, missing: Mapping[str, str], *, ids: bool, relation: Relation | None
) -> None:
    """A button with a file field for each annotation that a stored set lacks, and the error of the last file.

    Args:
        missing: `labels`, `queries` or `pairs` → its name.
        ids: the set has a column of ids.
        relation: what the set's pairs mean, if it has some.
    """
    with st.container(horizontal=True, gap="small"):
        for needs, name in missing.items():
            with st.popover(f"Add {name}", icon=":material/upload_file:", key=f"{prefix}add_{needs}"):
                st.caption(_ANNOTATIONS[needs])
                if not ids:
                    st.caption("Your rows have no ids, so their ids are 1, 2, 3, …")
                if relation is not None and needs != "labels":
                    st.caption("A set has either queries or scored pairs: this file replaces the other.")
                _annotation_field(prefix, key, needs)
    forms.show_error(st.session_state.get(ANNOTATION_PROBLEM))
    if missing:
        actions.notice()


def _annotation_field(prefix: str, key: str, needs: str) -> None:
    """Field for a file that adds labels, queries or scored pairs (`needs`) to a stored set; the result replaces it in the address."""
    field = f"{prefix}add.{needs}"
    role = "beside" if needs == "labels" else "relations"
    options: dict[str, Any] = {
        "on_change": _annotate,
        "args": (prefix, key, field, role),
        "disabled": actions.refusal() is not None,
    }
    if needs == "labels":
        hint = "If empty: the column `label`, or the only column."
        st.text_input("Column of the labels", key=f"{field}.column", help=hint, **options)
    st.file_uploader("File", type=reading.upload_types("table"), key=field, label_visibility="collapsed", **options)


def _annotate(prefix: str, key: str, field: str, role: str) -> None:
    st.session_state[ANNOTATION_PROBLEM] = None
    if (table := st.session_state.get(field)) is None:
        return
    files = {role: (table.name, uploaded_content(table))}
    parameter = _Form(prefix, "either").parameter
    columns = Columns(label=(st.session_state.get(f"{field}.column") or "").strip() or None)
    request = ImportRequest(base=key, columns=columns)
    st.session_state[ANNOTATED] = _keep(ANNOTATION_PROBLEM, parameter, request, files)


# ---------------------------------------------------------------------------------------------------- the loaded set


def _loaded(form: _Form) -> SetSummary | None:
    """The set in the address, else the one this visitor used last, so that no page asks for the same file again."""
    key = st.query_params.get(form.parameter)
    if not key:
        last = intake.describe(st.session_state.get(_LAST, ""))
        if last is None or form.kind not in (last.kind, "either"):
            return None
        key = st.query_params[form.parameter] = last.key
    summary = intake.describe(key)
    if summary is None:
        address.refuse(form.parameter)
        forms.show_error("The data for this link is no longer on this server. Load it again.")
        return None
    st.session_state[_LAST] = key
    for caution in cautions(summary):
        st.warning(caution)
    for note in summary.notes:
        st.caption(wording.plain(note))
    with st.container(horizontal=True, vertical_alignment="center"):
        columns = f"Columns read as dimensions: {listed(summary.dimensions, 300)}." if summary.dimensions else None
        st.caption(
            f":material/check_circle: {wording.plain(title(summary))}",
            help=wording.plain(columns) if columns else None,
            width="stretch",
        )
        actions.button(
            "Delete",
            key=form.key("delete"),
            icon=":material/delete:",
            type="tertiary",
            on_click=_delete,
            args=(form, summary.key),
        )
    return summary


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


def _delete(form: _Form, key: str) -> None:
    if actions.perform(resources.service().forget_vectors, key):
        st.query_params.pop(form.parameter, None)
        st.session_state.pop(_LAST, None)

"""A user's vectors or texts: upload, paste or path. A guarded process reads them; the address then holds the set's key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import streamlit as st

from dashboard import actions, address, forms, reading, resources, wording
from dashboard.steady import steady
from isoviz.access.service import OWN_VECTORS, VECTOR_MODULES
from isoviz.errors import AccessError, InputError
from isoviz.jobs import guarded
from isoviz.vectors import Columns, intake
from isoviz.vectors.intake import ImportRequest, Kind, SetSummary
from isoviz.vectors.reading import SUFFIXES, TEXT_SUFFIXES

UPLOAD, PASTE, PATH = "Upload", "Paste", "Path on the server"
_SOURCES: Final[dict[Kind, list[str]]] = {
    "vectors": [UPLOAD, PATH],
    "texts": [PASTE, UPLOAD, PATH],
    "either": [UPLOAD, PASTE, PATH],
}
_ENDINGS: Final[dict[Kind, tuple[str, ...]]] = {
    "vectors": SUFFIXES,
    "texts": TEXT_SUFFIXES,
    "either": (*SUFFIXES, ".txt"),
}
_HINTS: Final[dict[Kind, str]] = {
    "vectors": "One vector per row: an array, a column of lists, or one column per dimension. Columns `text`, `label`, `group` and "
    "`id` are optional.",
    "texts": "One text per line, or a table with a column `text`. Columns `label`, `group` and `id` are optional.",
    "either": "A table of texts or vectors, an array, or one text per line. Columns `text`, `label`, `group` and `id` are optional.",
}
_PASTED: Final = "pasted texts"
_COLUMN_HELP: Final = {
    "points": "A column of lists, a pattern such as dim_*, names with commas, or an array of the file.",
    "text": "The text of each row.",
    "label": "The class of each row; colours the map.",
    "group": "Another grouping, such as query and document.",
    "id": "A name for each row; rows with the same id match across sets.",
}
_TABLES: Final = ["csv", "tsv", "jsonl", "parquet"]


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
        """Key of a widget."""
        return f"{self.prefix}own.{self.kind}.{name}"

    @property
    def problem(self) -> str:
        """Session key of the last input's error."""
        return self.key("problem")


@steady
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
        source = st.segmented_control(
            "From",
            _SOURCES[kind],
            default=_SOURCES[kind][0],
            required=True,
            key=form.key("from"),
            bind="query-params",
            label_visibility="collapsed",
        )
        {UPLOAD: _upload, PASTE: _paste, PATH: _path}[str(source)](form)
        if source != PASTE:
            _details(form)
        if problem := st.session_state.get(form.problem):
            forms.show_error(problem)
        return _loaded(form)


def selected(prefix: str, kind: Kind) -> SetSummary | None:
    """The set in the address, without drawing anything."""
    key = st.query_params.get(_Form(prefix, kind).parameter, "")
    return intake.describe(key)


# ------------------------------------------------------------------------------------------------------- sources


def _upload(form: _Form) -> None:
    st.file_uploader(
        "File",
        type=[ending.removeprefix(".") for ending in _ENDINGS[form.kind]],
        key=form.key("file"),
        on_change=_read_input,
        args=(form,),
        disabled=actions.refusal() is not None,
        help=_HINTS[form.kind],
    )
    actions.notice()


def _paste(form: _Form) -> None:
    st.text_area(
        "Texts, one per line",
        key=form.key("lines"),
        height=150,
        placeholder="The cat sat on the mat.\nA dog barked all night.",
        on_change=_read_input,
        args=(form,),
        disabled=actions.refusal() is not None,
        help="Press Ctrl+Enter, or click elsewhere.",
    )


def _path(form: _Form) -> None:
    st.text_input(
        "File on the server",
        key=form.key("path"),
        placeholder="/path/to/vectors.npy",
        on_change=_read_input,
        args=(form,),
        disabled=actions.refusal() is not None,
        help="Or `hub:owner/name:split` for a data set of the Hugging Face hub. " + _HINTS[form.kind],
    )


def _details(form: _Form) -> None:
    """Roles of the columns, and further files; drawn only when opened, because few users need it."""
    panel = st.expander("Columns and further files", icon=":material/tune:", key=form.key("more"), on_change="rerun")
    if not panel.open:
        return
    with panel:
        names = [name for name in _COLUMN_HELP if name != "points" or form.kind != "texts"]
        for column, name in zip(st.columns(len(names)), names, strict=True):
            column.text_input(
                "Vectors" if name == "points" else name.capitalize(),
                key=form.key(name),
                on_change=_read_input,
                args=(form,),
                help=f"{_COLUMN_HELP[name]} If empty, the column is found by name.",
            )
        if form.kind == "texts":
            return
        left, right = st.columns(2)
        left.file_uploader(
            "Texts, labels or ids of an array",
            type=_TABLES,
            key=form.key("beside"),
            on_change=_read_input,
            args=(form,),
            help="A table with one row per vector, in the same order.",
        )
        right.file_uploader(
            "Pairs or relevance",
            type=_TABLES,
            key=form.key("relations"),
            on_change=_read_input,
            args=(form,),
            help="Columns left, right and score; or query, document and relevance. They refer to ids.",
        )


def _read_input(form: _Form) -> None:
    """Read the input and put its key into the address. On an error, show it below the form and change nothing else."""
    session_value = st.session_state.get
    source = session_value(form.key("from")) or _SOURCES[form.kind][0]
    st.session_state[form.problem] = None
    files: dict[str, tuple[str, bytes | memoryview]] = {}
    request = ImportRequest(form.kind)
    if source == PASTE:
        lines = (session_value(form.key("lines")) or "").strip()
        if not lines:
            return
        request = ImportRequest("texts", name=_PASTED)
        files["file"] = ("pasted.txt", lines.encode("utf-8", "replace"))
    elif source == PATH:
        path = (session_value(form.key("path")) or "").strip()
        if not path:
            return
        request = ImportRequest(form.kind, path)
    elif (file := session_value(form.key("file"))) is not None:
        files["file"] = (file.name, file.getbuffer())
    else:
        return
    if source != PASTE:
        columns = {name: (session_value(form.key(name)) or "").strip() or None for name in _COLUMN_HELP}
        request = ImportRequest(request.kind, request.file, Columns(**columns))
        for role in ("beside", "relations"):
            if (table := session_value(form.key(role))) is not None:
                files[role] = (table.name, table.getbuffer())
    try:
        summary = resources.service().keep_vectors(request, files, reading.still_wanted(in_callback=True))
    except (AccessError, InputError) as error:
        st.session_state[form.problem] = forms.sentence(error) + (f" {error.advice}" if error.advice else "")
        return
    st.query_params[form.parameter] = summary.key


# ---------------------------------------------------------------------------------------------------- the loaded set


def _loaded(form: _Form) -> SetSummary | None:
    key = st.query_params.get(form.parameter)
    if not key:
        return None
    summary = intake.describe(key)
    if summary is None:
        address.refuse(form.parameter)
        forms.show_error("The data for this link is no longer on this server. Load it again.")
        return None
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f":material/check_circle: {wording.plain(title(summary))}", width="stretch")
        actions.button(
            "Delete",
            key=form.key("delete"),
            icon=":material/delete:",
            type="tertiary",
            on_click=_delete,
            args=(form, summary.key),
        )
    return summary


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

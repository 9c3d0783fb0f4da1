"""Own vectors and own texts on a page: upload, paste or path; read in a guarded process and named by their key from then on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import streamlit as st

from dashboard import actions, address, forms, reading, resources, wording
from dashboard.steady import steady
from isoviz.access.service import OWN_VECTORS, VECTOR_MODULES
from isoviz.access.uploads import Loose
from isoviz.errors import AccessError, InputError
from isoviz.jobs import guarded
from isoviz.vectors import Columns, taking
from isoviz.vectors.reading import SUFFIXES, TEXT_SUFFIXES
from isoviz.vectors.taking import Kind, Order, Taken

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
    """The keys of one form: several may be on a page.

    Attributes:
        prefix: of the page or view.
        kind: what may be chosen.
    """

    prefix: str
    kind: Kind

    @property
    def parameter(self) -> str:
        """Of the key in the address."""
        return f"{self.prefix}{self.kind}"

    def key(self, name: str) -> str:
        """Of a widget."""
        return f"{self.prefix}own.{self.kind}.{name}"

    @property
    def problem(self) -> str:
        """In the session: what is wrong with what was given last."""
        return self.key("problem")


@steady
def draw(prefix: str, kind: Kind) -> Taken | None:
    """The form of own vectors or texts, and what is loaded; None while nothing is.

    Args:
        prefix: of the keys of the page or view. `{prefix}{kind}` in the address is the key of the set.
        kind: `texts`, `vectors`, or `either`, where the file decides.
    """
    form = _Form(prefix, kind)
    if actions.why_not() is None:
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
            forms.error_beside(problem)
        return _loaded(form)


def chosen(prefix: str, kind: Kind) -> Taken | None:
    """What the address names, without drawing anything."""
    key = st.query_params.get(_Form(prefix, kind).parameter, "")
    return taking.describe(key)


# ------------------------------------------------------------------------------------------------------- the sources


def _upload(form: _Form) -> None:
    st.file_uploader(
        "File",
        type=[ending.removeprefix(".") for ending in _ENDINGS[form.kind]],
        key=form.key("file"),
        on_change=_take,
        args=(form,),
        disabled=actions.why_not() is not None,
        help=_HINTS[form.kind],
    )
    actions.notice()


def _paste(form: _Form) -> None:
    st.text_area(
        "Texts, one per line",
        key=form.key("lines"),
        height=150,
        placeholder="The cat sat on the mat.\nA dog barked all night.",
        on_change=_take,
        args=(form,),
        disabled=actions.why_not() is not None,
        help="Press Ctrl+Enter, or click elsewhere.",
    )


def _path(form: _Form) -> None:
    st.text_input(
        "File on the server",
        key=form.key("path"),
        placeholder="/path/to/vectors.npy",
        on_change=_take,
        args=(form,),
        disabled=actions.why_not() is not None,
        help="Or `hub:owner/name:split` for a data set of the Hugging Face hub. " + _HINTS[form.kind],
    )


def _details(form: _Form) -> None:
    """Which column is what, and what else belongs to the set; drawn once it is opened, because few need it."""
    panel = st.expander("Columns and further files", icon=":material/tune:", key=form.key("more"), on_change="rerun")
    if not panel.open:
        return
    with panel:
        names = [name for name in _COLUMN_HELP if name != "points" or form.kind != "texts"]
        for column, name in zip(st.columns(len(names)), names, strict=True):
            column.text_input(
                "Vectors" if name == "points" else name.capitalize(),
                key=form.key(name),
                on_change=_take,
                args=(form,),
                help=f"{_COLUMN_HELP[name]} Leave empty to find it by its name.",
            )
        if form.kind == "texts":
            return
        left, right = st.columns(2)
        left.file_uploader(
            "Texts, labels or ids of an array",
            type=_TABLES,
            key=form.key("beside"),
            on_change=_take,
            args=(form,),
            help="A table with one row per vector, in the same order.",
        )
        right.file_uploader(
            "Pairs or relevance",
            type=_TABLES,
            key=form.key("relations"),
            on_change=_take,
            args=(form,),
            help="Columns left, right and score; or query, document and relevance. They name ids.",
        )


def _take(form: _Form) -> None:
    """Read the input and put its key into the address. On an error, show it below the form and change nothing else."""
    held = st.session_state.get
    source = held(form.key("from")) or _SOURCES[form.kind][0]
    st.session_state[form.problem] = None
    files: dict[str, tuple[str, bytes | memoryview]] = {}
    order = Order(form.kind)
    if source == PASTE:
        lines = (held(form.key("lines")) or "").strip()
        if not lines:
            return
        order = Order("texts", name=_PASTED)
        files["file"] = ("pasted.txt", lines.encode("utf-8", "replace"))
    elif source == PATH:
        path = (held(form.key("path")) or "").strip()
        if not path:
            return
        order = Order(form.kind, path)
    elif (file := held(form.key("file"))) is not None:
        files["file"] = (file.name, file.getbuffer())
    else:
        return
    if source != PASTE:
        given = {name: (held(form.key(name)) or "").strip() or None for name in _COLUMN_HELP}
        order = Order(order.kind, order.file, Columns(**given))
        for role in ("beside", "relations"):
            if (more := held(form.key(role))) is not None:
                files[role] = (more.name, more.getbuffer())
    try:
        taken = _kept(order, files)
    except (AccessError, InputError) as error:
        st.session_state[form.problem] = forms.sentence(error) + (f" {error.advice}" if error.advice else "")
        return
    st.query_params[form.parameter] = taken.key


def _kept(order: Order, files: Loose) -> Taken:
    return resources.service().keep_vectors(order, files, reading.still_wanted(in_callback=True))


# ---------------------------------------------------------------------------------------------------- what is loaded


def _loaded(form: _Form) -> Taken | None:
    key = st.query_params.get(form.parameter)
    if not key:
        return None
    taken = taking.describe(key)
    if taken is None:
        address.refuse(form.parameter)
        forms.error_beside("The data for this link is no longer on this server. Load it again.")
        return None
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f":material/check_circle: {wording.plain(words(taken))}", width="stretch")
        actions.button(
            "Delete",
            key=form.key("delete"),
            icon=":material/delete:",
            type="tertiary",
            on_click=_delete,
            args=(form, taken.key),
        )
    return taken


def words(taken: Taken) -> str:
    """What is loaded, in a line."""
    what = f"{taken.n:,} vectors of {taken.d:,} dimensions" if taken.kind == "vectors" else f"{taken.n:,} texts"
    more = [name for name in taken.columns if name != "text" or taken.kind == "vectors"]
    pairs = {"similarity": ["similarity scores"], "relevance": ["relevance"], None: []}[taken.relation]
    listed = ", ".join([*more, *pairs])
    return f"{taken.name}: {what}" + (f", with {listed}" if listed else "")


def _delete(form: _Form, key: str) -> None:
    if actions.done(resources.service().forget_vectors, key):
        st.query_params.pop(form.parameter, None)

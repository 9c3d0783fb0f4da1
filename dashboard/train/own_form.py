"""The user's files as a task: roles of the columns, the prediction target, and the validation split, checked before launch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.inputs.data_form import FROM_UPLOAD, Source, Stamp, check_rows, endings, stamp, uploaded
from dashboard.shared import actions, forms, reading, resources, wording
from isoviz import tasks
from isoviz.errors import AccessError, InputError
from isoviz.tasks import own
from isoviz.tasks.files import SPLITS, SUFFIXES
from isoviz.tasks.own import Guess, Preview
from isoviz.tasks.protocol import TRAIN, OwnTask

FROM_PATH = "File or folder on the server"
NO_SECOND = "(none)"
INFERRED = "inferred"
KINDS = {
    INFERRED: "inferred from the labels",
    "classification": "class",
    "regression": "number",
    "span": "answer in the second text",
    "seq2seq": "text to generate",
}
"""Titles of the kinds of target."""
PATH = forms.key(f"data.{tasks.OWN}")
_COLUMNS = ("text", "second", "label")
_PROBLEM = "upload_problem_own"


def own_field() -> Source:
    """Draw the section: files, preview, columns, kind, classes, split, and errors by row."""
    with st.container(border=True):
        st.markdown("**Own data**")
        st.caption(
            "Any table with a text column and a label column. Choose the columns below; the file itself is not changed."
        )
        source = st.segmented_control(
            "Rows come from",
            [FROM_PATH, FROM_UPLOAD],
            default=FROM_PATH,
            required=True,
            key=forms.key(f"from.{tasks.OWN}"),
            bind="query-params",
        )
        with st.container():  # keeps the field's position, see `dashboard.shared.steady`
            if source == FROM_UPLOAD:
                _upload()
        path = _path()
        if path is None:
            return Source(ready=False)
        preview, problem = _preview(path, stamp(path))
        if preview is None:
            forms.show_error(problem)
            return Source(path, ready=False)
        _first_rows(preview)
        columns, places = _mapping(preview)
        return _checked_source(path, columns, places)


# ---------------------------------------------------------------------------------------------------- files


def _upload() -> None:
    labels = ("File (the training rows, or all)", "Validation file, if there is one")
    for column, split, label in zip(st.columns(2), SPLITS, labels, strict=True):
        column.file_uploader(
            label,
            type=endings(),
            key=f"upload_{tasks.OWN}_{split}",
            on_change=_store_upload,
            disabled=actions.refusal() is not None,
        )
    if problem := st.session_state.get(_PROBLEM):
        forms.show_error(problem)
    else:
        st.caption("Stored with the runs so that they can be repeated; its folder appears below.")


def _store_upload() -> None:
    files = uploaded(tasks.OWN)
    st.session_state[_PROBLEM] = None
    if TRAIN not in files:
        return
    try:
        folder = resources.service().keep_upload(files, pulse=reading.still_wanted(in_callback=True))
    except (AccessError, InputError) as error:
        st.session_state[_PROBLEM] = forms.sentence(error)
        return
    st.session_state[PATH] = str(folder)
    _guess_again()


def _path() -> str | None:
    text = st.text_input(
        "Data file or folder",
        key=PATH,
        bind="query-params",
        placeholder="/path/to/reviews.csv",
        on_change=_guess_again,
        help="A file that the server can read, or a folder with a training file and an optional validation file.",
    )
    path = (text or "").strip()
    if not path:
        st.caption(f"Needed: one file, or a folder with train and optional validation ({', '.join(SUFFIXES)}).")
    return path or None


def _guess_again() -> None:
    """After a change of files, replace the columns by those inferred for the new files."""
    path = str(st.session_state.get(PATH) or "").strip()
    preview, _ = _preview(path, stamp(path)) if path else (None, None)
    if preview is None:
        return
    for name, column in own.guess_columns(preview).items():
        st.session_state[_key(name)] = _none(preview) if name == "second" and column is None else column
    st.session_state[_key("kind")] = INFERRED
    st.session_state[_key("label_names")] = ""


@st.cache_data(show_spinner=False, max_entries=32, ttl=900)
def _preview(path: str, files: Stamp) -> tuple[Preview | None, str | None]:
    """The first rows, or the error; cached until a file changes (`files`)."""
    del files
    try:
        return reading.preview(path), None
    except InputError as error:
        return None, forms.sentence(error)


def _first_rows(preview: Preview) -> None:
    files = [f"{split}: {', '.join(names)}" for split, names in preview.files.items()]
    st.caption(wording.plain(f"First rows, unchanged. {'; '.join(files)}."))
    frame = pd.DataFrame(list(preview.rows[:6]), columns=list(preview.columns))
    st.dataframe(frame.map(_cell), hide_index=True, alt="First rows of the file")


def _cell(value: object) -> object:
    """Nested values as text, because a table cannot mix them with others in a column."""
    return str(value) if isinstance(value, (dict, list, tuple, np.ndarray)) else value


# ---------------------------------------------------------------------------------------------------- columns


def _key(name: str) -> str:
    return forms.key(f"own.{name}")


def _none(preview: Preview) -> str:
    """The option for no second text, with a title that is not a column name."""
    name = NO_SECOND
    while name in preview.columns:
        name = f"({name})"
    return name


def _mapping(preview: Preview) -> tuple[dict[str, Any], dict[str, DeltaGenerator]]:
    """Draw the fields of `OwnTask`; returns their values, and the container for each field's error."""
    guessed = own.guess_columns(preview)
    values: dict[str, Any] = {}
    places: dict[str, DeltaGenerator] = {}
    for cell, name in zip(st.columns(3), _COLUMNS, strict=True):
        with cell:
            values[name] = _column(name, preview, guessed[name])
            places[name] = st.container()
    kind, split = st.columns([1, 2])
    with kind:
        selected = st.selectbox(
            "Target",
            list(KINDS),
            format_func=lambda kind: KINDS.get(kind, str(kind)),
            key=_key("kind"),
            bind="query-params",
            help="Inferred from the label's values; correct it here, for example to predict a rating as a number.",
        )
        values["kind"] = None if selected == INFERRED else selected
        places["kind"] = st.container()
    with split:
        if preview.split:
            values |= _split(places)
        else:
            st.caption("The validation file is used unchanged; no training rows are held out.")
    places["label_names"] = st.container()
    places[""] = st.container()
    return values, places


def _column(name: str, preview: Preview, guessed: str | None) -> str | None:
    field = OwnTask.model_fields[name]
    options = [*([_none(preview)] if name == "second" else []), *preview.columns]
    selected = st.selectbox(
        f"{field.title} column",
        options,
        index=options.index(guessed) if guessed in options else 0 if name == "second" else None,
        key=_key(name),
        bind="query-params",
        placeholder="Choose a column",
        help=wording.plain(field.description or ""),
    )
    return None if name == "second" and selected == options[0] else selected


def _split(places: dict[str, DeltaGenerator]) -> dict[str, Any]:
    share, seed = st.columns(2)
    fields = OwnTask.model_fields
    with share:
        held = st.number_input(
            "Share held out",
            min_value=0.01,
            max_value=0.99,
            value=fields["share"].default,
            step=0.05,
            key=_key("share"),
            bind="query-params",
            help="Without a validation file, this share of the rows is held out for validation. Rows with the same texts stay together.",
        )
        places["share"] = st.container()
    with seed:
        drawn = st.number_input(
            "Seed of the split",
            min_value=0,
            max_value=2**31 - 1,
            value=fields["split_seed"].default,
            step=1,
            key=_key("split_seed"),
            bind="query-params",
            help="Which rows are held out; the same for all runs with this seed.",
        )
        places["split_seed"] = st.container()
    return {"share": held, "split_seed": drawn}


# ---------------------------------------------------------------------------------------------------- checks


def _checked_source(path: str, values: Mapping[str, Any], places: Mapping[str, DeltaGenerator]) -> Source:
    missing = [name for name in ("text", "label") if values[name] is None]
    for name in missing:
        with places[name]:
            forms.show_error("Choose a column.")
    if missing:
        return Source(path, ready=False)
    names = tuple(line.strip() for line in str(st.session_state.get(_key("label_names")) or "").splitlines())
    try:
        columns = OwnTask.checked(**{**values, "label_names": tuple(name for name in names if name)})
    except InputError as error:
        _show_error_at(places, error.field, forms.sentence(error))
        return Source(path, ready=False)
    with st.spinner("Reading the labels …", show_time=True):
        guess, problem, field = _guessed(path, stamp(path), columns.model_dump_json())
    if guess is None:
        _show_error_at(places, field, problem)
        with places["label_names"]:
            _classes(None)  # keep the input, so that the user can fix it
        return Source(path, ready=False)
    if values["kind"] is None:
        with places["kind"]:
            st.caption(wording.plain(f"Inferred: {KINDS[guess.kind]}. {guess.why}"))
    if guess.kind == "classification":
        with places["label_names"]:
            _classes(guess)
    else:
        columns = columns.model_copy(update={"label_names": ()})
    columns = columns.model_copy(update={"kind": guess.kind, "label_names": guess.label_names})
    try:
        task = tasks.get(tasks.OWN, columns)
    except InputError as error:
        _show_error_at(places, error.field, forms.sentence(error))
        return Source(path, ready=False)
    return Source(path, own=columns, ready=check_rows(task, path))


def _show_error_at(places: Mapping[str, DeltaGenerator], field: str | None, problem: str | None) -> None:
    name = (field or "").removeprefix("own").removeprefix(".")
    with places.get(name, places[""]):
        forms.show_error(problem)


@st.cache_data(show_spinner=False, max_entries=32, ttl=900)
def _guessed(path: str, files: Stamp, columns: str) -> tuple[Guess | None, str | None, str | None]:
    """The kind of labels, or the error and its field; cached until a file changes."""
    del files
    try:
        return reading.guess(path, OwnTask.model_validate_json(columns)), None, None
    except InputError as error:
        return None, forms.sentence(error), error.field


def _classes(guess: Guess | None) -> None:
    """The classes, if known, and the field for their order."""
    table, order = st.columns([1, 1])
    if guess is not None:
        with table:
            st.caption("Classes in the order of their codes")
            rows = {"code": range(len(guess.label_names)), "class": guess.label_names, "rows": guess.counts}
            classes = pd.DataFrame(rows)
            st.dataframe(classes, hide_index=True, height="auto", alt="Classes with their codes and numbers of rows")
    with order:
        _class_field(guess.label_names if guess else ())


def _class_field(names: tuple[str, ...]) -> None:
    st.text_area(
        "Class order, one class per line",
        key=_key("label_names"),
        bind="query-params",
        height=120,
        placeholder="if empty: numbers by value, words alphabetically",
        help="Classes are numbered from 0 in this order, also in tables and figures. List every class in the file.",
    )
    if names and not st.session_state.get(_key("label_names")):
        st.button(
            "Edit this order",
            key="own_edit_order",
            type="tertiary",
            icon=":material/edit:",
            on_click=_write_names,
            args=("\n".join(names),),
        )


def _write_names(text: str) -> None:
    st.session_state[_key("label_names")] = text

"""The user's files as a task: roles of the columns, the prediction target, and the validation split, checked before launch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.inputs.data_form import Source, check_rows, files_field
from dashboard.shared import forms, reading, wording
from isoviz import tasks
from isoviz.errors import InputError
from isoviz.tasks import kinds, own
from isoviz.tasks.own import Guess, Preview
from isoviz.tasks.protocol import OwnTask

NO_SECOND = "(none)"
INFERRED = "inferred"
KINDS = {INFERRED: "inferred from the labels"} | {slug: kind.title for slug, kind in kinds.KINDS.items()}
"""Titles of the kinds of target."""
PATH = forms.key(f"data.{tasks.OWN}")
_COLUMNS = ("text", "second", "third", "label")
_OPTIONAL = _COLUMNS[1:]


def own_field() -> Source:
    """Draw the section: files, preview, columns, kind, classes, split, and errors by row."""
    with st.container(border=True):
        st.markdown("**Own data**")
        st.caption(
            "Any table with a text column and a label column, or with two columns of texts that belong together. Choose the columns "
            "below; the file itself is not changed."
        )
        path, _ = files_field(tasks.OWN, on_change=_guess_again)
        if path is None:
            return Source(ready=False)
        preview, error = reading.remembered(path, reading.preview, path)
        if preview is None:
            forms.show_error(error)
            return Source(path, ready=False)
        _first_rows(preview)
        columns, places = _mapping(preview)
        return _checked_source(path, columns, places)


def _guess_again() -> None:
    """After a change of files, replace the columns by those inferred for the new files."""
    path = str(st.session_state.get(PATH) or "").strip()
    preview, _ = reading.remembered(path, reading.preview, path) if path else (None, None)
    if preview is None:
        return
    for name, column in own.guess_columns(preview).items():
        st.session_state[_key(name)] = NO_SECOND if name in _OPTIONAL and column is None else column
    st.session_state[_key("kind")] = INFERRED
    st.session_state[_key("label_names")] = ""


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


def _mapping(preview: Preview) -> tuple[dict[str, Any], dict[str, DeltaGenerator]]:
    """Draw the fields of `OwnTask`; returns their values, and the container for each field's error."""
    guessed = own.guess_columns(preview)
    values: dict[str, Any] = {}
    places: dict[str, DeltaGenerator] = {}
    for cell, name in zip(st.columns(len(_COLUMNS)), _COLUMNS, strict=True):
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
            values |= _split()
        else:
            st.caption("The validation file is used unchanged; no training rows are held out.")
    places["label_names"] = st.container()
    places[""] = st.container()
    return values, places


def _column(name: str, preview: Preview, guessed: str | None) -> str | None:
    field = OwnTask.model_fields[name]
    options = [*([NO_SECOND] if name in _OPTIONAL else []), *preview.columns]
    selected = st.selectbox(
        f"{field.title} column",
        options,
        index=options.index(guessed) if guessed in options else 0 if name in _OPTIONAL else None,
        key=_key(name),
        bind="query-params",
        placeholder="Choose a column",
        help=wording.plain(field.description or ""),
    )
    return None if selected == NO_SECOND else selected


def _split() -> dict[str, Any]:
    share, seed = st.columns(2)
    fields = OwnTask.model_fields
    return {
        "share": share.number_input(
            "Share held out",
            0.01,
            0.99,
            fields["share"].default,
            0.05,
            key=_key("share"),
            bind="query-params",
            help="Without a validation file, this share of the rows is held out for validation. Rows with the same texts stay together.",
        ),
        "split_seed": seed.number_input(
            "Seed of the split",
            0,
            2**31 - 1,
            fields["split_seed"].default,
            1,
            key=_key("split_seed"),
            bind="query-params",
            help="Which rows are held out; the same for all runs with this seed.",
        ),
    }


# ---------------------------------------------------------------------------------------------------- checks


def _checked_source(path: str, values: Mapping[str, Any], places: Mapping[str, DeltaGenerator]) -> Source:
    needed = ("text",) if values["second"] else ("text", "label")
    missing = [name for name in needed if values[name] is None]
    for name in missing:
        places[name].error("Choose a column.")
    if missing:
        return Source(path, ready=False)
    names = [line.strip() for line in str(st.session_state.get(_key("label_names")) or "").splitlines()]
    columns, error = reading.answer(OwnTask.checked, **{**values, "label_names": tuple(filter(None, names))})
    guess = None
    if columns is not None:
        with st.spinner("Reading the labels …", show_time=True):
            guess, error = reading.remembered(path, reading.guess, path, columns)
        if guess is None or guess.kind == "classification":
            with places["label_names"]:
                _classes(guess)  # without a guess too, so that the user can fix the order
    if columns is None or guess is None:
        return _refused(path, places, error)
    if values["kind"] is None:
        places["kind"].caption(wording.plain(f"Inferred: {KINDS[guess.kind]}. {guess.why}"))
    columns = columns.model_copy(update={"kind": guess.kind, "label_names": guess.label_names})
    task, error = reading.answer(tasks.get, tasks.OWN, columns)
    if task is None:
        return _refused(path, places, error)
    return Source(path, own=columns, ready=check_rows(task, path))


def _refused(path: str, places: Mapping[str, DeltaGenerator], error: InputError | None) -> Source:
    """Show an error below its field."""
    name = (error.field or "" if error else "").removeprefix("own").removeprefix(".")
    with places.get(name, places[""]):
        forms.show_error(error)
    return Source(path, ready=False)


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
        st.text_area(
            "Class order, one class per line",
            key=_key("label_names"),
            bind="query-params",
            height=120,
            placeholder="if empty: numbers by value, words alphabetically",
            help="Classes are numbered from 0 in this order, also in tables and figures. List every class in the file.",
        )

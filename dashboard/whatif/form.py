"""The form of What-if: a finished run, one of its clouds, and a chain of transforms stored in the address."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

import streamlit as st
from pydantic.fields import FieldInfo

from dashboard.inputs.vectors_form import SAVED_FROM
from dashboard.shared import forms, resources, wording
from isoviz import reference
from isoviz.errors import InputError, StoreError
from isoviz.parameters import start_values
from isoviz.runs.examples import is_example
from isoviz.runs.naming import parameter_label
from isoviz.runs.rows import RunRow
from isoviz.whatif import chains
from isoviz.whatif.chains import MOST_STEPS, Step
from isoviz.whatif.embeddings import CLOUDS, Cloud

PREFIX = "whatif_"
"""Prefix of this page's widget keys."""

RUN, CLOUD, CHAIN = "run", "cloud", "chain"
"""Query parameters of this page."""

FIRST = "zca:strength=0.5"
"""The chain on a first visit: one slider with a visible effect."""

RUNS_OFFERED = 200

SLOWER = "This step moves every point, so its numbers take seconds instead of milliseconds. They are computed in the background."

_STEPS, _WRITTEN, _PROBLEM = PREFIX + "steps", PREFIX + "written", PREFIX + "problem"
_RUN_TAKEN = PREFIX + "run_taken"
_NEW_IDS = itertools.count()

# ------------------------------------------------------------------------------------------------------- run


def run_field(runs: list[RunRow]) -> RunRow | None:
    """Field for a finished run; shows an error and returns None if the run in the address cannot be used."""
    offered = {row.id: row for row in runs}
    requested = st.query_params.get(RUN)
    problem = None
    if requested and requested not in offered:
        offered, problem = _with_requested(requested, offered)
    # follow the address only when it changes: the user may have selected another run since
    if requested in offered and (requested != st.session_state.get(_RUN_TAKEN) or PREFIX + RUN not in st.session_state):
        st.session_state[PREFIX + RUN] = requested
    selected = st.selectbox(
        "Run",
        list(offered),
        index=0 if offered and not problem else None,
        format_func=lambda run_id: run_title(offered[run_id]),
        key=PREFIX + RUN,
        placeholder="Choose a finished run",
        help="Finished runs, newest first. What-if reads the saved weights; nothing is trained.",
    )
    if problem and selected is None:
        forms.show_error(problem)
    if selected is None:
        return None
    st.session_state[_RUN_TAKEN] = selected
    if selected != requested:
        st.query_params[RUN] = selected
    if (result := offered[selected].result) is not None and result.random_weights:
        st.caption(f":material/casino: {wording.plain(f'All numbers are of random weights: {result.random_weights}.')}")
    return offered[selected]


def _with_requested(requested: str, offered: dict[str, RunRow]) -> tuple[dict[str, RunRow], str | None]:
    """Add the run in the address, which is not among the newest finished runs; or return the error."""
    if st.session_state.get(PREFIX + RUN) in offered:
        return offered, None  # the user has selected another run since
    try:
        row = resources.library().get(requested)
    except StoreError:
        return (offered, f"Run not found: '{requested}'. It may have been deleted, or the link is incomplete.")
    return {row.id: row, **offered}, None


def run_title(row: RunRow) -> str:
    """A run in one line."""
    random = " · random weights" if row.result is not None and row.result.random_weights else ""
    example = "Example: " if is_example(row.id) else ""
    return f"{example}{wording.run_title(row)} · {row.config.task} · {row.config.model}{random} · {wording.moment(row.created)[:16]}"


def cloud_field(differs: bool, method: str) -> Cloud:
    """Field for the cloud that the chain starts from; hidden if the run's two clouds are equal."""
    requested = st.query_params.get(CLOUD, CLOUDS[0])
    key = PREFIX + CLOUD
    if not differs or requested not in CLOUDS:
        st.query_params.pop(CLOUD, None)
        requested = CLOUDS[0]
    if not differs:
        return CLOUDS[0]
    if requested in CLOUDS and key not in st.session_state:
        st.session_state[key] = requested
    selected: Cloud | None = st.segmented_control(
        "Start from",
        list[Cloud](CLOUDS),
        default=None if key in st.session_state else CLOUDS[0],
        required=True,
        key=key,
        format_func=lambda cloud: f"{'after' if cloud == 'head' else 'before'} {method}",
        help=reference.glossary()["start_from"].text,
    )
    cloud = selected or CLOUDS[0]
    if cloud != requested:
        st.query_params[CLOUD] = cloud
    return cloud


# ------------------------------------------------------------------------------------------------------- chain


def follow_address() -> None:
    """Load a new chain from the address into the editor; report an invalid one and keep the steps. A page that was saved here and
    whose vectors have just been loaded brings its chain."""
    if saved := parse_qs(st.session_state.pop(SAVED_FROM, "").partition("?")[2]).get(CHAIN):
        st.query_params[CHAIN] = saved[0]
    text = st.query_params.get(CHAIN)
    if _STEPS not in st.session_state:
        set_steps(chains.read(FIRST))
    if text is None or text == st.session_state.get(_WRITTEN):
        return
    st.session_state[_WRITTEN] = text
    try:
        set_steps(chains.read(text))
        st.session_state[_PROBLEM] = None
    except InputError as error:
        st.session_state[_PROBLEM] = (
            f"The chain in this link is invalid. {forms.sentence(error)} The steps below are unchanged."
        )


def editor(d: int) -> tuple[Step, ...] | None:
    """Draw the steps with their parameters; returns the chain, or None while a step is invalid.

    Args:
        d: dimensions of the run's vectors.
    """
    entries: list[dict[str, Any]] = st.session_state[_STEPS]
    error_slot = st.container()
    steps: list[Step] = []
    invalid = False
    for index, entry in enumerate(entries):
        with st.container(border=True):
            _heading(entry, index, len(entries))
            fields = chains.catalogue()[entry["slug"]].Params.model_fields
            values = {name: _parameter(entry, name, fields[name], d) for name in _visible_names(fields)}
            if hidden_names := [name for name in fields if name not in values]:
                with st.expander("More", key=f"{PREFIX}{entry['id']}_more"):
                    values |= {name: _parameter(entry, name, fields[name], d) for name in hidden_names}
            try:
                step = chains.step(entry["slug"], **values)
            except InputError as error:
                forms.show_error(forms.sentence(error))
                invalid = True
                continue
            entry["values"] = values
            steps.append(step)
    if not entries:
        st.caption("No transform: the vectors are unchanged.")
    _adder(entries)
    if not invalid:
        _write(tuple(steps))
    with error_slot:
        forms.show_error(st.session_state.get(_PROBLEM))
    if invalid:
        return None
    return tuple(steps)


def _heading(entry: dict[str, Any], index: int, count: int) -> None:
    about = chains.catalogue()[entry["slug"]]
    title = about.title
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        st.markdown(f"**{index + 1}. {title}**", width="content")
        st.space("stretch")
        with st.popover("", icon=":material/help:", type="tertiary", help=f"About {title}"):
            st.markdown(wording.plain(about.summary))
            st.latex(about.equation)
            for name, paper in {"": about.paper, **about.variants}.items():
                st.caption(wording.plain(f"{name}{': ' if name else ''}{paper.title} ({paper.short})"))
            for trap in about.traps:
                st.caption(f":material/warning: {wording.plain(trap)}")
        if about.coordinates is None:
            st.badge("slower", icon=":material/hourglass_top:", color="gray", help=SLOWER)
        for icon, label, callback, at, disabled in (
            ("arrow_upward", "earlier", _earlier, index, index == 0),
            ("arrow_downward", "later", _earlier, index + 1, index == count - 1),
            ("close", "remove", _remove, index, False),
        ):
            st.button(
                "",
                key=f"{PREFIX}{entry['id']}_step_{label}",
                icon=f":material/{icon}:",
                type="tertiary",
                help=f"{title}: {label}",
                on_click=callback,
                args=(at,),
                disabled=disabled,
            )


def _visible_names(fields: Mapping[str, FieldInfo]) -> list[str]:
    """The parameters that are always visible; the others are under "More"."""
    visible = [
        name for name, field in fields.items() if forms.extra(field).keys() & {"slider", "stops"} or _is_text(field)
    ]
    return visible or list(fields)[:1]


def _is_text(field: FieldInfo) -> bool:
    return field.annotation in (str, str | None)


def _parameter(entry: dict[str, Any], name: str, field: FieldInfo, d: int) -> Any:
    """The widget of a parameter; the transform checks its value again."""
    value = entry["values"].get(name, field.default)
    label = parameter_label(name, field)
    options: dict[str, Any] = {"key": f"{PREFIX}{entry['id']}_{name}", "help": forms.param_help(field)}
    slider, stops = forms.extra(field).get("slider"), forms.extra(field).get("stops")
    if stops:
        return st.select_slider(label, sorted({*map(float, stops), float(value)}), float(value), **options)
    if not slider:
        return _other(field, label, value, options)
    low, high, step = slider
    if not _is_whole(field):
        return st.slider(label, min(float(low), value), max(float(high), value), float(value), step, **options)
    count = max(1, round(d / 100)) if value is None else int(value)  # if unset, the default share of the dimensions
    return st.slider(label, low, max(count, min(high, d), low + 1), count, step, **options)


def _is_whole(field: FieldInfo) -> bool:
    return field.annotation in (int, int | None)


def _other(field: FieldInfo, label: str, value: Any, options: dict[str, Any]) -> Any:
    choices = forms.choices_of(field)
    if choices == (False, True):
        return st.toggle(label, bool(value), **options)
    if choices:
        return st.segmented_control(label, choices, default=value, required=True, **options)
    if _is_text(field):
        return st.text_input(label, value or "", placeholder="not set", **options).strip() or None
    options["placeholder"] = "not set"
    if _is_whole(field):
        return forms.whole_number(label, field, None if value is None else int(value), **options)
    limits = forms.bounds(field)
    number = None if value is None else float(value)
    return st.number_input(label, limits.get("ge"), limits.get("le"), number, step=None, format="%g", **options)


def _adder(entries: list[dict[str, Any]]) -> None:
    if len(entries) >= MOST_STEPS:
        st.caption(f"At most {MOST_STEPS} transforms.")
        return
    st.selectbox(
        "Add a transform",
        list(chains.catalogue()),
        index=None,
        format_func=lambda slug: chains.catalogue()[slug].title,
        key=PREFIX + "add",
        placeholder="Add a transform",
        label_visibility="collapsed",
        on_change=_add,
    )


def _add() -> None:
    slug = st.session_state.get(PREFIX + "add")
    if slug is not None:
        starts = start_values(chains.catalogue()[slug].Params)
        st.session_state[_STEPS].append(_entry(chains.step(slug, **starts)))
        st.session_state[PREFIX + "add"] = None


def _earlier(index: int) -> None:
    entries = st.session_state[_STEPS]
    entries[index - 1], entries[index] = entries[index], entries[index - 1]


def _remove(index: int) -> None:
    del st.session_state[_STEPS][index]


def set_steps(steps: tuple[Step, ...]) -> None:
    """Show these steps in the editor, which writes them into the address."""
    st.session_state[_STEPS] = [_entry(step) for step in steps]


def _entry(step: Step) -> dict[str, Any]:
    """A step in the editor; its id keeps its widget keys distinct from those of earlier steps."""
    return {"id": next(_NEW_IDS), "slug": step.slug, "values": step.params.model_dump()}


def _write(steps: tuple[Step, ...]) -> None:
    """Write the chain into the address. An invalid chain in the address stays until the user changes a step."""
    text = chains.write(steps)
    if st.session_state.get(_PROBLEM) and st.session_state.get(PREFIX + "seen", text) == text:
        st.session_state[PREFIX + "seen"] = text
        return
    st.session_state[_PROBLEM] = None
    st.session_state.pop(PREFIX + "seen", None)
    if st.query_params.get(CHAIN) != text:
        st.query_params[CHAIN] = text
    st.session_state[_WRITTEN] = text

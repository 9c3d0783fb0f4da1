"""What the What-if page looks at: a finished run, one of its clouds, and a chain of transforms that lives in the address."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import streamlit as st
from pydantic.fields import FieldInfo

from dashboard import address, forms, resources, wording
from isoviz.errors import InputError, StoreError
from isoviz.parameters import start_values
from isoviz.runs.examples import is_example
from isoviz.runs.rows import RunRow, UnreadableRunError
from isoviz.whatif import chains
from isoviz.whatif.chains import MOST_STEPS, Step
from isoviz.whatif.embeddings import CLOUDS, Cloud

PREFIX = "whatif_"
"""Of every widget key of this page."""

RUN, CLOUD, CHAIN = "run", "cloud", "chain"
"""Query parameters of this page."""

FIRST = "zca:strength=0.5"
"""The chain of a first visit: one slider, and something happens when it is moved."""

RUNS_OFFERED = 200

SLOWER = "This step moves every point, so its numbers take seconds instead of milliseconds. They are computed in the background."

_STEPS, _WRITTEN, _PROBLEM = PREFIX + "steps", PREFIX + "written", PREFIX + "problem"
_RUN_TAKEN = PREFIX + "run_taken"
_NEW_IDS = itertools.count()

# ------------------------------------------------------------------------------------------------------- the run


def run_field(runs: list[RunRow]) -> RunRow | None:
    """Choose a finished run; None, and why, if the address names none that can serve."""
    known = {row.id: row for row in runs}
    asked = st.query_params.get(RUN)
    problem = None
    if asked and asked not in known:
        known, problem = _asked_for(asked, known)
    # one that the address had before is no new wish: another one may have been chosen since
    if asked in known and (asked != st.session_state.get(_RUN_TAKEN) or PREFIX + RUN not in st.session_state):
        st.session_state[PREFIX + RUN] = asked
    chosen = st.selectbox(
        "Run",
        list(known),
        index=0 if known and not problem else None,
        format_func=lambda run_id: run_words(known[run_id]),
        key=PREFIX + RUN,
        placeholder="Choose a finished run",
        help="Finished runs, the newest first. The weights that it keeps are read; nothing is trained.",
    )
    if problem and chosen is None:
        forms.error_beside(problem)
    if chosen is None:
        return None
    st.session_state[_RUN_TAKEN] = chosen
    if chosen != asked:
        st.query_params[RUN] = chosen
    if (result := known[chosen].result) is not None and result.random_weights:
        st.caption(f":material/casino: {wording.plain(f'All numbers are of random weights: {result.random_weights}.')}")
    return known[chosen]


def _asked_for(asked: str, known: dict[str, RunRow]) -> tuple[dict[str, RunRow], str | None]:
    """A run of the address that is not among the newest finished ones."""
    if st.session_state.get(PREFIX + RUN) in known:
        return known, None  # another one was chosen since
    try:
        row = resources.library().get(asked)
    except UnreadableRunError as error:
        return known, f"{error}."
    except StoreError:
        return (
            known,
            f"There is no run '{asked}' in this store. It may have been deleted, or the address is incomplete.",
        )
    if row.status != "finished":
        return known, f"The run '{row.name}' is {row.status}; What-if needs a finished run."
    return {row.id: row, **known}, None


def run_words(row: RunRow) -> str:
    """A run in one line."""
    random = " · random weights" if row.result is not None and row.result.random_weights else ""
    example = "Example: " if is_example(row.id) else ""
    return f"{example}{wording.run_title(row)} · {row.config.task} · {row.config.model}{random} · {wording.moment(row.created)[:16]}"


def cloud_field(differs: bool, method: str) -> Cloud:
    """Which of the run's two clouds the chain starts from; one that does not differ from the other is not offered."""
    asked = st.query_params.get(CLOUD, CLOUDS[0])
    key = PREFIX + CLOUD
    if not differs or asked not in CLOUDS:
        if key in st.session_state:  # of the run that was chosen before
            st.query_params.pop(CLOUD, None)
        elif asked != CLOUDS[0]:
            address.refuse(CLOUD)
        asked = CLOUDS[0]
    if not differs:
        return CLOUDS[0]
    if asked in CLOUDS and key not in st.session_state:
        st.session_state[key] = asked
    chosen: Cloud | None = st.segmented_control(
        "Start from",
        list[Cloud](CLOUDS),
        default=None if key in st.session_state else CLOUDS[0],
        required=True,
        key=key,
        format_func=lambda cloud: f"{'after' if cloud == 'head' else 'before'} {method}",
        help="After (the cloud *head*): what the run's output layer reads. Before (*pooled*): the same vector without the run's "
        "own method.",
    )
    cloud = chosen or CLOUDS[0]
    if cloud != asked:
        st.query_params[CLOUD] = cloud
    return cloud


# ------------------------------------------------------------------------------------------------------- the chain


def take_address() -> None:
    """Put the chain of the address into the editor, if someone else wrote it; a bad one is reported and changes nothing."""
    asked = st.query_params.get(CHAIN)
    if _STEPS not in st.session_state:
        _hold(chains.read(FIRST))
    if asked is None or asked == st.session_state.get(_WRITTEN):
        return
    st.session_state[_WRITTEN] = asked
    try:
        _hold(chains.read(asked))
        st.session_state[_PROBLEM] = None
    except InputError as error:
        st.session_state[_PROBLEM] = (
            f"The chain of this address cannot be used. {forms.sentence(error)} The steps below are shown in its place."
        )


def editor(d: int) -> tuple[Step, ...] | None:
    """Draw the steps with their parameters; the chain, or None while one of them has to be fixed.

    Args:
        d: dimensions of the run's vectors.
    """
    held: list[dict[str, Any]] = st.session_state[_STEPS]
    beside = st.container()
    steps: list[Step] = []
    invalid = False
    for index, entry in enumerate(held):
        with st.container(border=True):
            _heading(entry, index, len(held))
            fields = chains.catalogue()[entry["slug"]].Params.model_fields
            values = {name: _parameter(entry, name, fields[name], d) for name in _first_names(fields)}
            if rest := [name for name in fields if name not in values]:
                with st.expander("More", key=f"{PREFIX}{entry['id']}_more"):
                    values |= {name: _parameter(entry, name, fields[name], d) for name in rest}
            try:
                step = chains.step(entry["slug"], **values)
            except InputError as error:
                forms.error_beside(forms.sentence(error))
                invalid = True
                continue
            entry["values"] = values
            steps.append(step)
    if not held:
        st.caption("No transform: the run's cloud as it is.")
    _adder(held)
    if not invalid:
        _write(tuple(steps))
    with beside:
        forms.error_beside(st.session_state.get(_PROBLEM))
    if invalid:
        return None
    return tuple(steps)


def _heading(entry: dict[str, Any], place: int, count: int) -> None:
    about = chains.catalogue()[entry["slug"]]
    title = _title(entry)
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        st.markdown(f"**{place + 1}. {title}**", width="content")
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
        for icon, label, change, off in (
            ("arrow_upward", "earlier", _earlier, place == 0),
            ("arrow_downward", "later", _later, place == count - 1),
            ("close", "remove", _remove, False),
        ):
            st.button(
                "",
                key=f"{PREFIX}{entry['id']}_step_{label}",
                icon=f":material/{icon}:",
                type="tertiary",
                help=f"{title}: {label}",
                on_click=change,
                args=(place,),
                disabled=off,
            )


def _title(entry: dict[str, Any]) -> str:
    """A step's name with the values that its widgets have now."""
    fields = chains.catalogue()[entry["slug"]].Params.model_fields
    state = {name: st.session_state.get(f"{PREFIX}{entry['id']}_{name}", entry["values"].get(name)) for name in fields}
    try:
        return chains.step(entry["slug"], **state).title
    except InputError:
        return chains.catalogue()[entry["slug"]].title


def _first_names(fields: Mapping[str, FieldInfo]) -> list[str]:
    """The parameters that are always visible; the others are below "More"."""
    sliding = [name for name, field in fields.items() if forms.extra(field).keys() & {"slider", "stops"}]
    return sliding or list(fields)[:1]


def _parameter(entry: dict[str, Any], name: str, field: FieldInfo, d: int) -> Any:
    """One widget; what it allows is checked again by the transform."""
    held = entry["values"].get(name, field.default)
    label = forms.param_label(name, field)
    limits = forms.bounds_text(field)
    parts = [field.description, f"{limits.capitalize()}." if limits and not forms.choices_of(field) else None]
    source = forms.extra(field).get("source")
    help_text = wording.plain(" ".join(filter(None, [*parts, f"Source: {source}." if source else None])))
    options: dict[str, Any] = {"key": f"{PREFIX}{entry['id']}_{name}", "help": help_text}
    slider, stops = forms.extra(field).get("slider"), forms.extra(field).get("stops")
    if stops:
        return st.select_slider(label, sorted({*map(float, stops), float(held)}), float(held), **options)
    if not slider:
        return _other(field, label, held, options)
    low, high, step = slider
    if not _is_whole(field):
        return st.slider(label, min(float(low), held), max(float(high), held), float(held), step, **options)
    count = max(1, round(d / 100)) if held is None else int(held)  # empty: what a share of the dimensions comes to
    return st.slider(label, low, max(count, min(high, d), low + 1), count, step, **options)


def _is_whole(field: FieldInfo) -> bool:
    return field.annotation in (int, int | None)


def _other(field: FieldInfo, label: str, held: Any, options: dict[str, Any]) -> Any:
    choices = forms.choices_of(field)
    if choices == (False, True):
        return st.toggle(label, bool(held), **options)
    if choices:
        return st.segmented_control(label, choices, default=held, required=True, **options)
    limits = forms.bounds(field)
    if _is_whole(field):
        low, high = (int(limits[name]) if name in limits else None for name in ("ge", "le"))
        return st.number_input(
            label, low, high, None if held is None else int(held), step=1, placeholder="not set", **options
        )
    return st.number_input(
        label,
        limits.get("ge"),
        limits.get("le"),
        None if held is None else float(held),
        step=None,
        format="%g",
        placeholder="not set",
        **options,
    )


def _adder(held: list[dict[str, Any]]) -> None:
    if len(held) >= MOST_STEPS:
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


def _earlier(place: int) -> None:
    held = st.session_state[_STEPS]
    held[place - 1], held[place] = held[place], held[place - 1]


def _later(place: int) -> None:
    _earlier(place + 1)


def _remove(place: int) -> None:
    del st.session_state[_STEPS][place]


def _hold(steps: tuple[Step, ...]) -> None:
    st.session_state[_STEPS] = [_entry(step) for step in steps]


def _entry(step: Step) -> dict[str, Any]:
    """A step as the editor holds it; the id tells its widgets from those of a step that was here before."""
    return {"id": next(_NEW_IDS), "slug": step.slug, "values": step.params.model_dump()}


def _write(steps: tuple[Step, ...]) -> None:
    """Put the chain into the address. A bad one that came with it stays until something is changed."""
    text = chains.write(steps)
    if st.session_state.get(_PROBLEM) and st.session_state.get(PREFIX + "seen", text) == text:
        st.session_state[PREFIX + "seen"] = text
        return
    st.session_state[_PROBLEM] = None
    st.session_state.pop(PREFIX + "seen", None)
    if st.query_params.get(CHAIN) != text:
        st.query_params[CHAIN] = text
    st.session_state[_WRITTEN] = text


def link(run: str, cloud: str, steps: tuple[Step, ...]) -> str:
    """The address that brings the same to another session."""
    values = {RUN: run, CHAIN: chains.write(steps)}
    if cloud != CLOUDS[0]:
        values[CLOUD] = cloud
    here = (st.context.url or "").partition("?")[0]
    return f"{here}?{urlencode(values, safe=':~,=')}"

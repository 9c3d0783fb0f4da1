"""The training form: models × tasks × methods × parameters × seeds, generated from the catalogues. Returns a plan and the fields to fix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.inputs import model_form
from dashboard.inputs.data_form import Source, data_field
from dashboard.shared import forms, reading, theme, wording
from dashboard.shared.stable import stable
from dashboard.train import presets
from dashboard.train.launching import Plan
from dashboard.train.own_form import own_field
from isoviz import methods, reference, tasks
from isoviz.config import section_of
from isoviz.methods.protocol import Method
from isoviz.models import sources

OWN_TITLE = "Own data"
PRESELECTED = ("baseline", "isobn")
"""Default methods: IsoBN makes embeddings more isotropic by default, whereas I-STAR requires a choice of sign."""


@dataclass
class TrainForm:
    """What the form holds: a plan, the names of the fields to fix before it can start, and the place below each setting for an error
    that only the whole plan shows."""

    plan: Plan
    to_fix: list[str] = field(default_factory=list)
    below: dict[str, DeltaGenerator] = field(default_factory=dict)


def draw() -> TrainForm:
    """Draw all fields and read them."""
    to_fix: list[str] = []
    models = _models()
    allow_random = forms.setting_field("allow_random")
    below_models = st.container()
    chosen = _tasks(to_fix)
    rows_of = _rows(chosen)
    with below_models:
        _check_models(models, rows_of, allow_random.values == (True,), to_fix)
    for slug, source in rows_of.items():
        if not source.ready:
            to_fix.append("own data" if slug == tasks.OWN else f"data for {tasks.get(slug).title}")
    picked = _methods(to_fix)
    seeds = _seeds(to_fix)
    below: dict[str, DeltaGenerator] = {}
    settings = _settings(to_fix, below) | {"allow_random": allow_random.values == (True,)}
    plan = Plan(
        models=tuple(models),
        tasks=tuple((slug, source.data) for slug, source in rows_of.items()),
        methods=tuple(picked),
        seeds=tuple(seeds),
        settings=settings,
        own=rows_of[tasks.OWN].own if tasks.OWN in rows_of else None,
        directions={slug: source.direction for slug, source in rows_of.items() if source.direction},
    )
    return TrainForm(plan, to_fix, below)


def _models() -> list[str]:
    key = forms.key("models")
    return st.multiselect(
        "Models",
        model_form.options(),
        default=sources.bundled()[:1],
        accept_new_options=True,
        key=key,
        bind="query-params",
        placeholder=model_form.PLACEHOLDER,
        help=model_form.HELP,
    )


@stable
def _check_models(names: list[str], rows_of: Mapping[str, Source], allow_random: bool, to_fix: list[str]) -> None:
    """Check the models once the tasks are known, because not every model supports every head."""
    if not names:
        forms.show_error("Choose at least one model.")
        to_fix.append("models")
    selected_tasks = [
        tasks.get(slug, source.own) for slug, source in rows_of.items() if slug != tasks.OWN or source.own
    ]
    heads = list(dict.fromkeys(task.kind for task in selected_tasks))
    model_sources = [model_form.show_source(name, heads) for name in names]
    fits = [source is not None and model_form.weights(source, allow_random, heads) for source in model_sources]
    if not all(fits):
        to_fix.append("models")


@stable
def _tasks(to_fix: list[str]) -> list[str]:
    catalogue = tasks.catalogue()
    selected: list[str] = st.multiselect(
        "Tasks",
        [*catalogue, tasks.OWN],
        default=list(catalogue)[:1],
        format_func=lambda slug: OWN_TITLE if slug == tasks.OWN else slug,
        key=forms.key("tasks"),
        on_change=_only_own_data,
        bind="query-params",
        help="Demo tasks generate their own rows. Other tasks need data: a folder, an upload, or the hub. "
        f"“{OWN_TITLE}” takes any table with texts and labels, or with texts that belong together.",
    )
    if not selected:
        forms.show_error("Choose at least one task.")
        to_fix.append("tasks")
    return selected


def _only_own_data() -> None:
    """The user's data replaces the preselected task, but not tasks added afterwards."""
    key = forms.key("tasks")
    if st.session_state[key] == [next(iter(tasks.catalogue())), tasks.OWN]:
        st.session_state[key] = [tasks.OWN]


@stable
def _rows(selected: list[str]) -> dict[str, Source]:
    """The data section of each selected task, at a position that does not depend on the other tasks."""
    fields = {}
    for slug in [*tasks.catalogue(), tasks.OWN]:
        with st.container():
            if slug in selected:
                fields[slug] = own_field() if slug == tasks.OWN else data_field(tasks.get(slug))
    return {slug: fields[slug] for slug in selected}


@stable
def _methods(to_fix: list[str]) -> list[tuple[str, dict[str, tuple[Any, ...]]]]:
    catalogue = methods.catalogue()
    selected = st.pills(
        "Methods",
        list(catalogue),
        selection_mode="multi",
        default=[slug for slug in PRESELECTED if slug in catalogue],
        format_func=lambda slug: catalogue[slug].title,
        key=forms.key("methods"),
        bind="query-params",
        wrap=True,  # one row would hide the last methods
        help=f"Keep the baseline. {reference.glossary()['baseline'].text}",
    )
    pairs = methods.combinations()
    combined = st.multiselect(
        "Combinations",
        list(pairs),
        format_func=lambda slug: pairs[slug].title,
        key=forms.key("combinations"),
        bind="query-params",
        placeholder="Two methods in one run, for example IsoBN + I-STAR",
        help="Compatible pairs: at most one method changes the classifier's input, and the two do not pull the same "
        "quantity towards different targets.",
    )
    selected = [*selected, *combined]
    if not selected:
        forms.show_error("Choose at least one method.")
        to_fix.append("methods")
    methods_with_values: list[tuple[str, dict[str, tuple[Any, ...]]]] = [
        (slug, {}) for slug in selected if not methods.get(slug).Params.model_fields
    ]
    with_fields = [slug for slug in selected if methods.get(slug).Params.model_fields]
    methods_with_values += [(slug, _method_card(slug, to_fix)) for slug in with_fields]
    return sorted(methods_with_values, key=lambda choice: methods.place(choice[0]))


def _method_card(slug: str, to_fix: list[str]) -> dict[str, tuple[Any, ...]]:
    method = methods.get(slug)
    answers: dict[str, forms.Answer] = {}
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.image(theme.method_swatch(slug), width=16, alt=f"Colour of {method.title}")
            st.markdown(f"**{method.title}**", width="content")
        st.caption(wording.plain(method.summary))
        names = list(method.Params.model_fields)
        first = [
            name
            for name in names
            if name == names[0]
            or forms.extra(method.Params.model_fields[name]).get("leading")
            or forms.extra(method.Params.model_fields[name]).get("sweep")
        ]
        for column, name in zip(st.columns(len(first)), first, strict=True):
            with column:
                answers[name] = forms.param_field(slug, name)
        further = [name for name in names if name not in first]
        if further:
            with st.expander("More parameters"):
                for name, column in zip(further, _cells(len(further), 2), strict=True):
                    with column:
                        answers[name] = forms.param_field(slug, name)
    to_fix += [f"{method.title}: {_title(method, name)}" for name, answer in answers.items() if answer.error]
    return {name: answers[name].values for name in names}


def _title(method: type[Method], name: str) -> str:
    return method.Params.model_fields[name].title or name


@stable
def _seeds(to_fix: list[str]) -> list[int]:
    text = st.text_input(
        "Seeds",
        value="0",
        key=forms.key("seeds"),
        bind="query-params",
        placeholder="0 1 2, or 0-4",
        help=reference.glossary()["seed"].text,
    )
    seeds, error = reading.answer(forms.parse_seeds, text)
    if seeds is None:
        forms.show_error(error)
        to_fix.append("seeds")
        return []
    if len(seeds) < 3:
        st.caption("Seeds often differ more than methods do: use three or more seeds to compare methods.")
    return seeds


@stable
def _settings(to_fix: list[str], below: dict[str, DeltaGenerator]) -> dict[str, Any]:
    """The common settings first, the others by section, closed."""
    answers: dict[str, forms.Answer] = {}
    sections: dict[str, list[str]] = {}
    for name in forms.SETTINGS:
        if name != "allow_random":  # beside the models
            sections.setdefault(section_of(name), []).append(name)

    def fields(names: list[str], across: int) -> None:
        for name, cell in zip(names, _cells(len(names), across), strict=True):
            with cell:
                answers[name] = forms.setting_field(name)
                below[name] = st.container()

    fields(common := sections.pop(""), len(common))
    with st.expander("All training settings", icon=":material/settings:"):
        presets.recipe_buttons()
        for title, names in sections.items():
            st.markdown(f"**{title}**")
            fields(names, 3)
    to_fix += [forms.setting_title(name) for name, answer in answers.items() if answer.error]
    return {name: answer.values[0] for name, answer in answers.items() if answer.values}


def _cells(count: int, across: int) -> list[DeltaGenerator]:
    """Cells row by row, so that neighbours stay aligned if an error appears below a field."""
    rows = [st.columns(across) for _ in range(-(-count // across))]
    return [cell for row in rows for cell in row][:count]

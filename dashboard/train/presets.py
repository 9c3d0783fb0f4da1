"""Presets as cards, and filling the training form from a preset."""

from __future__ import annotations

import streamlit as st

from dashboard.shared import actions, forms, menu
from dashboard.train.launching import Plan
from isoviz import methods
from isoviz.recipes import RECIPES, Recipe
from isoviz.runs import planning
from isoviz.runs.planning import PRESETS, Preset

ADDRESS = "preset"
"""Query parameter of the Train page that fills the form: `/train?preset=demo`."""

ICONS = {"demo": ":material/bolt:", "lambda-sweep": ":material/linear_scale:", "isobn": ":material/compare_arrows:"}

_TAKEN = "preset_taken"


def buttons() -> None:
    """One button per preset on the Train page: fills the form below."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("**Start from**", width="content")
        for preset in PRESETS:
            pressed = st.button(
                f"{preset.title} ({plan_of(preset).runs} runs)",
                key=f"preset_{preset.slug}",
                icon=ICONS.get(preset.slug, ":material/tune:"),
                help=preset.summary,
            )
            if pressed:
                fill(preset)


def cards() -> None:
    """One card per preset, with a link to the Train page with the form filled in. The first preset can also start directly."""
    for column, preset in zip(st.columns(len(PRESETS)), PRESETS, strict=True):
        with column.container(border=True, height="stretch"):
            st.markdown(f"**{ICONS.get(preset.slug, ':material/tune:')} {preset.title}**")
            st.markdown(preset.summary)
            st.space("stretch")
            runs = plan_of(preset).runs
            if preset is PRESETS[0]:
                _start_button(preset, runs)
            if st.button(f"Set up these {runs} runs", key=f"card_{preset.slug}", width="stretch"):
                st.session_state.pop(_TAKEN, None)
                st.switch_page(menu.TRAIN, query_params={ADDRESS: preset.slug})


def _start_button(preset: Preset, runs: int) -> None:
    """Button that launches the preset and opens Live; disabled, with the reason, for visitors who may not launch runs."""
    pressed = actions.button(
        f"Start these {runs} runs",
        key=f"start_{preset.slug}",
        type="primary",
        icon=":material/rocket_launch:",
        width="stretch",
        help="Queues the runs and shows them live.",
    )
    if pressed and (configs := actions.attempt(planning.expand, **preset.plan)):
        actions.launch(configs, "")


def fill_from_address() -> None:
    """Fill the form from the address once, so that later changes remain."""
    requested = st.query_params.get(ADDRESS)
    if requested is None or st.session_state.get(_TAKEN) == requested:
        return
    st.session_state[_TAKEN] = requested
    preset = next((preset for preset in PRESETS if preset.slug == requested), None)
    if preset is None:
        st.warning(
            f"No such preset (available: {', '.join(preset.slug for preset in PRESETS)}).",
            icon=":material/search_off:",
        )
        return
    fill(preset)


def fill(preset: Preset) -> None:
    """Write a preset into the form's widgets; must come before they are drawn."""
    plan = preset.plan
    fields = {"models": list(plan["models"]), "tasks": list(plan["tasks"]), "seeds": " ".join(map(str, plan["seeds"]))}
    fields["methods"] = [slug for slug, _ in plan["methods"]]
    fields |= {name: plan.get(name, forms.setting_default(name)) for name in forms.SETTINGS}
    for name, value in fields.items():
        st.session_state[forms.key(name)] = value
    for slug, values_by_name in plan["methods"]:
        for name, field in methods.get(slug).Params.model_fields.items():
            value = values_by_name.get(name, field.default)
            values = list(value) if isinstance(value, (list, tuple)) else [value]
            text = ", ".join(forms.number_text(one) for one in values)
            st.session_state[forms.key(f"{slug}.{name}")] = values if forms.choices_of(field) else text


def recipe_buttons() -> None:
    """One button per paper's recipe: fills the training settings without changing models, tasks, methods and seeds."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("**As in a paper**", width="content")
        for recipe in RECIPES.values():
            st.button(
                recipe.title,
                key=f"recipe_{recipe.slug}",
                on_click=_fill_recipe,
                args=(recipe,),
                help=" ".join((*recipe.notes, f"The paper uses {recipe.seeds} seeds.")),
            )


def _fill_recipe(recipe: Recipe) -> None:
    for name in forms.SETTINGS:
        value = recipe.settings.get(name, forms.setting_default(name))
        st.session_state[forms.key(name)] = forms.number_text(value) if isinstance(value, float) else value


def plan_of(preset: Preset) -> Plan:
    """A preset as a plan, for counting its runs."""
    plan_methods = [
        (slug, {name: tuple(value) if isinstance(value, (list, tuple)) else (value,) for name, value in params.items()})
        for slug, params in preset.plan["methods"]
    ]
    return Plan(
        models=tuple(preset.plan["models"]),
        tasks=tuple((task, None) for task in preset.plan["tasks"]),
        methods=tuple(plan_methods),
        seeds=tuple(preset.plan["seeds"]),
    )

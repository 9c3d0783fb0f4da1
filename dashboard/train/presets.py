"""Presets as cards, and how one fills the training form."""

from __future__ import annotations

import streamlit as st

from dashboard import actions, forms, menu
from dashboard.train.launching import Plan, form_values
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
    """One card per preset. The first one starts with one press; all lead to the Train page with the form filled."""
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
    """Launch the preset as it is and go to Live; disabled, with the reason, for visitors who may not."""
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
    """Fill the form as the address says, once: what is changed afterwards stays changed."""
    asked = st.query_params.get(ADDRESS)
    if asked is None or st.session_state.get(_TAKEN) == asked:
        return
    st.session_state[_TAKEN] = asked
    preset = next((preset for preset in PRESETS if preset.slug == asked), None)
    if preset is None:
        st.warning(
            f"No such preset (available: {', '.join(preset.slug for preset in PRESETS)}).",
            icon=":material/search_off:",
        )
        return
    fill(preset)


def fill(preset: Preset) -> None:
    """Write a preset into the form's widgets; must come before they are drawn."""
    for name, value in form_values(preset.plan, forms.setting_default, forms.SETTINGS).items():
        st.session_state[forms.key(name)] = value
    for slug, chosen in preset.plan["methods"]:
        for name, field in methods.get(slug).Params.model_fields.items():
            value = chosen.get(name, field.default)
            values = list(value) if isinstance(value, (list, tuple)) else [value]
            text = ", ".join(forms.number_text(one) for one in values)
            st.session_state[forms.key(f"{slug}.{name}")] = values if forms.choices_of(field) else text


def recipe_buttons() -> None:
    """One button per paper's recipe: fills the training settings, and leaves models, tasks, methods and seeds alone."""
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
    chosen = [
        (slug, {name: tuple(value) if isinstance(value, (list, tuple)) else (value,) for name, value in params.items()})
        for slug, params in preset.plan["methods"]
    ]
    return Plan(
        models=tuple(preset.plan["models"]),
        tasks=tuple((task, None) for task in preset.plan["tasks"]),
        methods=tuple(chosen),
        seeds=tuple(preset.plan["seeds"]),
    )

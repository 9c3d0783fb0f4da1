"""From a chain on cached embeddings to fine-tuning: links to the Train page with the form filled in."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dashboard.inputs.data_form import HUB
from dashboard.shared import forms, menu, wording
from dashboard.train.form import OWN_TITLE
from dashboard.train.own_form import INFERRED, KINDS, NO_SECOND
from dashboard.whatif.form import PREFIX
from isoviz import methods, tasks
from isoviz.config import RunConfig
from isoviz.posthoc.protocol import InTraining
from isoviz.runs.rows import RunRow
from isoviz.tasks.protocol import OwnTask
from isoviz.whatif.chains import Step

SETTINGS = tuple(
    name for name in forms.SETTINGS if name not in ("precision", "threads", "processes", "accelerate_config")
)
"""Settings copied from the run. The others were resolved for the machine that trained it."""


def make_it_a_run(run: RunRow, steps: tuple[Step, ...]) -> None:
    """A button for each step with an equivalent training method, which fills the Train page; and a list of the other steps."""
    st.header("Make it a run", anchor=False)
    if not steps:
        st.caption("Add a transform. If a training method does the same, you can fine-tune with it from here.")
        return
    pairs = [(step, step.in_training) for step in steps]
    tunes = [(step, answer) for step, answer in pairs if isinstance(answer, InTraining)]
    without = {step.title: answer for step, answer in pairs if isinstance(answer, str)}
    if tunes:
        st.markdown(
            "A post-hoc transform leaves the encoder unchanged. In training the encoder adapts, so only fine-tuning can show "
            "whether the method helps. Each button fills the Train page with the method and the baseline, on the same model, "
            "task and settings."
        )
    for number, (step, tune) in enumerate(tunes):
        method = methods.get(tune.method)
        fields = method.Params.model_fields
        names = list(step.changed) or list(type(step.params).model_fields)[:1]
        changes = ", ".join(
            f"{forms.extra(fields[name]).get('symbol') or name} = {forms.number_text(tune.params[name])}"
            for name in names
            if name in tune.params
        )
        label = f"Fine-tune with {method.title}" + (f" ({changes})" if changes else "")
        if st.button(label, key=f"{PREFIX}train_{number}", icon=":material/model_training:", help=tune.note):
            st.switch_page(menu.TRAIN, query_params=form_address(run.config, tune))
    if len(tunes) > 1 or (tunes and without):
        st.caption("Each button trains the method of one step, without the other steps.")
    if without:
        st.caption("No training method corresponds to:")
        st.caption("\n".join(f"- {title}: {wording.plain(reason)}." for title, reason in without.items()))


def form_address(config: RunConfig, tune: InTraining) -> dict[str, Any]:
    """Query parameters that fill the Train page with the baseline and the method, and the run's settings."""
    known = methods.catalogue()
    values: dict[str, Any] = {
        forms.key("models"): [config.model],
        forms.key("tasks"): [OWN_TITLE if config.own else config.task],
        forms.key("methods"): [known["baseline"].title, known[tune.method].title],
        forms.key("seeds"): str(config.seed),
    }
    for name, value in tune.params.items():
        field = known[tune.method].Params.model_fields[name]
        values[forms.key(f"{tune.method}.{name}")] = (
            [str(value)] if forms.choices_of(field) else forms.number_text(value)
        )
    for name in SETTINGS:
        value = getattr(config, name)
        if value is not None:
            values[forms.key(name)] = forms.number_text(value)
    if config.own:
        values |= _own_files(config.own)
    if not tasks.get(config.task, config.own).generated:
        if config.data:
            values[forms.key(f"data.{config.task}")] = config.data
        else:
            values[forms.key(f"from.{config.task}")] = HUB
    return values


def _own_files(own: OwnTask) -> dict[str, Any]:
    """Roles of the columns in the user's files. Addresses store a selection by its label on screen."""
    values = {
        "text": own.text,
        "second": own.second or NO_SECOND,
        "third": own.third or NO_SECOND,
        "label": own.label or NO_SECOND,
        "kind": KINDS[own.kind or INFERRED],
    }
    values |= {"share": forms.number_text(own.share), "split_seed": str(own.split_seed)}
    if own.label_names:
        values["label_names"] = "\n".join(own.label_names)
    return {forms.key(f"own.{name}"): value for name, value in values.items()}

"""From a chain on cached embeddings to a real fine-tune: the Train page, filled in."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dashboard import forms, menu, wording
from dashboard.data_form import FROM_HUB
from dashboard.train.form import OWN_TITLE
from dashboard.train.own_form import INFERRED, KINDS, NO_SECOND
from dashboard.whatif.form import PREFIX
from isoviz import methods, tasks
from isoviz.config import OwnTask, RunConfig
from isoviz.runs.rows import RunRow
from isoviz.whatif.chains import Step, parameters
from isoviz.whatif.fine_tunes import WITHOUT, FineTune, of_chain

SETTINGS = tuple(name for name in forms.SETTINGS if name not in ("precision", "threads"))
"""Of the run, that the new one takes over. Precision and threads were resolved for the machine that trained it."""


def make_it_a_run(run: RunRow, steps: tuple[Step, ...]) -> None:
    """Which steps a training method corresponds to, each as a button that fills the Train page; and which do not."""
    st.subheader("Make it a run", anchor=False)
    if not steps:
        st.caption("Add a transform: where a training method does the same, it can be fine-tuned from here.")
        return
    found, without = of_chain(steps)
    if found:
        st.markdown(
            "A transform after the fact leaves the encoder as it is. In training the encoder adapts, so only a fine-tune can say "
            "whether the method helps. Each button fills the Train page with the method beside the baseline, on the same model, "
            "task and settings."
        )
    for number, tune in enumerate(found):
        method = methods.get(tune.method)
        shown = list(tune.step.changed) or parameters(tune.step.slug)[:1]
        fields = method.Params.model_fields
        told = ", ".join(
            f"{forms.extra(fields[name]).get('symbol') or name} = {forms.number_text(tune.params[name])}"
            for name in shown
            if name in tune.params
        )
        label = f"Fine-tune with {method.title}" + (f" ({told})" if told else "")
        if st.button(label, key=f"{PREFIX}train_{number}", icon=":material/model_training:", help=tune.note):
            st.switch_page(menu.TRAIN, query_params=form_address(run.config, tune))
    if len(found) > 1 or (found and without):
        st.caption("A button trains the method of one step; the other steps of the chain stay behind.")
    if without:
        st.caption("No training method corresponds to:")
        reasons = {step.title: WITHOUT[step.slug] for step in without}
        st.caption("\n".join(f"- {title}: {wording.plain(why)}." for title, why in reasons.items()))


def form_address(config: RunConfig, tune: FineTune) -> dict[str, Any]:
    """Query parameters that fill the Train page: the baseline and the method, as the run was trained."""
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
            values[forms.key(f"from.{config.task}")] = FROM_HUB
    return values


def _own_files(own: OwnTask) -> dict[str, Any]:
    """Which column is what in a person's own files; the address holds a choice by the words it has on screen."""
    told = {
        "text": own.text,
        "second": own.second or NO_SECOND,
        "label": own.label,
        "kind": KINDS[own.kind or INFERRED],
    }
    told |= {"share": forms.number_text(own.share), "split_seed": str(own.split_seed)}
    if own.label_names:
        told["label_names"] = "\n".join(own.label_names)
    return {forms.key(f"own.{name}"): value for name, value in told.items()}

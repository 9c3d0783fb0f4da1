"""From a chain on cached embeddings to a real fine-tune: the Train page, filled in."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dashboard import forms, menu, wording
from dashboard.data_form import FROM_HUB
from dashboard.whatif_form import PREFIX
from isoviz import methods, tasks
from isoviz.config import RunConfig
from isoviz.runs.rows import RunRow
from isoviz.whatif.chains import Step, parameters
from isoviz.whatif.fine_tunes import FineTune, of_chain

SETTINGS = ("epochs", "learning_rate", "batch_size", "max_train", "max_eval", "max_length")
"""Of the run, that the new one takes over; the others start at their defaults."""


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
        told = ", ".join(f"{name} = {forms.number_text(tune.params[name])}" for name in shown if name in tune.params)
        label = f"Fine-tune with {method.title}" + (f" ({told})" if told else "")
        if st.button(label, key=f"{PREFIX}train_{number}", icon=":material/model_training:", help=tune.note):
            st.switch_page(menu.TRAIN, query_params=form_address(run.config, tune))
    if len(found) > 1 or (found and without):
        st.caption("A run applies one method; the other steps of the chain stay behind.")
    if without:
        names = ", ".join(dict.fromkeys(step.title for step in without))
        st.caption(wording.plain(f"No training method corresponds to: {names}."))


def form_address(config: RunConfig, tune: FineTune) -> dict[str, Any]:
    """Query parameters that fill the Train page: the baseline and the method, as the run was trained."""
    known = methods.catalogue()
    values: dict[str, Any] = {
        forms.key("models"): [config.model],
        forms.key("tasks"): [config.task],
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
    if not tasks.get(config.task).generated:
        if config.data:
            values[forms.key(f"data.{config.task}")] = config.data
        else:
            values[forms.key(f"from.{config.task}")] = FROM_HUB
    return values

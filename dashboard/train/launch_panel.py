"""The end of the training form: the summary, the equivalent command, and the launch button."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from dashboard.shared import actions, forms, reading, resources, tables, timing, wording
from dashboard.shared.stable import stable
from dashboard.train import launching
from dashboard.train.form import TrainForm
from dashboard.train.launching import Plan
from isoviz import devices
from isoviz.config import RunConfig
from isoviz.errors import InputError
from isoviz.formatting import decimals
from isoviz.runs import planning
from isoviz.runs.comparisons.comparing import smallest_difference
from isoviz.runs.naming import LONGEST_NAME, experiment_name


def panel(form: TrainForm) -> None:
    """Draw the summary and the launch button."""
    with st.container(border=True):
        st.markdown("## Summary")
        planned = _ready(form)
        configs = _without_existing(planned)
        _numbers(form.plan, configs, ready=bool(planned))
        name = st.text_input(
            "Experiment name",
            key=forms.key("group"),
            persist_state="session",
            max_chars=LONGEST_NAME,
            placeholder=experiment_name(configs) if configs else "",
            help="Everything you launch together is one experiment. Use an existing name to add to it.",
        )
        label = f"Launch {_runs(len(configs))}" if configs else "Launch"
        over_quota = (
            actions.sentences(resources.service().launch_refusal(configs)) if actions.refusal() is None else None
        )
        forms.show_error(over_quota)
        pressed = actions.button(
            label,
            key="launch",
            type="primary",
            icon=":material/rocket_launch:",
            disabled=not configs or over_quota is not None,
            width="stretch",
        )
        if configs:
            with st.expander("As a command", icon=":material/terminal:"):
                st.code(planning.command(configs), language="bash", wrap_lines=True)
        if pressed and configs:
            actions.launch(configs, (name or "").strip())


@stable
def _ready(form: TrainForm) -> list[RunConfig]:
    """The runs to launch; empty, with a message, if they cannot start."""
    configs, error = _prepared(form)
    if error is not None and error.field in form.below:
        with form.below[error.field]:
            forms.show_error(error)
        forms.show_error(f"{forms.setting_title(error.field)}: {forms.sentence(error)}")
    elif error is not None:
        forms.show_error(error)
    elif form.to_fix:
        fields = ", ".join(dict.fromkeys(form.to_fix))
        st.markdown(f":material/edit: Fix these fields first: {wording.plain(fields)}.")
    return configs


@stable
def _without_existing(planned: list[RunConfig]) -> list[RunConfig]:
    """The runs that do not exist yet, or all runs if the visitor chooses to repeat them."""
    existing = resources.store().existing(planned)
    if not existing:
        return planned
    all_exist = len(existing) == len(planned)
    message = (
        "These runs exist already" if all_exist else f"{len(existing)} of these {_runs(len(planned))} exist already"
    )
    st.caption(f":material/content_copy: {message}: the same settings, data folder and seed.")
    repeat = st.toggle(
        "Run them again",
        key=forms.key("again"),
        bind="query-params",
        help="The same configuration on the same kind of machine gives the same numbers. Repeat runs if the data files have changed.",
    )
    return planned if repeat else [config for config in planned if config.identity not in existing]


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def _prepared(form: TrainForm) -> tuple[list[RunConfig], InputError | None]:
    if form.to_fix:
        return [], None
    stamps = tuple(reading.stamp(folder) for _, folder in form.plan.tasks)
    with st.spinner("Checking …", show_time=True):
        configs, error = _expanded(repr(form.plan), stamps, form.plan)
    return configs or [], error


@st.cache_data(show_spinner=False, max_entries=64, ttl=900)
def _expanded(
    identity: str, files: tuple[reading.Stamp, ...], _plan: Plan
) -> tuple[list[RunConfig] | None, InputError | None]:
    """All runs of a plan or why there are none, remembered until the plan or a data file changes."""
    del identity, files
    return reading.answer(launching.configs, _plan, reading.CHECKS)


def _numbers(plan: Plan, configs: Sequence[RunConfig], ready: bool) -> None:
    runs, time_needed, device = (st.container() for _ in range(3))  # times and device names are long
    factors = (
        (len(plan.models), "model"),
        (len(plan.tasks), "task"),
        (plan.variants, "method"),
        (len(plan.seeds), "seed"),
    )
    product = " × ".join(f"{count} {unit}{'s' if count != 1 else ''}" for count, unit in factors)
    runs.metric(
        "Runs",
        len(configs) if ready else plan.runs,
        help="Each method counts once per combination of parameter values.",
    )
    runs.caption(product)
    if configs and (foreseen := _foreseen(configs, len(plan.seeds))):
        runs.caption(foreseen)
    if not configs:
        time_needed.metric("Time", "–")
        device.metric("Device", "–")
        return
    slots = devices.describe().slots
    time_needed.metric(
        "Time",
        timing.estimated(configs).words(),
        help="From earlier runs on this machine; before the first, from a recording.",
    )
    if ahead := _ahead():
        time_needed.caption(ahead)
    device.metric("Device", slots[0].label if len(slots) == 1 else f"{len(slots)} × {slots[0].label}")
    config = configs[0]
    precision = {"no": "float32"}.get(config.precision, config.precision)
    threads = f"{config.processes} × {config.threads}" if config.processes > 1 else str(config.threads)
    device.caption(f"{precision}, {threads} threads, {len(slots)} run{'s' if len(slots) > 1 else ''} at a time")


def _foreseen(configs: Sequence[RunConfig], seeds: int) -> str:
    """What the seeds of the first model and task would show."""
    if seeds < 2:
        return "One seed shows no difference between methods: it may be chance."
    first, library = configs[0], resources.library()
    like: dict[str, Any] = {"status": "finished", "model": (first.model,), "task": (first.task,)}
    summaries = [run for part in (library, library.examples) if part is not None for run in part.summaries(**like)]
    finished = tables.runs_frame(run for run in summaries if run.data == first.data)
    newest = tables.newest_per_seed(finished).dropna(subset="value")
    found = smallest_difference((group["value"].tolist() for _, group in newest.groupby("setup")), seeds)
    if found is None:
        return ""
    size, runs = found
    metric = wording.plain(str(newest["primary"].iloc[0]))
    return (
        f"{seeds} seeds each would show a difference of about {decimals(size, 3)} in {metric} between two methods "
        f"(80 % power, by the spread of {runs} finished runs)."
    )


def _ahead() -> str:
    counts = resources.store().counts()
    waiting = counts["running"] + counts["queued"]
    return f"after {waiting} running or waiting" if waiting else ""

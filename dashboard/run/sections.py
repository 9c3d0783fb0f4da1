"""Sections of the page of one run: identity, results, configuration, provenance, reproduction."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pandas as pd
import streamlit as st

from dashboard.components.live_lines import live_lines
from dashboard.components.matrix import matrix
from dashboard.live import sections as live
from dashboard.run import outcomes
from dashboard.shared import actions, downloads, examples, job_progress, menu, resources, run_lists, theme, wording
from dashboard.shared.actions import perform
from dashboard.shared.stable import TICK
from isoviz import metrics, tasks
from isoviz.config import RunConfig
from isoviz.errors import InputError, StoreError
from isoviz.events import Finished, Started
from isoviz.exploring import encoders
from isoviz.formatting import decimals
from isoviz.metrics.record import Measurement
from isoviz.runs import planning, pretrained
from isoviz.runs.examples import is_example
from isoviz.runs.naming import method_title, parameter_label, setting, variant
from isoviz.runs.rows import RunRow
from isoviz.tasks.kinds import KINDS
from isoviz.tasks.protocol import OwnTask

_METHOD_FIELDS = ("method", "params", "version")
_TIMING_NAMES = {
    "train_seconds": ("training time", "s"),
    "evaluate_seconds": ("evaluation time", "s"),
    "measure_seconds": ("time for measuring isotropy", "s"),
    "seconds_per_epoch": ("time per epoch", "s"),
    "samples_per_second": ("samples per second", ""),
    "startup_seconds": ("time to start", "s"),
    "total_seconds": ("total time", "s"),
}


def selected() -> RunRow | None:
    """The run in `?id=ID`; without one or for an unknown id, a message and a link."""
    run = run_lists.of_address("id")
    if run is None:
        if not st.query_params.get("id"):
            st.info("This page shows one run: add `?id=` and the run's id to the address.", icon=":material/info:")
        st.page_link(menu.RESULTS, label="Choose a run in Results", icon=":material/table_chart:")
    return run


def heading(run: RunRow) -> None:
    """Name, status, a one-line description and actions. Refreshes until the run has ended."""
    every = TICK if run.status in ("queued", "running") else None
    st.fragment(_heading, run_every=every)(run.id, run.status)


def _heading(run_id: str, status: str) -> None:
    try:
        run = resources.library().get(run_id)
    except StoreError:
        st.rerun()
    if run.status != status:
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.title(wording.plain(wording.run_title(run)), width="content", anchor=False)
        st.markdown(theme.status_badge(run.status) + examples.badge(run), width="content")
    config = run.config
    parts = [
        config.model,
        config.task,
        method_title(config.method),
        variant(config.method, config.params),
        f"seed {config.seed}",
    ]
    st.caption(wording.plain(" · ".join(part for part in parts if part)))
    if run.tags:
        st.markdown(" ".join(f":gray-badge[{wording.plain(tag)}]" for tag in run.tags))
    if run.note:
        st.text(run.note)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        live.buttons(run, "id")
        if run.status in ("queued", "running"):
            st.page_link(menu.LIVE, label="Watch live", icon=":material/monitoring:", query_params={"run": run.id})
        live.experiment_link(run)
        if run.status == "finished" and encoders.has_weights(run.id, resources.store()):
            name = encoders.RUN + run.id
            st.page_link(menu.EXPLORE, label="Explore", icon=":material/layers:", query_params={"explore_model": name})
            if tasks.get(config.task, config.own).kind == "embedding":
                for page, label, icon, query in menu.of_own_texts(config.model, name):
                    st.page_link(page, label=label, icon=f":material/{icon}:", query_params=query)
    live.trouble(run)


def edit(run: RunRow) -> None:
    """Rename, tag, note, delete."""
    st.header("Edit or delete", anchor=False)
    store, service = resources.library(), resources.service()
    if reason := actions.refusal(run):
        st.caption(f":material/block: {wording.plain(reason)}")
        return
    with st.container(horizontal=True, gap="small"):
        with st.popover("Name, tags, note", icon=":material/edit:"), st.form("edit-run", border=False):
            name = st.text_input("Name", run.name, max_chars=200)
            tags = st.text_input("Tags", ", ".join(run.tags), help="Separated by commas.")
            note = st.text_area("Note", run.note, height=120)
            if st.form_submit_button("Save", type="primary"):
                new_tags = [tag.strip() for tag in tags.split(",") if tag.strip()]
                if (
                    perform(service.rename, run.id, name)
                    and perform(service.tag, run.id, new_tags)
                    and perform(service.note, run.id, note)
                ):
                    st.rerun()
        with st.popover("Delete", icon=":material/delete:", disabled=run.status == "running"):
            st.markdown(
                f"Delete this run with its curves, arrays and checkpoints ({wording.size(store.disk_use(run.id))})?"
            )
            if st.button("Delete permanently", type="primary", key="delete-run") and perform(service.delete, run.id):
                st.switch_page(menu.RESULTS)


def curves(run: RunRow) -> None:
    """The live view of the Live page, complete for a finished run."""
    live_lines([run], key="run-lines")
    matrix(run, key="run-matrix")


def predictions(run: RunRow) -> None:
    """The run's predictions: confusion matrix, numbers or texts, and its errors."""
    outcomes.draw(run, lambda: started.data_fingerprint if (started := _started(run)) else None)


def numbers(run: RunRow) -> None:
    """The run's result: task metrics, isotropy with its cloud, times."""
    st.header("Final numbers", anchor=False)
    if run.result is None:
        waiting = run.status in ("queued", "running")
        st.caption(
            "Available when the run finishes."
            if waiting
            else "The run did not finish. The curves show its measurements until it ended."
        )
        return
    st.caption(f"On the validation split{reported_epoch(run)}")
    started = _started(run)
    if run.left_out:
        st.warning(
            f"{run.left_out[0].upper()}{run.left_out[1:]}. Tables and comparisons of its scores leave this run out.",
            icon=":material/trending_flat:",
        )
    for warning in run.progress.warnings if run.progress else []:
        st.warning(wording.plain(warning), icon=":material/healing:")
    for note in started.notes if started else []:
        st.info(wording.plain(note), icon=":material/info:")
    lines = result_lines(run.result, started.eval_rows if started else None)
    _table(lines, name=190, value=140, measured_on=200)


def reported_epoch(run: RunRow) -> str:
    """The epoch of a finished run's reported numbers, and whether its saved weights were chosen by it."""
    assert run.result is not None
    epoch = run.result.metrics.get("epoch")
    if epoch is None:
        return "."
    chosen = run.config.select == "best" and run.result.weights is not None
    return f", after epoch {epoch:g}{', with the saved weights' if chosen else ''}."


def _trainable(started: Started) -> str:
    """`9,312 of 1,204,994 (0.77 %)`, or the number alone where all parameters train."""
    total, trained = started.parameters, started.trainable_parameters
    if trained is None or trained == total:
        return wording.number(total)
    return f"{wording.number(trained)} of {wording.number(total)} ({100 * trained / total:.2g} %)"


def _table(lines: Sequence[tuple[str, ...]], **widths: int) -> None:
    """Rows of text; columns with their widths in pixels, the first without a heading."""
    columns = ["", *(name.replace("_", " ") for name in list(widths)[1:])]
    sizes = zip(columns, widths.values(), strict=True)
    config = {name: st.column_config.TextColumn(width=width) for name, width in sizes}
    frame = pd.DataFrame(lines, columns=columns)
    st.dataframe(frame, hide_index=True, width="stretch", height="content", column_config=config)


def _measured_on(isotropy: Measurement, slug: str) -> str:
    home = isotropy.headline_cloud(slug)
    if home == "output":
        return "output weights"
    cloud = isotropy.clouds[home]
    facts = ["layers: all layers' tokens" if home == "layers" else ""]
    facts += [f"n = {wording.number(cloud.n)}", f"d = {cloud.d}"] if cloud.n else []
    facts += [f"ζ = {value:g}" for name, value in cloud.readings[slug].settings.items() if name == "zeta"]
    size = ", ".join(filter(None, facts))
    return size if home == "layers" else f"{home}: {size}"


def result_lines(result: Finished, rows: int | None) -> list[tuple[str, str, str]]:
    """Name, value and cloud for every number of a finished run; `rows`: of the validation split."""
    split = "validation" if rows is None else f"validation: n = {wording.number(rows)}"
    lines = [
        (name.replace("_", " "), wording.number(value), split)
        for name, value in result.metrics.items()
        if name != "epoch"
    ]
    for slug, metric in metrics.catalogue().items():
        reading = result.isotropy.reading(slug)
        if reading is None or metric.gives == "curve":
            continue
        on = _measured_on(result.isotropy, slug)
        places = metric.decimals + 1
        lines.append((metric.number_title, decimals(result.isotropy.number(slug), places), on))
        if reading.error is not None:
            lines.append(("  sampling error, 95 %", f"± {wording.number(reading.error, 2)}", on))
        if reading.interval:
            lines.append(("  its 95 % interval", " to ".join(decimals(end, places) for end in reading.interval), on))
    for name, cloud in result.isotropy.clouds.items():
        if name.startswith("head_"):  # Matryoshka
            score, on = (
                metrics.catalogue()["isoscore"],
                f"{name.replace('_', ' ')}: n = {wording.number(cloud.n)}, d = {cloud.d}",
            )
            lines.append((score.number_title, decimals(cloud.number("isoscore"), score.decimals + 1), on))
    output = result.isotropy.output
    if output is not None and output.norm is not None:
        lines.append(("norm of the output weights", wording.number(output.norm), "output weights"))
    for slug, metric in metrics.catalogue().items():
        if metric.gives == "curve" and (curve := result.isotropy.curve(slug)):
            on, name = _measured_on(result.isotropy, slug), metric.symbol.removesuffix("_k")
            values = enumerate(curve[1:3], start=2)
            lines += [(f"{name}_{k}", decimals(value, metric.decimals + 1), on) for k, value in values]
    for key, (name, unit) in _TIMING_NAMES.items():
        value = result.timing.get(key)
        if value is not None:
            lines.append((name, f"{wording.number(value, 3)} {unit}".strip(), "the run's device"))
    return lines


def configuration(run: RunRow) -> None:
    """The run's configuration, from the store."""
    st.header("Configuration", anchor=False)
    _table(config_lines(run.config), name=150, value=200, field=130)


def config_lines(config: RunConfig) -> list[tuple[str, str, str]]:
    """Title, value and field name of every applicable setting, including method parameters and columns of the user's data."""
    from isoviz import methods

    method_class = methods.find(config.method)
    lines = [("Method", method_title(config.method), "method")]
    for name, value in config.params.items():
        field = method_class.Params.model_fields.get(name) if method_class else None
        lines.append((f"  {parameter_label(name, field)}", _setting(value), name))
    for name, field in RunConfig.model_fields.items():
        if name == "own" and config.own is not None:
            columns = [(field.title, getattr(config.own, part), part) for part, field in OwnTask.model_fields.items()]
            lines += [
                (f"  {title}", _setting(of), f"own.{part}") for title, of, part in columns if of not in (None, ())
            ]
        elif name not in _METHOD_FIELDS and name not in _inapplicable(config):
            lines.append((field.title or name, _setting(getattr(config, name)), name))
    return lines


def _inapplicable(config: RunConfig) -> set[str]:
    """Settings that do not apply to this run's task."""
    from isoviz import tasks

    absent = {name for name in ("own", "direction") if getattr(config, name) is None}
    try:
        own = tasks.get(config.task, config.own).rules.settings
    except InputError:  # a task unknown to this version: show all settings
        return absent
    return absent | {name for kind in KINDS.values() for name in kind.settings if name not in own}


def _setting(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, tuple):
        return ", ".join(str(part) for part in value)
    return setting(value)


def provenance(run: RunRow) -> None:
    """Machine, versions and data of the run, for comparison with another run."""
    st.header("Provenance", anchor=False)
    _table(provenance_lines(run, _started(run)), name=150, value=330)


def _started(run: RunRow) -> Started | None:
    """The newest `started` event: a resumed run has one per attempt."""
    started = resources.library().events_of_kind(run.id, Started)
    return started[-1] if started else None


def provenance_lines(run: RunRow, started: Started | None) -> list[tuple[str, str]]:
    """Labelled facts on the run's environment; fewer if it never started."""
    lines = [
        ("Id", run.id),
        ("Experiment", run.group or "–"),
        ("Created", wording.moment(run.created)),
        ("Started", wording.moment(run.started)),
        ("Ended", wording.moment(run.ended)),
        ("Attempts", str(run.attempts)),
        ("Host", run.host or "–"),
    ]
    if started is not None:
        precision = "float32" if started.precision == "no" else started.precision
        rows, steps = (started.train_rows, started.eval_rows), (started.total_steps, started.steps_per_epoch)
        lines += [
            ("Device", f"{started.device}, {precision}, {started.threads} threads"),
            ("Processes", str(run.config.processes)),
            ("Trainable parameters", _trainable(started)),
            ("Rows", f"{wording.number(rows[0])} training, {wording.number(rows[1])} validation"),
            ("Optimiser steps", f"{wording.number(steps[0])}, {wording.number(steps[1])} per epoch"),
            ("Data fingerprint", started.data_fingerprint),
            ("Model fingerprint", started.model_fingerprint),
            ("Model commit", started.model_revision or "–"),
            ("Data commit", started.data_revision or "–"),
            *((f"What {name} is", definition) for name, definition in started.signatures.items()),
            *((f"Version of {name}", version) for name, version in started.versions.items()),
        ]
    if run.result is not None and run.result.weights is not None:
        weights_epoch = run.result.weights.epoch
        remark = " (the one reported)" if run.result.metrics.get("epoch") == weights_epoch else ""
        lines.append(("Weights kept", f"after epoch {weights_epoch}{remark}"))
    return [*lines, ("Disk use", wording.size(resources.library().disk_use(run.id)))]


def reproduce(run: RunRow) -> None:
    """The run as a command, and its record as a file."""
    st.header("Reproduce this", anchor=False)
    st.code(planning.command([run.config]), language="bash", wrap_lines=True)
    if run.status == "finished" and not is_example(run.id):
        _model(run)
    record = {
        "id": run.id,
        "name": run.name,
        "status": run.status,
        "config": run.config.model_dump(mode="json"),
        "result": run.result.model_dump(mode="json", exclude={"kind"}) if run.result else None,
    }
    downloads.button(
        "Configuration and numbers (JSON)",
        lambda: json.dumps(record, indent=2),
        f"isoviz-{run.id}.json",
        key="run_json",
    )


def _model(run: RunRow) -> None:
    """The run's model as an archive, built on request; nothing if its weights no longer exist."""
    try:
        request = pretrained.request(run, resources.library().path_of(run.id))
    except InputError:
        return
    embeds = "loss" not in _inapplicable(run.config)
    what = "A sentence-transformers" if embeds else "A transformers"
    layer = "as a layer of its own" if embeds else "into its output layer"
    job_progress.offer_file(
        pretrained.SAVE,
        request,
        label="Model (sentence-transformers)" if embeds else "Model (transformers)",
        build="Build the model for download",
        file=f"isoviz-{run.id}.zip",
        key="run_model",
        about=lambda facts: f"{what} directory that loads without IsoViz; the method is folded {layer}.",
    )
    st.code(f"python -m isoviz runs save-model {run.id} --out DIR", language="bash", wrap_lines=True)

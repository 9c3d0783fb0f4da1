"""Sections of the Results page: filters, per task an honest table and a strip of every seed, and the list of all runs."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from dashboard import charts, choosing, downloads, explanations, resources, tables, wording
from dashboard.components import figure
from isoviz import tasks
from isoviz.events import Started
from isoviz.runs.rows import STATUSES

_NUMBER: dict[str, Any] = {"format": "%.3f"}

COLUMNS: dict[str, str] = {
    "model": "Model",
    "title": "Method",
    "variant": "Parameters",
    "settings": "Settings",
    "mean": "Mean",
    "sd": "± s",
    "n": "n",
    "seeds": "Each seed",
    "remarks": "Remarks",
    "isoscore_star": "IsoScore*",
    "isoscore_star_sd": "± s ",
    "isoscore": "IsoScore",
    "isoscore_unbiased": "unbiased",
    "ev_1": "EV₁",
    "seconds": "Seconds",
}


_RUN_WORDS = {
    "status": "Status",
    "task": "Task",
    "title": "Method",
    "variant": "Parameters",
    "seed": "Seed",
    "metric": "Metric",
    "value": "Value",
    "isoscore": "IsoScore",
    "isoscore_star": "IsoScore*",
    "isoscore_unbiased": "unbiased",
    "ev_1": "EV₁",
    "model": "Model",
    "seconds": "Seconds",
    "problem": "Remarks",
    "group": "Launch",
    "name": "Name",
}


def all_runs() -> pd.DataFrame:
    """Every run of the store, one line each."""
    return tables.runs_frame(resources.store().list())


def nothing_yet() -> None:
    """The page of an empty store."""
    choosing.nothing_yet(
        "Finished runs become a table here: model × task × method, with the mean, every seed, and which runs failed or "
        "collapsed. *IsoBN against none* asks whether a difference is larger than the spread between seeds.",
        "isobn",
        "IsoBN against none, 5 seeds",
    )


def filters(runs: pd.DataFrame) -> pd.DataFrame:
    """Draw the filters and apply them."""
    fields = st.columns([2, 1, 1, 1, 1])
    with fields[0]:
        group = choosing.group_field(runs, "results_group")
    with fields[1]:
        models = choosing.several("Model", sorted(set(runs["model"])), "results_model")
    with fields[2]:
        chosen = choosing.several("Task", sorted(set(runs["task"])), "results_task")
    with fields[3]:
        titles = choosing.method_titles(runs)
        methods = choosing.several("Method", list(titles), "results_method", titles=titles)
    with fields[4]:
        present = [status for status in STATUSES if status in set(runs["status"])]
        status = choosing.several("Status", present, "results_status")
    return choosing.keep(runs, group=group, model=models, task=chosen, method=methods, status=status)


def by_task(runs: pd.DataFrame) -> None:
    """Per task: its metric, the table, every seed."""
    if runs.empty:
        st.info("No run matches these filters. Clear one of them.", icon=":material/filter_alt_off:")
    for task, part in runs.groupby("task", sort=True):
        _task(str(task), part)


def _task(task: str, runs: pd.DataFrame) -> None:
    known = tasks.catalogue().get(task)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.subheader(wording.plain(f"{known.title} · {task}" if known else task), anchor=False)
        st.space("stretch")
        explanations.show("results")
    metric = _metric(task, runs)
    chosen = tables.with_metric(runs, metric)
    summary = tables.summary(chosen)
    levels = _levels(runs) if known and metric == known.primary else []
    st.dataframe(
        shown(summary, levels),
        hide_index=True,
        column_config=_column_config(metric),
        placeholder="",
        alt=f"Mean {metric} and isotropy per model, method and parameters on {task}, with every seed",
    )
    st.caption(_sizes(chosen))
    name = downloads.file_name("results", task, metric)
    caption = f"{task}: mean and sample standard deviation over n seeds."
    downloads.buttons(
        name, summary.drop(columns="setup"), lambda: downloads.latex(summary, metric, caption), parquet_too=True
    )
    _strip(task, chosen, metric, levels)


def _metric(task: str, runs: pd.DataFrame) -> str:
    reported = list(dict.fromkeys(name for metrics in runs["metrics"] for name in metrics))
    primary = tables.primary_metric(task, dict.fromkeys(reported))
    names = [primary, *(name for name in reported if name != primary)]
    if len(names) == 1:
        return primary
    chosen = st.segmented_control("Metric", names, default=primary, required=True, key=f"metric_{task}")
    return str(chosen)


def shown(summary: pd.DataFrame, levels: list[tuple[str, float]]) -> pd.DataFrame:
    """The summary as people read it, the simple baselines below it."""
    references = [{"title": f"({words})", "mean": value, "seeds": "simple guess, no run"} for words, value in levels]
    frame = pd.concat([summary, pd.DataFrame(references)], ignore_index=True) if references else summary
    frame = frame.reindex(columns=list(COLUMNS))
    idle = [name for name in ("settings", "remarks", "variant") if not summary[name].any()]
    if summary["model"].nunique() == 1:
        idle.append("model")
    words = ["model", "title", "variant", "settings", "seeds", "remarks"]
    return frame.fillna(dict.fromkeys(words, "")).drop(columns=idle).rename(columns=COLUMNS)


def _column_config(metric: str) -> dict[str, Any]:
    number = st.column_config.NumberColumn
    config: dict[str, Any] = {
        COLUMNS[name]: number(**_NUMBER) for name in ("sd", "isoscore_star", "isoscore_star_sd", "isoscore", "ev_1")
    }
    config["Mean"] = number(f"{metric}, mean", **_NUMBER)
    config["± s"] = number("± s", help="Sample standard deviation over the seeds; needs two.", **_NUMBER)
    config["n"] = number("n", format="%d", help="Seeds that finished.")
    config["Each seed"] = st.column_config.TextColumn("Each seed", help="seed: value")
    config["IsoScore*"] = number("IsoScore*", help="All layers' tokens, ζ = 0.2: compares methods.", **_NUMBER)
    config["IsoScore"] = number("IsoScore", help="Of the vectors the classifier reads, after the method.", **_NUMBER)
    config["unbiased"] = number("unbiased", help="The same, corrected for few points.", **_NUMBER)
    config["EV₁"] = number("EV₁", help="Share of the variance in the strongest direction.", **_NUMBER)
    config["Seconds"] = number("Seconds", format="%.1f", help="Mean training time of a run.")
    return config


def _sizes(runs: pd.DataFrame) -> str:
    measured = runs.dropna(subset=["n", "d"])
    sizes = sorted({f"n = {int(n)}, d = {int(d)}" for n, d in zip(measured["n"], measured["d"], strict=True)})
    where = f" ({'; '.join(sizes)})" if sizes else ""
    return (
        f"IsoScore, unbiased and EV₁ describe what the classifier reads, on validation rows{where}; "
        "IsoScore\\* describes all layers' tokens."
    )


def _strip(task: str, runs: pd.DataFrame, metric: str, levels: list[tuple[str, float]]) -> None:
    seeds = pd.concat([tables.seeds_of(part) for _, part in runs.groupby("setup", sort=False)])
    seeds = seeds[seeds["value"].notna()]
    if seeds.empty:
        return
    settings = tables.settings_text(runs)
    models = seeds["model"] if seeds["model"].nunique() > 1 else [""] * len(seeds)
    parts = zip(models, seeds["title"], seeds["variant"], seeds["setup"].map(settings), strict=True)
    words = [" · ".join(filter(None, part)) for part in parts]
    strip = charts.seed_strip(tables.ordered(seeds.assign(row=words)), metric, levels)
    figure.draw(
        strip,
        key=f"strip_{task}",
        words=f"{metric} of every seed on {task}, by method",
        name=downloads.file_name("isoviz", "seeds", task, metric),
    )
    explanations.show("seeds")


def _levels(runs: pd.DataFrame) -> list[tuple[str, float]]:
    """The simple baselines of the task, as the first finished run measured them when it started."""
    finished = runs[runs["status"] == "finished"]
    if finished.empty:
        return []
    started = resources.store().events_of_kind(str(finished.iloc[0]["run"]), Started, limit=1)
    return tables.references(started[0].baselines) if started else []


def every_run(runs: pd.DataFrame) -> None:
    """All runs of the filters, each with a link to its page."""
    if runs.empty:
        return
    st.subheader("Every run", anchor=False)
    columns = ["run", "status", "task", "title", "variant", "seed", "metric", "value", *tables.HEADLINE[:4], "model"]
    listed = runs[[*columns, "seconds", "problem", "group", "name"]]
    links = [f"run?id={run}" for run in listed["run"]]
    config: dict[str, Any] = {
        name: st.column_config.NumberColumn(**_NUMBER)
        for name in ("value", "isoscore", "isoscore_star", "isoscore_unbiased", "ev_1")
    }
    config["open"] = st.column_config.LinkColumn("Run", display_text=r"run\?id=(.*)")
    config["seconds"] = st.column_config.NumberColumn(format="%.1f")
    table = listed.drop(columns="run")
    table.insert(0, "open", links)
    st.dataframe(
        table.rename(columns=_RUN_WORDS),
        hide_index=True,
        column_config={_RUN_WORDS.get(name, name): setting for name, setting in config.items()},
        placeholder="",
        alt="Every run that matches the filters",
    )
    downloads.buttons("runs", listed, parquet_too=True)

"""Sections of the Results page: filters, a table and a figure of all seeds per task, and the list of all runs."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from dashboard.components import figure
from dashboard.export import button, provenance
from dashboard.results import comparison, pivot
from dashboard.shared import (
    charts,
    choosing,
    downloads,
    explanations,
    exported,
    measures,
    run_lists,
    tables,
    wording,
)
from dashboard.shared.explanations import Explanation
from dashboard.shared.exported import ExportedSentences, ExportedTable
from dashboard.shared.run_lists import Filter, cached
from isoviz import reference, tasks
from isoviz.metrics.protocol import Metric
from isoviz.runs.comparisons import associate
from isoviz.runs.examples import METHODS
from isoviz.runs.rows import STATUSES

RESULTS = Explanation(
    title="Mean ± s over n seeds",
    reading=(
        "Runs that differ only in the seed share a row: mean, sample standard deviation s, number of seeds n, and "
        "every single value. Collapsed, failed and diverged runs are excluded from means and counted in the remarks."
    ),
    formula=r"\bar y = \frac{1}{n} \sum_i y_i, \quad s = \sqrt{\frac{1}{n - 1} \sum_i (y_i - \bar y)^2}",
    paper="IsoScore: Rudman et al. 2022. Unbiased traces: Himeno & Yamada 2014.",
)

LISTED = 1_000
"""Most runs in the list; the files contain all."""
STRIP_ROWS = 40
"""Most setups in the figure of seeds; more would be unreadable."""
TAB, EVERY_RUN = "results_tab", "Every run"

_NUMBER: dict[str, Any] = {"format": "%.3f"}
COLUMNS: dict[str, str] = {
    "model": "Model",
    "label": "Method",
    "settings": "Settings",
    "mean": "Mean",
    "difference": "Difference",
    "sd": "± s",
    "n": "n",
}
"""Column → heading, before the measures of isotropy; `LAST` comes after them."""
LAST: dict[str, str] = {"seeds": "Each seed", "published": "Published", "remarks": "Remarks"}

RUN_COLUMNS = {
    "status": "Status",
    "task": "Task",
    "title": "Method",
    "variant": "Parameters",
    "seed": "Seed",
    "metric": "Metric",
    "value": "Value",
}
MORE_RUN_COLUMNS = {"model": "Model", "seconds": "Seconds", "problem": "Remarks", "group": "Experiment", "name": "Name"}
ALIKE = ("model", "task", "metric", "problem", "group")
"""Columns of the list that are hidden if all runs have the same value."""


def empty_state() -> None:
    """Empty state of the page."""
    choosing.empty_state(
        "Finished runs become a table here: model × task × method, with the mean, every seed, and which runs failed or "
        "collapsed. *IsoBN against none* asks whether a difference is larger than the spread between seeds.",
        "isobn",
        "IsoBN against none, 5 seeds",
    )


def filters(facets: pd.DataFrame) -> Filter:
    """Fields of the filters, from `run_lists.facets`."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        group = choosing.group_field(facets, "results_group", METHODS, newest=True)
        facets = choosing.same_kind(facets, group)
        with st.popover("Filter", icon=":material/filter_list:"):
            models = choosing.several("Model", sorted(set(facets["model"])), "results_model")
            chosen = choosing.several("Task", sorted(set(facets["task"])), "results_task")
            titles = dict(zip(facets["method"], facets["title"], strict=True))
            methods = choosing.several("Method", list(titles), "results_method", titles=titles)
            present = [status for status in STATUSES if status in set(facets["status"])]
            status = choosing.several("Status", present, "results_status")
    choosing.group_caption(facets, group)
    if active := [*models, *chosen, *(titles[method] for method in methods), *status]:
        st.caption(f":material/filter_list: {wording.plain('only ' + ', '.join(active))}")
    experiment = None if group == choosing.ALL else group
    return Filter(experiment, tuple(models), tuple(chosen), tuple(methods), tuple(status))


def isotropy_field(facets: pd.DataFrame, chosen: Filter) -> list[Metric]:
    """Field for the measures of isotropy in the tables; default: the measure that the methods act on."""
    known = {metric.number_title: metric for metric in measures.of_runs()}
    default = [measures.default_for(chosen.method or choosing.within(facets, chosen.group)["method"]).number_title]
    choosing.follow("results_isotropy", default)
    titles = st.multiselect(
        "Isotropy",
        list(known),
        default=default,
        key="results_isotropy",
        bind="query-params",
        help="Columns of the tables below. The CSV and Parquet files contain all measures.",
    )
    return [metric for title, metric in known.items() if title in titles]


def by_task(chosen: Filter, isotropy: list[Metric]) -> None:
    """A tab for each task, with the metric, the table and all seeds, and one for the list of runs; all are drawn, for saved pages."""
    runs = run_lists.frame(chosen)
    if runs.empty:
        st.info("No run matches these filters. Clear one of them.", icon=":material/filter_alt_off:")
        return
    pivot.section(chosen, runs)
    parts = {str(task): part for task, part in runs.groupby("task", sort=True)}
    tabs = choosing.tabs([*parts, EVERY_RUN], TAB)
    for task, part in parts.items():
        with tabs[task]:
            _task(task, chosen, part, isotropy)
    with tabs[EVERY_RUN]:
        every_run(chosen, isotropy)


def _task(task: str, of: Filter, runs: pd.DataFrame, isotropy: list[Metric]) -> None:
    task_entry = tasks.catalogue().get(task)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.header(wording.plain(f"{task_entry.title} · {task}" if task_entry else task), anchor=False)
        st.space("stretch")
        explanations.show(RESULTS)
    metric = _metric(task, runs)
    ids = [str(run) for run in runs["run"]]
    key = ("task", of, task, metric, tuple(measure.slug for measure in isotropy))
    view = cached(key, lambda: _view_of(task, metric, runs, isotropy, ids))
    run_lists.show_warnings(view.warnings)
    st.dataframe(
        view.on_screen,
        hide_index=True,
        column_config=_column_config(metric, isotropy),
        placeholder="",
        alt=f"Mean {metric} and isotropy per model, method and parameters on {task}, with every seed",
    )
    st.caption(view.clouds)
    for sentence in view.printed:
        st.caption(wording.plain(sentence))
    title = f"{task_entry.title if task_entry else task}: {metric}, mean and sample standard deviation over n seeds"
    notes = (*view.warnings, wording.unmarked(view.clouds), *view.printed)
    exported.note(f"results_{task}", ExportedTable(title, view.on_screen, notes, _places(isotropy)))
    downloads.buttons(
        downloads.file_name("results", task, metric),
        view.in_file,
        latex=lambda: downloads.latex(_joined(view.on_screen, _places(isotropy)), f"{title}.", notes),
    )
    _strip(task, metric, view)
    comparison.section(task, metric, ids)
    if view.association:
        st.markdown(f"**Does isotropy go with performance?** {wording.plain(view.association)}")
        association = ExportedSentences("Does isotropy go with performance?", (view.association,))
        exported.note(f"results_association_{task}", association)


@dataclass(frozen=True)
class _TaskView:
    """A task's section of the page, shared by all visitors until a run changes.

    Attributes:
        warnings: reasons not to compare these runs.
        on_screen, in_file: the table.
        clouds: the clouds of its columns.
        printed: published numbers, one line each.
        setups: number of rows for the figure of seeds; `seeds` shows the first ones, None without values.
        association: a sentence on the correlation of isotropy and metric; empty with too few settings.
    """

    warnings: Sequence[str]
    on_screen: pd.DataFrame
    in_file: pd.DataFrame
    clouds: str
    printed: tuple[str, ...]
    setups: int
    seeds: figure.Prepared | None
    association: str


def _view_of(task: str, metric: str, runs: pd.DataFrame, isotropy: list[Metric], ids: list[str]) -> _TaskView:
    with_metric = tables.with_metric(runs, metric)
    frame = comparison.beside(tables.summary(with_metric), comparison.compared(metric, ids))
    warnings = run_lists.warnings(runs)
    levels = _levels(task, metric, runs)
    published = zip(frame["title"], frame["published"], strict=True)
    setups, strip = seed_strip(with_metric, metric, levels)
    return _TaskView(
        warnings=warnings,
        on_screen=readable(frame, levels, isotropy),
        in_file=run_lists.with_warnings(frame.drop(columns=["setup", "label"]), warnings),
        clouds=_clouds(with_metric, isotropy),
        printed=tuple(f"Published, {title}: {printed}" for title, printed in published if printed),
        setups=setups,
        seeds=figure.prepared(strip) if strip is not None else None,
        association=association(runs, metric, isotropy[0] if isotropy else measures.default_for(runs["method"])),
    )


def association(runs: pd.DataFrame, metric: str, measure: Metric) -> str:
    """Whether isotropy goes with performance over the settings of one task, as a sentence; empty with too few settings for a test."""
    correlation, sentence = associate(tables.association_points(runs, measure.slug, metric), measure.slug, metric)
    return sentence if correlation.p is not None else ""


def _levels(task: str, metric: str, runs: pd.DataFrame) -> list[tuple[str, float]]:
    """The scores of simple approaches that all runs of the task share, in its primary metric."""
    entry = tasks.catalogue().get(task)
    if entry is None or metric != entry.primary:
        return []
    every = [
        baselines for status, baselines in zip(runs["status"], runs["baselines"], strict=True) if status == "finished"
    ]
    common = every[0].items() if every else ()
    return tables.references({name: value for name, value in common if all(one.get(name) == value for one in every)})


def _metric(task: str, runs: pd.DataFrame) -> str:
    reported = list(dict.fromkeys(name for metrics in runs["metrics"] for name in metrics))
    primary = tasks.primary_metric(task, reported)
    names = [primary, *(name for name in reported if name != primary)]
    if len(names) == 1:
        return primary
    selected = st.segmented_control("Metric", names, default=primary, required=True, key=f"metric_{task}")
    return str(selected)


def readable(table: pd.DataFrame, levels: Sequence[tuple[str, float]], isotropy: Sequence[Metric]) -> pd.DataFrame:
    """A table of `comparison.beside` formatted for the screen, with the simple baselines below."""
    names = _headings(isotropy)
    references = [
        {"label": f"({title})", "mean": value, "seeds": "reference score, not a run"} for title, value in levels
    ]
    frame = pd.concat([table, pd.DataFrame(references)], ignore_index=True) if references else table
    idle = [name for name in ("settings", "remarks", "difference", "published") if not table[name].any()]
    if table["model"].nunique() == 1:
        idle.append("model")
    text_columns = ["model", "label", "settings", "difference", "published", "seeds", "remarks"]
    return frame[list(names)].fillna(dict.fromkeys(text_columns, "")).drop(columns=idle).rename(columns=names)


def _joined(table: pd.DataFrame, places: Mapping[str, int]) -> pd.DataFrame:
    """The table of the screen for a paper: each mean with its deviation in one cell, without single seeds."""
    for name in [name for name in map(str, table) if name in places and not name.startswith("±")]:
        sd = "± s" if name == "Mean" else f"± s of {name}"
        both = zip(table[name], table[sd], strict=True)
        table = table.assign(**{name: [comparison.spread(mean, sd, places[name]) for mean, sd in both]}).drop(
            columns=sd
        )
    return table.drop(columns="Each seed")


def _places(isotropy: Sequence[Metric]) -> dict[str, int]:
    """Heading → decimals in a file."""
    places = {"Mean": 3, "± s": 3, "Value": 3, "Seconds": 1}
    for measure in isotropy:
        places |= {measure.heading: measure.decimals, f"± s of {measure.heading}": measure.decimals}
    return places


def _headings(isotropy: Sequence[Metric]) -> dict[str, str]:
    names = dict(COLUMNS)
    for metric in isotropy:
        names |= {metric.slug: metric.heading, f"{metric.slug}_sd": f"± s of {metric.heading}"}
    return names | LAST


def _column_config(metric: str, isotropy: list[Metric]) -> dict[str, Any]:
    number = st.column_config.NumberColumn
    terms = reference.glossary()
    config: dict[str, Any] = {
        "Mean": number(metric, help=terms["mean_over_seeds"].text, **_NUMBER),
        "± s": number("± s", help=terms["sd"].text, **_NUMBER),
        "n": number("n", format="%d", help=terms["n_seeds"].text),
        "Difference": st.column_config.TextColumn("Difference", help=terms["difference"].text),
        "Published": st.column_config.TextColumn("Published", help=terms["published"].text),
        "Each seed": st.column_config.TextColumn("Each seed", help="seed: value", width=300),
    }
    for measure in isotropy:
        decimals_format = f"%.{measure.decimals}f"
        config[measure.heading] = number(measure.heading, help=measures.help_text(measure), format=decimals_format)
        config[f"± s of {measure.heading}"] = number(
            "± s", help=f"Of {measure.number_title}, over the seeds.", format=decimals_format
        )
    return config


def _clouds(runs: pd.DataFrame, isotropy: list[Metric]) -> str:
    """The cloud of each isotropy column, with n and d of the head."""
    measured = runs.dropna(subset=["n", "d"])
    sizes = sorted({f"n = {int(n)}, d = {int(d)}" for n, d in zip(measured["n"], measured["d"], strict=True)})
    by_cloud: dict[str, list[str]] = {}
    for metric in isotropy:
        by_cloud.setdefault(measures.home(metric), []).append(metric.heading)
    descriptions = {
        "head": "head input, on validation rows" + (f" ({'; '.join(sizes)})" if sizes else ""),
        "layers": "all layers' tokens",
        "output": "the output weights",
    }
    return " · ".join(f"{wording.plain(', '.join(names))}: {descriptions[cloud]}" for cloud, names in by_cloud.items())


def _strip(task: str, metric: str, view: _TaskView) -> None:
    if view.seeds is None:
        return
    if view.setups > STRIP_ROWS:
        st.caption(
            f"The first {STRIP_ROWS} of {view.setups:,} rows of the table. Filter by experiment, model or method to see others."
        )
    figure.draw(
        view.seeds,
        key=f"strip_{task}",
        words=f"{metric} of every seed on {task}, by method",
        name=downloads.file_name("isoviz", "seeds", task, metric),
        explanation=charts.SEEDS,
    )


def seed_strip(runs: pd.DataFrame, metric: str, levels: list[tuple[str, float]]) -> tuple[int, go.Figure | None]:
    """Number of rows, and the figure of the first ones; None if no seed has a value."""
    seeds = tables.ordered(tables.newest_per_seed(runs))
    seeds = seeds[seeds["value"].notna()]
    if seeds.empty:
        return 0, None
    setups = list(dict.fromkeys(seeds["setup"]))
    seeds = seeds[seeds["setup"].isin(setups[:STRIP_ROWS])]
    settings = tables.settings_text(runs)
    models = seeds["model"] if seeds["model"].nunique() > 1 else [""] * len(seeds)
    parts = zip(models, seeds["title"], seeds["variant"], seeds["setup"].map(settings), strict=True)
    labels = [" · ".join(filter(None, part)) for part in parts]
    return len(setups), charts.seed_strip(seeds.assign(row=labels), metric, measures.comparing(), levels)


def every_run(chosen: Filter, isotropy: list[Metric]) -> None:
    """The filtered runs, with links."""
    runs = run_lists.frame(chosen)
    if runs.empty:
        return
    st.header("Every run", anchor=False)
    every = {metric.slug: metric.heading for metric in measures.of_runs()}
    columns = ["run", *RUN_COLUMNS, *every, *MORE_RUN_COLUMNS]
    names = RUN_COLUMNS | {metric.slug: metric.heading for metric in isotropy} | MORE_RUN_COLUMNS
    number = st.column_config.NumberColumn
    config: dict[str, Any] = {
        "Run": st.column_config.LinkColumn("Run", display_text=r"run\?id=(.*)"),
        "Value": number(**_NUMBER),
        "Seconds": number(format="%.1f"),
    }
    config |= {
        chosen_metric.heading: number(help=measures.help_text(chosen_metric), format=f"%.{chosen_metric.decimals}f")
        for chosen_metric in isotropy
    }
    shown_columns = [name for name in names if name not in ALIKE or runs[name].nunique() > 1]
    table = runs[shown_columns].rename(columns=names)
    table.insert(0, "Run", runs["run"])
    exported.note("every_run", ExportedTable("Every run", table, places=_places(isotropy)))
    linked = table.head(LISTED).assign(Run=lambda listed: "run?id=" + listed["Run"])
    st.dataframe(linked, hide_index=True, column_config=config, placeholder="", alt="All runs that match the filters")
    if len(table) > LISTED:
        st.caption(f"The newest {LISTED:,} of {len(table):,} runs. Filter, or download a file for all.")
    in_file = cached(("every run", chosen), lambda: run_lists.with_warnings(runs[columns], run_lists.warnings(runs)))
    downloads.buttons("runs", in_file)


def export(page: str, name: str, chosen: Filter, isotropy: list[Metric]) -> None:
    """The page as a file, with the provenance of its runs."""
    runs = run_lists.frame(chosen)
    if not runs.empty:
        counts = ", ".join(f"{count} {status}" for status, count in runs["status"].value_counts().items())
        code = functools.partial(provenance.of_frame, runs, isotropy)
        button.offer(page, name, code=code, about=f"{len(runs)} runs ({counts})")

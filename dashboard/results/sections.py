"""Sections of the Results page: filters, a table and a figure of all seeds per task, and the list of all runs."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from dashboard.components import figure
from dashboard.export import button, provenance
from dashboard.results import comparison, pivot, publication
from dashboard.results.publication import Published
from dashboard.shared import (
    charts,
    choosing,
    downloads,
    explanations,
    exported,
    measures,
    resources,
    run_lists,
    tables,
    wording,
)
from dashboard.shared.explanations import Explanation
from dashboard.shared.exported import ExportedSentences, ExportedTable
from dashboard.shared.run_lists import Filter, cached
from isoviz import reference, tasks
from isoviz.events import Started
from isoviz.metrics.protocol import Metric
from isoviz.runs import citing
from isoviz.runs.comparisons import Table, associate
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

PAGE_RUNS = 200
"""Runs per page of the list. The files contain all runs."""
STRIP_ROWS = 40
"""Most setups in the figure of seeds; more would be unreadable."""
_PAGE = "results_page"
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
    fields = st.columns([2, 1, 1, 1, 1])
    with fields[0]:
        group = choosing.group_field(facets, "results_group", METHODS, newest=True)
    facets = choosing.same_kind(facets, group)
    with fields[1]:
        models = choosing.several("Model", sorted(set(facets["model"])), "results_model")
    with fields[2]:
        chosen = choosing.several("Task", sorted(set(facets["task"])), "results_task")
    with fields[3]:
        titles = dict(zip(facets["method"], facets["title"], strict=True))
        methods = choosing.several("Method", list(titles), "results_method", titles=titles)
    with fields[4]:
        present = [status for status in STATUSES if status in set(facets["status"])]
        status = choosing.several("Status", present, "results_status")
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


def by_task(chosen: Filter, isotropy: list[Metric], *, associations: bool = True) -> None:
    """A tab for each task, with the metric, the table and all seeds, and one for the list of runs; all are drawn, for saved pages.

    Args:
        associations: with the rank correlation, unless a trade-off follows.
    """
    runs = run_lists.frame(chosen)
    if runs.empty:
        st.info("No run matches these filters. Clear one of them.", icon=":material/filter_alt_off:")
        return
    _cite(runs, isotropy)
    pivot.section(chosen, runs)
    parts = {str(task): part for task, part in runs.groupby("task", sort=True)}
    tabs = choosing.tabs([*parts, EVERY_RUN], TAB)
    for task, part in parts.items():
        with tabs[task]:
            _task(task, chosen, part, isotropy, associations)
    with tabs[EVERY_RUN]:
        every_run(chosen, isotropy)


def _task(task: str, of: Filter, runs: pd.DataFrame, isotropy: list[Metric], associations: bool) -> None:
    task_entry = tasks.catalogue().get(task)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.header(wording.plain(f"{task_entry.title} · {task}" if task_entry else task), anchor=False)
        st.space("stretch")
        explanations.show(RESULTS)
    metric = _metric(task, runs)
    ids = [str(run) for run in runs["run"]]
    undecided = comparison.compared(task, metric, ids) is None
    key = ("task", of, task, metric, tuple(measure.slug for measure in isotropy), undecided)
    view = cached(key, lambda: _view_of(task, metric, runs, isotropy, ids))
    table = view.published
    run_lists.show_warnings(table.warnings)
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
    notes = (*table.warnings, wording.unmarked(view.clouds), *view.printed)
    exported.note(f"results_{task}", ExportedTable(title, view.on_screen, notes, _places(isotropy)))
    downloads.buttons(
        downloads.file_name("results", task, metric),
        view.in_file,
        latex=lambda: publication.latex(table),
    )
    _strip(task, metric, view)
    comparison.section(task, metric, ids)
    if associations and view.association:
        st.markdown(f"**Does isotropy go with performance?** {wording.plain(view.association)}")
        association = ExportedSentences("Does isotropy go with performance?", (view.association,))
        exported.note(f"results_association_{task}", association)


@dataclass(frozen=True)
class _TaskView:
    """A task's section of the page, shared by all visitors until a run changes.

    Attributes:
        on_screen, in_file: the table.
        clouds: the clouds of its columns.
        printed: published numbers, one line each.
        setups: number of rows for the figure of seeds; `seeds` shows the first ones, None without values.
        association: a sentence on the correlation of isotropy and metric; empty with too few settings.
    """

    published: Published
    on_screen: pd.DataFrame
    in_file: pd.DataFrame
    clouds: str
    printed: tuple[str, ...]
    setups: int
    seeds: figure.Prepared | None
    association: str


def _view_of(task: str, metric: str, runs: pd.DataFrame, isotropy: list[Metric], ids: list[str]) -> _TaskView:
    with_metric = tables.with_metric(runs, metric)
    compared = comparison.compared(task, metric, ids)
    table = published_table(task, metric, runs, tables.summary(with_metric), isotropy, compared)
    levels = tables.references(table.simple)
    published = zip(table.frame["title"], table.frame["published"], strict=True)
    setups, strip = seed_strip(with_metric, metric, levels)
    return _TaskView(
        published=table,
        on_screen=readable(table),
        in_file=run_lists.with_warnings(table.frame.drop(columns=["setup", "label", "p"]), table.warnings),
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


def published_table(
    task: str,
    metric: str,
    runs: pd.DataFrame,
    summary: pd.DataFrame,
    isotropy: list[Metric],
    compared: Table | str | None,
) -> Published:
    """The task's table for publication; `compared` is the result of `comparison.compared`."""
    firsts = runs[runs["status"] == "finished"].drop_duplicates("setup")["run"]
    library = resources.library()
    starts = [start for run in firsts for start in library.events_of_kind(str(run), Started, limit=1)]
    common = starts[0].baselines.items() if starts else ()
    simple = {name: value for name, value in common if all(start.baselines.get(name) == value for start in starts)}
    task_entry = tasks.catalogue().get(task)
    return Published(
        task=task,
        metric=metric,
        summary=summary,
        isotropy=isotropy,
        parts=compared.parts if isinstance(compared, Table) else (),
        tests=compared.tests if isinstance(compared, Table) else 0,
        why_none=compared if isinstance(compared, str) else "",
        simple=simple if task_entry and metric == task_entry.primary else {},
        rows=(_shared(start.train_rows for start in starts), _shared(start.eval_rows for start in starts)),
        warnings=run_lists.warnings(runs),
    )


def _cite(runs: pd.DataFrame, isotropy: list[Metric]) -> None:
    """BibTeX for the methods, data, models and measures of the runs shown."""
    with st.popover("Cite", icon=":material/format_quote:", key="results_cite", on_change="rerun") as panel:
        if not panel.open:
            return
        slugs = tuple(metric.slug for metric in isotropy)
        cited = zip(runs["model"], runs["task"], runs["method"], strict=True)
        entries = cached(("cite", tuple(runs["run"]), slugs), lambda: citing.bibtex_of(cited, list(slugs)))
        if not entries:
            st.caption("Nothing to cite: these runs use bundled data and models only.")
            return
        st.caption("Methods, tasks, models and measures of the runs shown below.")
        text = "\n\n".join(entries.values()) + "\n"
        downloads.button("BibTeX", lambda: text, "isoviz.bib", key="results_bibtex")
        st.code(text, language="latex", height=320)


def _metric(task: str, runs: pd.DataFrame) -> str:
    reported = list(dict.fromkeys(name for metrics in runs["metrics"] for name in metrics))
    primary = tasks.primary_metric(task, reported)
    names = [primary, *(name for name in reported if name != primary)]
    if len(names) == 1:
        return primary
    selected = st.segmented_control("Metric", names, default=primary, required=True, key=f"metric_{task}")
    return str(selected)


def readable(table: Published) -> pd.DataFrame:
    """The table formatted for the screen, with the simple baselines below."""
    names = _headings(table.isotropy)
    references = [
        {"label": f"({title})", "mean": value, "seeds": "reference score, not a run"}
        for title, value in tables.references(table.simple)
    ]
    frame = pd.concat([table.frame, pd.DataFrame(references)], ignore_index=True) if references else table.frame
    idle = [name for name in ("settings", "remarks", "difference", "published") if not table.frame[name].any()]
    if table.frame["model"].nunique() == 1:
        idle.append("model")
    text_columns = ["model", "label", "settings", "difference", "published", "seeds", "remarks"]
    return frame[list(names)].fillna(dict.fromkeys(text_columns, "")).drop(columns=idle).rename(columns=names)


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
        "head": "classifier input, on validation rows" + (f" ({'; '.join(sizes)})" if sizes else ""),
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


def _shared(values: Iterable[int]) -> int | None:
    """The value that all have; None if they differ or there is none."""
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None


def every_run(chosen: Filter, isotropy: list[Metric]) -> None:
    """All filtered runs, in pages, with links."""
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
    first = _first_of_page(len(runs))
    listed = runs.iloc[first : first + PAGE_RUNS]
    shown_columns = [name for name in names if name not in ALIKE or runs[name].nunique() > 1]
    every_listed = runs[shown_columns].rename(columns=names)
    every_listed.insert(0, "Run", runs["run"])
    exported.note("every_run", ExportedTable("Every run", every_listed, places=_places(isotropy)))
    table = listed[shown_columns].rename(columns=names)
    table.insert(0, "Run", [f"run?id={run}" for run in listed["run"]])
    st.dataframe(table, hide_index=True, column_config=config, placeholder="", alt="All runs that match the filters")
    in_file = cached(("every run", chosen), lambda: run_lists.with_warnings(runs[columns], run_lists.warnings(runs)))
    downloads.buttons("runs", in_file)


def export(page: str, name: str, chosen: Filter, isotropy: list[Metric]) -> None:
    """The page as a file, with the provenance of its runs."""
    runs = run_lists.frame(chosen)
    if not runs.empty:
        counts = ", ".join(f"{count} {status}" for status, count in runs["status"].value_counts().items())
        code = functools.partial(provenance.of_frame, runs, isotropy)
        button.offer(page, name, code=code, about=f"{len(runs)} runs ({counts})")


def _first_of_page(runs: int) -> int:
    """Field for a page, if there are several; returns the index of its first run."""
    pages = math.ceil(runs / PAGE_RUNS)
    if pages == 1:
        return 0
    first = PAGE_RUNS * (min(st.session_state.get(_PAGE, 1), pages) - 1)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"{first + 1:,}–{min(first + PAGE_RUNS, runs):,} of {runs:,} runs", width="content")
        page = st.pagination(pages, key=_PAGE, bind="query-params")
    return PAGE_RUNS * (page - 1)

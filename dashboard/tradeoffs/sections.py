"""Sections of the Trade-offs page: the choice of runs, figures that fill in during a sweep, and the rank correlation."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from dashboard.components import figure
from dashboard.export import button, provenance
from dashboard.shared import (
    charts,
    choosing,
    downloads,
    explanations,
    exported,
    measures,
    menu,
    run_lists,
    tables,
    wording,
)
from dashboard.shared.explanations import Explanation
from dashboard.shared.exported import ExportedTable
from dashboard.shared.run_lists import Filter
from dashboard.shared.stable import while_busy
from isoviz import metrics, tasks
from isoviz.runs.comparisons import associate
from isoviz.runs.examples import SWEEP

ASSOCIATION = Explanation(
    title="Rank correlation",
    reading=(
        "Spearman's ρ is 1 if performance rises whenever isotropy does and −1 if it falls. Each point is a setting averaged over "
        "seeds. Settings are compared only if they differ in nothing but the method and its parameters, so tasks are not "
        "mixed."
    ),
    formula=r"\rho = \operatorname{corr}(\operatorname{rank} x, \operatorname{rank} y)",
    paper="Spearman 1904.",
)


@dataclass(frozen=True)
class Choice:
    """The selection of the figures: one model on one task, a task metric, a measure of isotropy and a parameter.

    Attributes:
        measure: slug of a metric.
    """

    group: str
    model: str
    task: str
    metric: str
    measure: str
    parameter: str
    parameter_label: str


def empty_state() -> None:
    """Shown while the store is empty."""
    choosing.empty_state(
        "Each finished run becomes a point: the isotropy of its embeddings against its task performance. The *λ sweep* "
        "varies isotropy over 24 runs, and the figures fill in as they finish.",
        "lambda-sweep",
        "Start with the λ sweep",
    )


def choose(facets: pd.DataFrame) -> Choice:
    """Widgets to choose the runs; the defaults are those with most runs."""
    fields = st.columns([2, 1, 1, 1, 1, 1])
    with fields[0]:
        group = choosing.group_field(facets, "tradeoffs_group", SWEEP)
    facets = of_group = choosing.within(facets, group)
    with fields[1]:
        model = st.selectbox("Model", _most(facets, "model"), key="tradeoffs_model", bind="query-params")
    facets = facets[facets["model"] == model]
    with fields[2]:
        task = st.selectbox("Task", _most(facets, "task"), key="tradeoffs_task", bind="query-params")
    runs = run_lists.frame(Filter(_experiment(group), (str(model),), (str(task),)))
    with fields[3]:
        entry = tasks.catalogue().get(task)
        declared = [entry.primary, *entry.metrics] if entry else []
        reported = (name for values in runs["metrics"] for name in values)  # such as MNLI's `accuracy_mismatched`
        metric_names = list(dict.fromkeys([*declared, *reported])) or [""]
        metric = st.selectbox("Performance (y)", metric_names, key="tradeoffs_metric", bind="query-params")
    labels = tables.number_parameters(runs)
    with fields[5]:
        parameter = st.selectbox(
            "Parameter",
            list(labels) or [""],
            format_func=lambda name: labels.get(name, "no parameter"),
            key="tradeoffs_parameter",
            bind="query-params",
            help="A numeric parameter of the methods. It colours the points and is the x axis of the two figures below.",
        )
    with fields[4]:
        measure = _measure_field(runs, parameter)
    choosing.group_caption(of_group, group)
    return Choice(group, model, task, metric, measure, parameter, labels.get(parameter, ""))


def _measure_field(runs: pd.DataFrame, parameter: str) -> str:
    """The measure on the x axis; by default the one that methods with this parameter act on.

    No `format_func`, so that the address contains the option's name.
    """
    slugs = {metric.number_title: metric.slug for metric in measures.of_runs()}
    with_it = [method for method, params in zip(runs["method"], runs["params"], strict=True) if parameter in params]
    default = measures.default_for(with_it or runs["method"])
    choosing.follow("tradeoffs_isotropy", default.number_title)
    title = st.selectbox(
        "Isotropy (x)",
        list(slugs),
        index=list(slugs.values()).index(default.slug),
        key="tradeoffs_isotropy",
        bind="query-params",
        help="Any measure that the runs report. Default: the measure of the vectors that the method acts on.",
    )
    return slugs[str(title)]


def _most(facets: pd.DataFrame, column: str) -> list[str]:
    counted = facets.groupby(column, sort=False)["runs"].sum()
    return [str(value) for value in counted.sort_values(ascending=False, kind="stable").index]


def figures(choice: Choice) -> None:
    """The figures, refreshed while runs are queued or running."""
    while_busy(lambda: run_lists.under_way(_filter(choice)) > 0, lambda: _figures(choice))


def _filter(choice: Choice) -> Filter:
    return Filter(_experiment(choice.group), (choice.model,), (choice.task,))


def _experiment(group: str) -> str | None:
    return None if group == choosing.ALL else group


def _figures(choice: Choice) -> None:
    runs = run_lists.frame(_filter(choice))
    measure = metrics.get(choice.measure)
    compared = (choice.metric, choice.measure, choice.parameter or None)
    points = run_lists.cached(("points", choice), lambda: tables.points(tables.ordered(runs), *compared))
    st.caption(_counts(runs, points, choice))
    if points.empty and (runs["status"] == "finished").any():
        st.info("No finished run has both values. Runs of older versions lack newer measures.", icon=":material/block:")
    elif points.empty:
        st.info("The first point appears when the first of these runs finishes.", icon=":material/hourglass_empty:")
    else:
        run_lists.show_warnings(run_lists.warnings(runs))
        _draw(
            "tradeoff", choice, points, lambda: charts.tradeoff(points, choice.metric, measure, choice.parameter_label)
        )
        answers = _associations(choice, runs)
        with st.container(horizontal=True, vertical_alignment="center"):
            explanations.show(charts.TRADEOFF)
            explanations.show(ASSOCIATION, "About the rank correlation")
            explanations.show_metric(measure)
            st.caption("Click a mark to open its run.", width="content")
        if points["at"].nunique() > 1:
            _against(choice, points)
        exported.note(
            "tradeoffs_points", ExportedTable("Points", _as_file(points, choice), (*run_lists.warnings(runs), *answers))
        )
        file = downloads.file_name("isoviz", "tradeoffs", choice.task, choice.metric)
        downloads.buttons(file, lambda: run_lists.with_warnings(_as_file(points, choice), run_lists.warnings(runs)))
        button.offer("Trade-offs", choice.task, code=lambda: provenance.of_frame(runs, [measure]))


def _associations(choice: Choice, runs: pd.DataFrame) -> list[str]:
    """The rank correlation in a sentence, drawn: on this task, and over all tasks of the experiment if there are several."""

    def sentence(of: pd.DataFrame, metric: str | None) -> str:
        return associate(tables.association_points(of, choice.measure, metric), choice.measure, metric).sentence

    on_task = run_lists.cached(("association", choice), lambda: sentence(runs, choice.metric))
    st.markdown(f"**Does isotropy go with performance?** {wording.plain(on_task)}")
    all_runs = run_lists.frame(Filter(_experiment(choice.group)))
    if all_runs.groupby(["model", "task"]).ngroups < 2:
        return [on_task]
    key = ("pooled association", choice.group, choice.measure)
    pooled = run_lists.cached(key, lambda: sentence(all_runs, None))
    over_all = f"All models and tasks, each centred on its own ranks: {pooled}"
    st.markdown(wording.plain(over_all))
    return [on_task, over_all]


def _against(choice: Choice, points: pd.DataFrame) -> None:
    measure = metrics.get(choice.measure)
    lines = points.groupby(points["at"].notna())["line"].nunique().max()
    if lines > charts.MOST_LINES:
        st.caption(f"The first {charts.MOST_LINES} of {lines:,} settings below. Choose one experiment to see others.")
    for place, of_isotropy in zip(st.columns(2), (False, True), strict=True):
        with place:
            label = measures.with_cloud(measure) if of_isotropy else choice.metric
            st.markdown(f"**{wording.plain(label)} against {wording.plain(choice.parameter_label)}**")
            against = functools.partial(
                charts.against_parameter, points, choice.metric, measure, choice.parameter_label
            )
            make = functools.partial(against, of_isotropy=of_isotropy)
            name = f"against_{choice.measure if of_isotropy else 'value'}"
            _draw(name, choice, points, make, charts.PARAMETER, of=label)


def _draw(
    name: str,
    choice: Choice,
    points: pd.DataFrame,
    make: Callable[[], go.Figure],
    explanation: Explanation | None = None,
    of: str = "",
) -> None:
    """Show a figure, `of` one of the two quantities or both. A click on a run's mark opens its page."""
    # keep the zoom as points arrive, reset it when the choice changes
    plot = run_lists.cached(
        ("figure", name, choice), lambda: figure.prepared(make().update_layout(uirevision=repr(choice)))
    )
    title = metrics.get(choice.measure).number_title
    kind = "Trade-off" if name == "tradeoff" else "Against the parameter"
    alt_text = f"{kind}: {of or f'{choice.metric} and {title}'} of {len(points)} runs on {choice.task}"
    saved = downloads.file_name("isoviz", name, choice.task, choice.metric)
    run = figure.draw(
        plot, key=f"tradeoffs_{name}", words=alt_text, name=saved, explanation=explanation, opens_runs=True
    )
    if run:
        st.switch_page(menu.RUN, query_params={"id": run})


def _as_file(points: pd.DataFrame, choice: Choice) -> pd.DataFrame:
    """The figures' points with their coordinates by name."""
    columns = {"value": choice.metric, "isotropy": choice.measure, "at": choice.parameter or "parameter"}
    return points.drop(columns=["line", "setup"]).rename(columns=columns)


def _counts(runs: pd.DataFrame, points: pd.DataFrame, choice: Choice) -> str:
    parts = [f"{len(points)} points of {len(runs)} runs"]
    if waiting := run_lists.under_way(_filter(choice)):
        parts.append(f"{waiting} still to come")
    if left_out := len(runs) - len(points) - run_lists.under_way(_filter(choice)):
        parts.append(f"{left_out} left out: without a result or both values, or repeated (see Results)")
    if collapsed := int((points["collapsed"] != "").sum()):
        parts.append(f"{collapsed} learned nothing (collapsed or undertrained), ringed and in no mean")
    return " · ".join(parts)

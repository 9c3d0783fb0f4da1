"""Results side by side: one setup per cell, with averages over tasks as in the papers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.results.publication import spread
from dashboard.shared import downloads, explanations, exported, run_lists, tables
from dashboard.shared.explanations import Explanation
from dashboard.shared.exported import ExportedTable
from dashboard.shared.run_lists import Filter, cached
from isoviz.statistics import mean_sd
from isoviz.tasks.metrics import METRICS

SIDES = {"task": "Task", "model": "Model", "label": "Method", "variant": "Parameters"}
"""Column of `tables.summary` (`label`: method with parameters) → option for the columns of the table."""
_ROWS = {"model": "Model", "task": "Task", "data": "Data", "label": "Method", "title": "Method", "settings": "Settings"}
AVERAGE = "Average"

PIVOT = Explanation(
    title="Side by side",
    reading=(
        "Each cell is one setup: the mean of each task's own metric over its seeds, ± a standard deviation. Setups that differ in "
        "anything else get separate rows. The average over tasks, as in the papers, needs all of them; its ± is over the "
        "seeds that all tasks share."
    ),
    formula=r"\bar y = \frac{1}{T} \sum_{t=1}^{T} \bar y_t",
    paper="Rudman & Eickhoff 2024, table 1. Zhou et al. 2021, table 1.",
)


def section(chosen: Filter, runs: pd.DataFrame) -> None:
    """The table, and the field for its columns; empty with a single setup."""
    labelled = cached(("pivot", chosen), lambda: runs.assign(label=tables.labels(runs)))
    offered = [name for name in SIDES if labelled[name].nunique() > 1]
    if not offered or runs["setup"].nunique() < 2:
        return
    many = runs["task"].nunique() > 1 or runs["model"].nunique() > 1
    title = "Side by side: models, tasks, methods, parameters"
    with st.expander(
        title, icon=":material/pivot_table_chart:", expanded=many, key="results_pivot", on_change="rerun"
    ) as panel:
        if not panel.open:
            return
        with st.container(horizontal=True, vertical_alignment="bottom"):
            titles = [SIDES[name] for name in offered]
            across = st.segmented_control(
                "Columns", titles, default=titles[0], required=True, key="results_columns", bind="query-params"
            )
            st.space("stretch")
            explanations.show(PIVOT)
        side = next(name for name in offered if SIDES[name] == across)
        table = cached(("pivot", chosen, side), lambda: made(labelled, side))
        warnings = cached(("warnings", chosen), lambda: run_lists.warnings(runs))
        st.dataframe(
            table,
            hide_index=True,
            placeholder="",
            alt=f"Mean and standard deviation of each task's metric, one setup per cell, {across} across",
        )
        exported.note("results_pivot", ExportedTable(title, table, tuple(warnings)))
        caption = "Mean ± sample standard deviation over seeds, by each task's own metric."
        downloads.buttons(
            downloads.file_name("results", "by", across),
            run_lists.with_warnings(table, warnings),
            latex=lambda: downloads.latex_table(
                {downloads.latex_text(str(name)): table[name].fillna("") for name in table},
                caption,
                "l" * len(table.columns),
                label="tab:results",
                notes=warnings,
            ),
        )


def made(runs: pd.DataFrame, side: str) -> pd.DataFrame:
    """The table as text: rows are setups without `side`, columns its values; across tasks or models, also averages over complete rows.

    Args:
        runs: of `tables.runs_frame`, with each task's primary metric in `value`.
    """
    setups = tables.summary(runs).assign(
        data=lambda lines: [json.loads(setup)["data"] or "" for setup in lines["setup"]], label=tables.labels
    )
    counted = tables.newest_per_seed(runs)
    counted = counted[(counted["collapsed"] == "") & counted["value"].notna()]
    seeds: dict[str, dict[int, float]] = {}
    for setup, seed, value in zip(counted["setup"], counted["seed"], counted["value"], strict=True):
        seeds.setdefault(setup, {})[seed] = value
    settings, of_column = _settings(runs, side)
    setups["settings"] = setups["setup"].map(settings)
    left_out = {"task": "title", "model": "title", "label": "title", "variant": "label"}[side]
    rows = [name for name in _ROWS if name not in (side, left_out) and setups[name].nunique() > 1]
    rows = rows or ["model" if side == "label" else "title"]
    values = list(dict.fromkeys(setups[side]))
    metrics = setups.groupby(side, sort=False)["metric"].agg(lambda names: ", ".join(dict.fromkeys(names)))
    headings = {
        value: f"{value} ({', '.join([metrics[value], *of_column.get(value, ())])})"
        if side == "task"
        else value or "none"
        for value in values
    }
    averaged = side == "task" and all(METRICS[name].highest == 1 for name in setups["metric"] if name in METRICS)
    placed: dict[tuple[Any, ...], dict[str, list[dict[str, Any]]]] = {}
    for record in setups.to_dict("records"):
        setup = {str(name): value for name, value in record.items()}
        placed.setdefault(tuple(setup[name] for name in rows), {}).setdefault(setup[side], []).append(setup)
    lines = []
    for key, by_side in placed.items():
        # setups that the table cannot distinguish get separate rows instead of a common mean
        for index in range(max(map(len, by_side.values()))):
            cells = {value: group[index] for value, group in by_side.items() if len(group) > index}
            line: dict[str, Any] = dict(zip((_ROWS[name] for name in rows), key, strict=True))
            line |= {
                headings[value]: (spread(cell["mean"], cell["sd"]) if cell["n"] else "—")
                if (cell := cells.get(value))
                else ""
                for value in values
            }
            if averaged and len(values) > 1:
                complete = len(cells) == len(values) and all(cell["n"] for cell in cells.values())
                line[AVERAGE] = _average([seeds[cell["setup"]] for cell in cells.values()]) if complete else ""
            lines.append(line)
    return pd.DataFrame(lines)


def _settings(runs: pd.DataFrame, side: str) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Setup → settings that distinguish it within its column, and task → settings shared by its whole column.

    A setting shared by all runs of a task goes into the task's heading. As a separate row it would leave the other tasks' cells empty.
    """
    everywhere = tables.settings_text(runs)
    if side != "task":
        return everywhere, {}
    within: dict[str, str] = {}
    shared: dict[str, list[str]] = {}
    for task, part in runs.groupby("task", sort=False):
        settings = tables.settings_text(part)
        within |= settings
        first = next(iter(settings))
        shared[str(task)] = [
            text for text in everywhere[first].split(", ") if text and text not in settings[first].split(", ")
        ]
    return within, shared


def _average(tasks: Sequence[dict[int, float]]) -> str:
    """The mean of the tasks' means; its spread is over the seeds that all tasks share, if at least two."""
    mean = sum(sum(task.values()) / len(task) for task in tasks) / len(tasks)
    shared = set.intersection(*(set(task) for task in tasks))
    _, sd = mean_sd([sum(task[seed] for task in tasks) / len(tasks) for seed in sorted(shared)])
    return spread(mean, sd)

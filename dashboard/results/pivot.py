"""The tasks side by side: one setup per cell, with averages over tasks as in the papers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.results.comparison import spread
from dashboard.shared import downloads, explanations, exported, run_lists, tables
from dashboard.shared.explanations import Explanation
from dashboard.shared.exported import ExportedTable
from dashboard.shared.run_lists import Filter, cached
from isoviz.statistics import mean_sd
from isoviz.tasks.metrics import METRICS

_ROWS = {"model": "Model", "data": "Data", "label": "Method", "settings": "Settings"}
"""Column of `tables.summary` (`label`: method with parameters) → heading."""
AVERAGE = "Average"

PIVOT = Explanation(
    title="Tasks side by side",
    reading=(
        "Each cell is one setup: the mean of each task's own metric over its seeds, ± a standard deviation. Setups that differ in "
        "anything else get separate rows. The average over tasks, as in the papers, needs all of them; its ± is over the "
        "seeds that all tasks share."
    ),
    formula=r"\bar y = \frac{1}{T} \sum_{t=1}^{T} \bar y_t",
    paper="Rudman & Eickhoff 2024, table 1. Zhou et al. 2021, table 1.",
)


def section(chosen: Filter, runs: pd.DataFrame) -> None:
    """The table; empty with a single task."""
    if runs["task"].nunique() < 2:
        return
    with st.expander(PIVOT.title, icon=":material/pivot_table_chart:", expanded=True, key="results_pivot"):
        explanations.show(PIVOT)
        table = cached(("pivot", chosen), lambda: made(runs))
        warnings = cached(("warnings", chosen), lambda: run_lists.warnings(runs))
        alt = "Mean and standard deviation of each task's metric, one setup per cell"
        st.dataframe(table, hide_index=True, placeholder="", alt=alt)
        exported.note("results_pivot", ExportedTable(PIVOT.title, table, tuple(warnings)))
        caption = "Mean ± sample standard deviation over seeds, by each task's own metric."
        downloads.buttons(
            downloads.file_name("results", "by", "task"),
            run_lists.with_warnings(table, warnings),
            latex=lambda: downloads.latex(table, caption, warnings),
        )


def made(runs: pd.DataFrame) -> pd.DataFrame:
    """The table as text: a row for each setup, a column for each task, and averages over complete rows.

    Args:
        runs: of `tables.runs_frame`, with each task's primary metric in `value`.
    """
    within, of_task = _settings(runs)
    setups = tables.summary(runs).assign(
        data=lambda lines: [json.loads(setup)["data"] or "" for setup in lines["setup"]],
        label=tables.labels,
        settings=lambda lines: lines["setup"].map(within),
    )
    counted = tables.newest_per_seed(runs)
    counted = counted[(counted["collapsed"] == "") & counted["value"].notna()]
    seeds: dict[str, dict[int, float]] = {}
    for setup, seed, value in zip(counted["setup"], counted["seed"], counted["value"], strict=True):
        seeds.setdefault(setup, {})[seed] = value
    rows = [name for name in _ROWS if setups[name].nunique() > 1] or ["label"]
    headings = {
        str(task): f"{task} ({', '.join([*dict.fromkeys(names), *of_task[str(task)]])})"
        for task, names in setups.groupby("task", sort=False)["metric"]
    }
    averaged = all(METRICS[name].highest == 1 for name in setups["metric"] if name in METRICS)
    placed: dict[tuple[Any, ...], dict[str, list[dict[str, Any]]]] = {}
    for record in setups.to_dict("records"):
        setup = {str(name): value for name, value in record.items()}
        placed.setdefault(tuple(setup[name] for name in rows), {}).setdefault(setup["task"], []).append(setup)
    lines = []
    for key, by_task in placed.items():
        # setups that the table cannot distinguish get separate rows instead of a common mean
        for index in range(max(map(len, by_task.values()))):
            cells = {task: group[index] for task, group in by_task.items() if len(group) > index}
            line: dict[str, Any] = dict(zip((_ROWS[name] for name in rows), key, strict=True))
            line |= {
                heading: (spread(cell["mean"], cell["sd"]) if cell["n"] else "—") if (cell := cells.get(task)) else ""
                for task, heading in headings.items()
            }
            if averaged and len(headings) > 1:
                complete = len(cells) == len(headings) and all(cell["n"] for cell in cells.values())
                line[AVERAGE] = _average([seeds[cell["setup"]] for cell in cells.values()]) if complete else ""
            lines.append(line)
    return pd.DataFrame(lines)


def _settings(runs: pd.DataFrame) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Setup → settings that distinguish it within its task, and task → settings shared by all its runs.

    A setting shared by all runs of a task goes into the task's heading. As a separate row it would leave the other tasks' cells empty.
    """
    everywhere = tables.settings_text(runs)
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

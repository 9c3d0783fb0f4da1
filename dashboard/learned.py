"""The banner of runs that learned nothing: the same on every page, and in every file, that compares them."""

from __future__ import annotations

import pandas as pd

from dashboard import wording
from isoviz.comparisons import nothing_learned

COLUMN = "warning"
"""In files: the heading of the column that repeats the banner."""


def warnings(runs: pd.DataFrame) -> list[str]:
    """One sentence for each model on a task of which no run beats the best simple approach.

    Args:
        runs: of `tables.runs_frame`, with the primary metric of each task in `value`.
    """
    finished = runs[runs["status"] == "finished"]
    found: dict[tuple[str, ...], str] = {}
    for key, part in finished.groupby(["model", "task", "data"], sort=False):
        simple = {name: value for run in part["baselines"] for name, value in run.items()}
        scores = [metrics.get(part["primary"].iloc[0]) for metrics in part["metrics"]]
        if warning := nothing_learned(str(part["task"].iloc[0]), scores, simple):
            found[tuple(map(str, key))] = warning
    if finished.groupby(["model", "task", "data"]).ngroups == 1:
        return list(found.values())
    return [f"{model} on {task}: {warning}" for (model, task, _), warning in found.items()]


def banner(runs: pd.DataFrame) -> None:
    """Show the warnings, each in a box."""
    import streamlit as st

    for warning in warnings(runs):
        st.warning(wording.plain(warning), icon=":material/error:")


def in_file(table: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """A table for a file, with the warnings repeated in a column where there are any."""
    text = " ".join(warnings(runs))
    return table.assign(**{COLUMN: text}) if text else table

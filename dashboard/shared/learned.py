"""The warning about runs that learned nothing, for every page and file that compares them."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from dashboard.shared import wording
from isoviz.comparisons import nothing_learned

COLUMN = "warning"
"""Heading of the column with the warning in files."""


def warnings(runs: pd.DataFrame) -> list[str]:
    """One sentence for each model and task without a run that beats the best simple approach.

    Args:
        runs: from `tables.runs_frame`, with each task's primary metric in `value`.
    """
    columns = ("status", "model", "task", "data", "primary", "metrics", "baselines")
    scores: dict[tuple[str, str, str], list[float | None]] = {}
    simple: dict[tuple[str, str, str], dict[str, float | None]] = {}
    for status, model, task, data, primary, metrics, baselines in zip(*(runs[name] for name in columns), strict=True):
        if status == "finished":
            scores.setdefault((model, task, data), []).append(metrics.get(primary))
            simple.setdefault((model, task, data), {}).update(baselines)
    sentences = {key: nothing_learned(key[1], values, simple[key]) for key, values in scores.items()}
    if len(sentences) == 1:
        return [warning for warning in sentences.values() if warning]
    return [f"{model} on {task}: {warning}" for (model, task, _), warning in sentences.items() if warning]


def banner(warnings: Sequence[str]) -> None:
    """Show each warning in a box."""
    for warning in warnings:
        st.warning(wording.plain(warning), icon=":material/error:")


def in_file(table: pd.DataFrame, warnings: Sequence[str]) -> pd.DataFrame:
    """A table for a file, with the warnings in a column if there are any."""
    text = " ".join(warnings)
    return table.assign(**{COLUMN: text}) if text else table

"""A task's rows before launch: counts and first rows."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard.shared import wording
from isoviz.tasks.protocol import TRAIN, DataReport, Task

FEW = 120
"""Fewer validation rows cannot show differences below 0.05, so they get no check mark."""


def counts(task: Task, report: DataReport) -> None:
    """Rows per split with labels, and warnings."""
    for split, count in report.rows.items():
        labels = ", ".join(f"{name} {number:,}" for name, number in report.labels[split].items())
        sample = f" (in a sample of {report.looked_at[split]:,})" if labels and report.looked_at[split] < count else ""
        counted = f"{sample}: {wording.plain(labels)}" if labels else ""
        few = split != TRAIN and count < FEW
        icon = "warning" if few else "check_circle"
        st.markdown(f":material/{icon}: **{wording.plain(split)}** {count:,} rows{counted}")
    if part := sampled(report):
        st.caption(f":material/info: Checked here: {part}. Every row is checked before a run starts.")
    for note in report.notes:
        st.caption(f":material/info: {wording.plain(note)}")


def sampled(report: DataReport) -> str:
    """Long splits and their sample sizes; empty if all rows were read."""
    return "; ".join(
        f"of {wording.plain(split)}, the first rows and a random sample, {report.looked_at[split]:,} of {count:,}"
        for split, count in report.rows.items()
        if report.looked_at[split] < count
    )


def draw(task: Task, report: DataReport) -> None:
    """First rows per split."""
    for split, rows in report.preview.items():
        st.caption(f"First rows of {wording.plain(split)}")
        st.dataframe(_named(task, rows), hide_index=True, alt=f"First rows of the {split} split")


def _named(task: Task, rows: list[dict[str, object]]) -> pd.DataFrame:
    """Rows with class names."""
    frame = pd.DataFrame(rows)
    if task.label_names and "label" in frame:
        frame["label"] = [task.label_names[int(code)] for code in frame["label"]]
    return frame

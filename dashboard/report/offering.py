"""The button of a page that has a report: the page as one HTML file."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import streamlit as st

from dashboard.report import of_runs, saved_page
from dashboard.report.document import Document
from dashboard.shared import run_lists
from dashboard.shared.run_lists import Filter
from isoviz.metrics.protocol import Metric


def button(page: str, make: Callable[[], Document], name: str, *, key: str) -> None:
    """The button; the file is made on download.

    Args:
        page: title of the page.
        name: file name without extension.
        key: prefix of the button's key.
    """
    saved_page.button(page, name, lambda address: saved_page.restored(make(), address), key=f"{key}_html")


def selection(page: str, run_filter: Filter, name: str, isotropy: Sequence[Metric], *, key: str) -> None:
    """The button for the report of an experiment or of filtered runs, with the page's measures and metrics."""
    chosen = {task: st.session_state.get(f"metric_{task}") for task in run_lists.frame(run_filter)["task"].unique()}
    metrics = {task: metric for task, metric in chosen.items() if metric}
    button(page, functools.partial(of_runs.document, run_filter, name, isotropy, metrics), name, key=key)

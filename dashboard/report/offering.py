"""Download buttons of a page that has a report: the page as one HTML file, or Markdown with figures."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import streamlit as st

from dashboard.report import markdown_file, of_runs, saved_page
from dashboard.report.document import Document
from dashboard.shared import actions, downloads, run_lists, wording
from dashboard.shared.run_lists import Filter
from isoviz.metrics.protocol import Metric


def buttons(page: str, make: Callable[[], Document], name: str, *, key: str) -> None:
    """Buttons for both formats; files are made on download.

    Args:
        page: title of the page.
        name: file name without extension.
        key: prefix of the buttons' keys.
    """
    with st.container(horizontal=True, vertical_alignment="center"):
        saved_page.button(page, name, lambda address: saved_page.restored(make(), address), key=f"{key}_html")
        if not markdown_file.can_draw():
            st.caption(f"The report as Markdown with PNG files {markdown_file.NO_BROWSER}.")
            return
        refusal = actions.refusal()  # because it starts a browser on the server
        downloads.button(
            "Report (Markdown, PNG)",
            lambda: markdown_file.render(make()),
            f"{downloads.file_name('report', name)}.zip",
            key=f"{key}_markdown",
            icon="folder_zip",
            disabled=refusal is not None,
            help=wording.plain(refusal or "A zip with report.md, each figure as PNG, each table as CSV."),
        )


def selection(page: str, run_filter: Filter, name: str, isotropy: Sequence[Metric], *, key: str) -> None:
    """Buttons for the report of an experiment or of filtered runs, with the page's measures and metrics."""
    chosen = {task: st.session_state.get(f"metric_{task}") for task in run_lists.frame(run_filter)["task"].unique()}
    metrics = {task: metric for task, metric in chosen.items() if metric}
    buttons(page, functools.partial(of_runs.document, run_filter, name, isotropy, metrics), name, key=key)

"""Download buttons for a report: one HTML file, or Markdown with figures."""

from __future__ import annotations

import functools
from collections.abc import Callable

import streamlit as st

from dashboard.report import html_file, markdown_file, of_runs
from dashboard.report.document import Document
from dashboard.shared import actions, downloads, wording
from dashboard.shared.run_lists import Filter


def buttons(make: Callable[[], Document], name: str, *, key: str) -> None:
    """Buttons for both formats; files are made on download.

    Args:
        name: file name without extension.
        key: prefix of the buttons' keys.
    """
    stem = downloads.file_name("report", name)
    with st.container(horizontal=True, vertical_alignment="center"):
        downloads.button(
            "Report (HTML)",
            functools.partial(_html, make),
            f"{stem}.html",
            key=f"{key}_html",
            icon="description",
            help="One file with interactive figures, tables, provenance and citations. Needs no network.",
        )
        if not markdown_file.can_draw():
            st.caption(f"The report as Markdown with PNG files {markdown_file.NO_BROWSER}.")
            return
        refusal = actions.refusal()  # because it starts a browser on the server
        downloads.button(
            "Report (Markdown, PNG)",
            functools.partial(_markdown, make),
            f"{stem}.zip",
            key=f"{key}_markdown",
            icon="folder_zip",
            disabled=refusal is not None,
            help=wording.plain(refusal or "A zip with report.md, each figure as PNG, each table as CSV."),
        )


def selection(run_filter: Filter, name: str, *, key: str) -> None:
    """Buttons for the report of an experiment or of filtered runs."""
    buttons(functools.partial(of_runs.document, run_filter, name), name, key=key)


def _html(make: Callable[[], Document]) -> bytes:
    return html_file.render(make()).encode()


def _markdown(make: Callable[[], Document]) -> bytes:
    return markdown_file.render(make())

"""The buttons that give a report: one HTML file, or Markdown with pictures."""

from __future__ import annotations

import functools
from collections.abc import Callable

import streamlit as st

from dashboard import actions, downloads, wording
from dashboard.report import html_file, markdown_file, of_runs
from dashboard.report.document import Document
from dashboard.run_lists import Filter


def buttons(make: Callable[[], Document], name: str, *, key: str) -> None:
    """Both kinds, made when one is pressed.

    Args:
        name: of the files, without an ending.
        key: of the buttons.
    """
    stem = downloads.file_name("report", name)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button(
            "Report (HTML)",
            functools.partial(_html, make),
            f"{stem}.html",
            "text/html",
            key=f"{key}_html",
            icon=":material/description:",
            on_click="ignore",
            help="One file with interactive figures, tables, provenance and citations. Needs no network.",
        )
        if not markdown_file.can_draw():
            st.caption(f"The report as Markdown with PNG files {markdown_file.NO_BROWSER}.")
            return
        refused = actions.why_not()  # it starts a browser on the server
        st.download_button(
            "Report (Markdown, PNG)",
            functools.partial(_markdown, make),
            f"{stem}.zip",
            "application/zip",
            key=f"{key}_markdown",
            icon=":material/folder_zip:",
            on_click="ignore",
            disabled=refused is not None,
            help=wording.plain(refused or "A zip with report.md, each figure as PNG, each table as CSV."),
        )


def selection(chosen: Filter, name: str, *, key: str) -> None:
    """Of an experiment, or of the runs that a page's filters leave."""
    buttons(functools.partial(of_runs.document, chosen, name), name, key=key)


def _html(make: Callable[[], Document]) -> bytes:
    return html_file.render(make()).encode()


def _markdown(make: Callable[[], Document]) -> bytes:
    return markdown_file.render(make())

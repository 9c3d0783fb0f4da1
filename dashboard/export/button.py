"""The button that exports what the current page shows as one HTML file, with its address, its code and, on request, its vectors."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final
from urllib.parse import urlencode

import streamlit as st

from dashboard.export import html
from dashboard.shared import downloads, exported, wording
from dashboard.shared.exported import Entry, ExportedVectors
from isoviz import __version__
from isoviz.vectors.embedded import MOST_DIMENSIONS, MOST_ROWS

KEY: Final = "export"
"""Of the button; those of its fields begin with it."""
_ENGINE = 0.4
"""Megabytes of what computes in a file with vectors."""


def offer(
    page: str, name: str, *, code: Callable[[], Mapping[str, str]] = dict, about: str = "", title: str = ""
) -> None:
    """The download button, with the fields of what the file contains. Nothing if the page shows nothing.

    Args:
        page: title of the page.
        name: what it shows, for the file's name.
        code: makes the texts to copy, by title: where the numbers come from, what computes the same, citations.
        about: what the file contains, before its date and version.
        title: of the file; empty for one from the page and what it shows.
    """
    entries = exported.entries()
    if not entries:
        return
    query = [(field, value) for field in st.query_params for value in st.query_params.get_all(field)]
    address = f"/{page.lower().replace('-', '')}?{urlencode(query)}".rstrip("?")
    about = ", ".join(filter(None, (about, time.strftime("%Y-%m-%d"), f"isoviz {__version__}")))

    def make() -> str:
        texts = contents.get("texts", True)
        kept = [entry for entry in entries if texts or not getattr(entry, "private", False)]
        inside: dict[str, Any] = {"address": address}
        if contents.get("vectors"):
            inside |= html.vectors_inside(entries, texts=texts)
        heading = title or (f"{page}: {name}" if name else page)
        return html.render(
            heading, about, kept, {**code(), "Restores this page in the app": address}, inside, texts=texts
        )

    with st.container(horizontal=True, vertical_alignment="center", width="content"):
        downloads.button(
            "Save as one page",
            make,
            f"{downloads.file_name('isoviz', page.lower(), name)}.html",
            key=KEY,
            icon="draft",
            help="Figures, tables, provenance and citations of this page in one HTML file. Figures stay interactive; it needs no network.",
        )
        contents = _contents(entries)


def _contents(entries: Collection[Entry]) -> dict[str, bool]:
    """Fields: whether the file has the page's vectors, and texts."""
    entry = next((entry for entry in entries if isinstance(entry, ExportedVectors)), None)
    if entry is None:
        private = any(getattr(entry, "private", False) for entry in entries)
        help_text = "Questions and documents are texts of yours; without them, the file has numbers only."
        return {"texts": st.toggle("Include the texts", key=f"{KEY}_texts", help=help_text)} if private else {}
    found = entry.vectors
    fits = found.n <= MOST_ROWS and found.d <= MOST_DIMENSIONS
    size = found.points.nbytes * 4 / 3e6
    with_vectors = st.toggle(
        f"Include the vectors ({size + _ENGINE:.1f} MB)",
        key=f"{KEY}_vectors",
        disabled=not fits,
        help=f"{wording.plain(found.name)}. Whoever opens the file can try transforms on them, and load them into the app."
        if fits
        else f"A page takes up to {MOST_ROWS:,} × {MOST_DIMENSIONS:,} numbers.",
    )
    with_texts = "text" not in found.columns or st.toggle(
        "Include the texts",
        value=True,
        key=f"{KEY}_texts",
        help="The texts of rows, in figures and beside the vectors.",
    )
    return {"vectors": fits and with_vectors, "texts": with_texts}

"""The current page as one HTML file without a server: its figures and tables with their explanations, its address and its code."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Collection, Mapping
from importlib.metadata import version
from typing import Any
from urllib.parse import urlencode

import numpy as np
import plotly.io
import streamlit as st

from dashboard.report import html_file
from dashboard.report.document import Block, Code, Document, Numbers, Paragraph, Picture
from dashboard.shared import downloads, shown
from dashboard.shared.shown import ShownFigure, ShownTable

_FEW = 5_000
"""Points up to which a map is drawn without WebGL, which a quarter of plotly.js suffices for."""


def offer(page: str, name: str, *, code: Callable[[], Mapping[str, str]] = dict, key: str) -> None:
    """A download button for what the page shows.

    Args:
        page: title of the page.
        name: what it shows, for the file's name.
        code: makes what computes the same: titles and texts.
        key: of the button.
    """
    entries = shown.entries()
    if not entries:
        return
    address = f"/{page.lower().replace('-', '')}?{urlencode(st.query_params.to_dict())}".rstrip("?")
    downloads.button(
        "Save as one page",
        lambda: html_file.render(document(page, name, entries, address, code())),
        f"{downloads.file_name('isoviz', page.lower(), name)}.html",
        key=key,
        icon="draft",
        help="The figures and tables of this page in one HTML file: they stay interactive and need no network.",
    )


def document(
    page: str, name: str, entries: Collection[ShownFigure | ShownTable], address: str, code: Mapping[str, str]
) -> Document:
    """The file's content. `address`: restores the page in the app."""
    about = f"{time.strftime('%Y-%m-%d')}, isoviz {version('isoviz')}"
    blocks: list[Block] = []
    for entry in entries:
        blocks += _picture(entry) if isinstance(entry, ShownFigure) else [_numbers(entry)]
    blocks += [Code("Restores this page in the app", address)]
    blocks += [Code(title, text) for title, text in code.items()]
    return Document(f"{page}: {name}" if name else page, about, tuple(blocks))


def _picture(entry: ShownFigure) -> list[Block]:
    spec = json.loads(entry.spec)
    maps = [trace for trace in spec["data"] if trace.get("type") == "scattergl"]
    if sum(_length(trace["x"]) for trace in maps) <= _FEW:
        for trace in maps:
            trace["type"] = "scatter"
    figure = plotly.io.from_json(json.dumps(spec), skip_invalid=True)
    notes = list(entry.notes)
    if entry.explanation is not None:
        told = entry.explanation
        notes.append(" ".join(filter(None, (told.reading, told.formula_text, told.paper))))
    title = entry.title or (entry.explanation.title if entry.explanation else "") or entry.words
    return [
        Picture(title[:1].upper() + title[1:], figure, entry.words),
        *(Paragraph(text, "note") for text in notes if text),
    ]


def _length(values: Any) -> int:
    """Of a list, or of an array as plotly writes it: its bytes in base64."""
    if not isinstance(values, dict):
        return len(values)
    return len(base64.b64decode(values["bdata"])) // np.dtype(values["dtype"]).itemsize


def _numbers(entry: ShownTable) -> Numbers:
    frame = entry.table() if callable(entry.table) else entry.table
    return Numbers(entry.title, frame, entry.notes)

"""The current page as one HTML file without a server: its figures and tables with their explanations, its address and its code,
and, if the visitor wants, the vectors that it is about."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from importlib.metadata import version
from typing import Any
from urllib.parse import urlencode

import numpy as np
import plotly.io
import streamlit as st
from numpy.typing import NDArray

from dashboard.report import html_file
from dashboard.report.document import Block, Code, Document, Heading, Matrix, Numbers, Paragraph, Picture
from dashboard.shared import downloads, explanations, shown, wording
from dashboard.shared.explanations import Explanation
from dashboard.shared.shown import Entry, ShownFigure, ShownMatrix, ShownTable, ShownVectors
from isoviz.vectors.embedded import MOST_DIMENSIONS, MOST_ROWS, embedded
from isoviz.vectors.sets import VectorSet

_FEW = 5_000
"""Points up to which a map is drawn without WebGL, which a quarter of plotly.js suffices for."""
_MAP_HEIGHT = 560
"""In pixels, as on a page with one map."""
_ENGINE = 0.4
"""Megabytes of what computes in a file with vectors."""
_MOST_OF_LAYERS = 100.0
"""Megabytes of the vectors of all layers that a file takes."""


def offer(page: str, name: str, *, code: Callable[[], Mapping[str, str]] = dict, key: str) -> None:
    """A download button for what the page shows, with the fields of what the file contains.

    Args:
        page: title of the page.
        name: what it shows, for the file's name.
        code: makes the texts to copy, by title: where the numbers come from, what computes the same, citations.
        key: of the button.
    """
    entries = shown.entries()
    if not entries:
        return
    with st.container(horizontal=True, vertical_alignment="center", width="content"):
        button(page, name, lambda address: document(page, name, entries, address, code(), **contents), key=key)
        contents = _contents(entries, key)


def button(page: str, name: str, make: Callable[[str], Document], *, key: str) -> None:
    """The download button of a page. `make`: the file's content, from the address that restores the page."""
    query = [(field, value) for field in st.query_params for value in st.query_params.get_all(field)]
    address = f"/{page.lower().replace('-', '')}?{urlencode(query)}".rstrip("?")
    downloads.button(
        "Save as one page",
        lambda: html_file.render(make(address)),
        f"{downloads.file_name('isoviz', page.lower(), name)}.html",
        key=key,
        icon="draft",
        help="Figures, tables, provenance and citations of this page in one HTML file. Figures stay interactive; it needs no network.",
    )


def _contents(entries: Collection[Entry], key: str) -> dict[str, bool]:
    """Fields: whether the file has the page's vectors, those of all layers, and texts."""
    entry = next((entry for entry in entries if isinstance(entry, ShownVectors)), None)
    if entry is None:
        return {}
    found, count = entry.vectors, len(entry.layers)
    fits = found.n <= MOST_ROWS and found.d <= MOST_DIMENSIONS
    size = found.points.nbytes * 4 / 3e6
    with_vectors = st.toggle(
        f"Include the vectors ({size + _ENGINE:.1f} MB)",
        key=f"{key}_vectors",
        disabled=not fits,
        help=f"{wording.plain(found.name)}. Whoever opens the file can try transforms on them, and load them into the app."
        if fits
        else f"A page takes up to {MOST_ROWS:,} × {MOST_DIMENSIONS:,} numbers.",
    )
    small = count * size <= _MOST_OF_LAYERS
    with_layers = count > 1 and st.toggle(
        f"All {count} layers ({count * size + _ENGINE:.1f} MB)",
        key=f"{key}_layers",
        disabled=not (fits and with_vectors and small),
        help="Whoever opens the file can switch between the layers. It needs the vectors."
        if small
        else f"A page takes up to {_MOST_OF_LAYERS:.0f} MB of all layers.",
    )
    with_texts = "text" not in found.columns or st.toggle(
        "Include the texts",
        value=True,
        key=f"{key}_texts",
        help="The texts of rows, in figures and beside the vectors.",
    )
    with_vectors = fits and with_vectors
    return {"vectors": with_vectors, "layers": with_vectors and with_layers and small, "texts": with_texts}


def document(
    page: str,
    name: str,
    entries: Collection[Entry],
    address: str,
    code: Mapping[str, str],
    *,
    vectors: bool = False,
    layers: bool = False,
    texts: bool = True,
) -> Document:
    """The file's content.

    Args:
        address: restores the page in the app.
        code: texts to copy, by title.
        vectors, layers, texts: with the vectors that the page is about, those of all layers, and the texts of rows.
    """
    blocks: list[Block] = [Heading("Figures and tables")]
    inside: dict[str, Any] = {}
    for entry in entries:
        if isinstance(entry, ShownFigure):
            blocks += _picture(entry, texts)
        elif isinstance(entry, ShownMatrix):
            blocks += _explained(Matrix(explanations.MATRIX.title, entry.make()), [entry.words], explanations.MATRIX)
        elif isinstance(entry, ShownTable):
            blocks.append(Numbers(entry.title, entry.table() if callable(entry.table) else entry.table, entry.notes))
        elif vectors:
            inside = {**embedded(entry.vectors, texts=texts), "transforms": entry.transforms}
            if layers:
                inside["layers"] = [_layer(number, make(), entry.vectors) for number, make in entry.layers.items()]
    if code:
        blocks += [Heading("Provenance"), *(Code(title, text) for title, text in code.items() if text)]
    about = f"{time.strftime('%Y-%m-%d')}, isoviz {version('isoviz')}"
    return restored(Document(f"{page}: {name}" if name else page, about, tuple(blocks), inside), address)


def restored(document: Document, address: str) -> Document:
    """The document with the address that restores its page in the app."""
    blocks = (*document.blocks, Code("Restores this page in the app", address))
    return replace(document, blocks=blocks, inside={"address": address, **document.inside})


def _layer(number: int, vectors: VectorSet, chosen: VectorSet) -> dict[str, Any]:
    """A layer's number, and its vectors unless the page has them as the chosen ones."""
    inside = {} if vectors.name == chosen.name else embedded(vectors, texts=False)
    return {"layer": number, **{name: inside[name] for name in ("name", "npy") if inside}}


def _picture(entry: ShownFigure, texts: bool) -> list[Block]:
    spec = json.loads(entry.spec)
    if entry.frames:
        _add_frames(spec, entry)
    if entry.of_rows:
        spec["layout"].setdefault("height", _MAP_HEIGHT)
    maps = [trace for trace in spec["data"] if trace.get("type") == "scattergl"]
    if sum(len(_array(trace["x"])) for trace in maps) <= _FEW:
        moving = [trace for frame in spec.get("frames", ()) for trace in frame["data"]]
        for trace in [*maps, *moving]:
            trace["type"] = "scatter"
    for trace in spec["data"] if entry.of_rows else ():
        if not texts or isinstance(trace.get("customdata"), dict):  # numbers, with which the app requests texts
            for field in ("text", "hovertext", "customdata", "hovertemplate"):
                trace.pop(field, None)
    figure = plotly.io.from_json(json.dumps(spec), skip_invalid=True)
    title = entry.title or (entry.explanation.title if entry.explanation else "") or entry.words
    return _explained(Picture(title[:1].upper() + title[1:], figure, entry.words), entry.notes, entry.explanation)


def _explained(block: Picture | Matrix, notes: Collection[str], explanation: Explanation | None) -> list[Block]:
    parts = (explanation.reading, explanation.formula_text, explanation.paper) if explanation else ()
    reading = " ".join(f"{part.removesuffix('.')}." for part in parts if part)
    return [block, *(Paragraph(text, "note") for text in (*notes, reading) if text)]


def _add_frames(spec: dict[str, Any], entry: ShownFigure) -> None:
    """A film as plotly's frames; `meta` of the layout is the one that the figure shows."""
    moving = {number: trace for number, trace in enumerate(spec["data"]) if trace.get("meta") is not None}
    shape = (len(entry.frames), -1, 2)
    paths = [_array(trace.pop("meta")).reshape(shape).astype(float).round(4) for trace in moving.values()]
    kinds = [trace["type"] for trace in moving.values()]
    spec["layout"]["meta"] = entry.frame
    spec["frames"] = [
        {
            "name": name,
            "traces": list(moving),
            "data": [
                {"type": kind, "x": path[layer, :, 0].tolist(), "y": path[layer, :, 1].tolist()}
                for kind, path in zip(kinds, paths, strict=True)
            ],
        }
        for layer, name in enumerate(entry.frames)
    ]


def _array(values: Any) -> NDArray[Any]:
    """Of a list, or of an array as plotly writes it: its bytes in base64."""
    if not isinstance(values, dict):
        return np.asarray(values)
    return np.frombuffer(base64.b64decode(values["bdata"]), dtype=values["dtype"])

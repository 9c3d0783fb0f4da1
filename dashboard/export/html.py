"""What a page shows as one self-contained HTML file: interactive figures, tables, texts to copy, and vectors."""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from numpy.typing import NDArray
from plotly.io.json import to_json_plotly

from dashboard.components import bundle, matrix
from dashboard.components.figure import BASIC
from dashboard.components.lab import source as lab
from dashboard.components.playground import source
from dashboard.export import standalone
from dashboard.shared import downloads, explanations
from dashboard.shared.explanations import Explanation
from dashboard.shared.exported import (
    Entry,
    ExportedFigure,
    ExportedMatrix,
    ExportedSentences,
    ExportedTable,
    ExportedVectors,
)
from isoviz.formatting import decimals, number
from isoviz.vectors.embedded import embedded

_FEW = 5_000
"""Points up to which a map is drawn without WebGL, which a quarter of plotly.js suffices for."""
_MAP_HEIGHT = 560
"""In pixels, as on a page with one map."""
_HEIGHT = 420
"""In pixels, of a figure that states none."""


def render(
    title: str,
    about: str,
    entries: Iterable[Entry],
    code: Mapping[str, str] = MappingProxyType({}),
    inside: Mapping[str, Any] = MappingProxyType({}),
    *,
    texts: bool = True,
) -> str:
    """The HTML file. User text is escaped.

    Args:
        about: one line on content, date and version.
        code: texts to copy, by title.
        inside: what the file tells the app in which it is opened: `address`, which restores the page; with its vectors also what
            `isoviz.vectors.embedded` returns, and `transforms`, which the page's own engine begins with.
        texts: with the texts of rows in figures.
    """
    blocks = [_block(entry, texts) for entry in entries if not isinstance(entry, ExportedVectors)]
    traces = [trace for block in blocks if block["kind"] == "figure" for trace in block["spec"]["data"]]
    matrices = any(block["kind"] == "matrix" for block in blocks)
    vectors = "npy" in inside
    styles = [bundle(matrix.CSS)] * matrices + [source.styles(), lab.styles()] * vectors
    return str(
        _template().render(
            title=title,
            about=about,
            blocks=blocks,
            code={name: text for name, text in code.items() if text},
            inside=inside,
            script=_plotly({trace["type"] for trace in traces} <= BASIC) if traces else "",
            styles=Markup("\n".join(styles)),
            light=Markup(standalone.colours("light")),
            dark=Markup(standalone.colours("dark")),
            matrix=Markup(bundle(matrix.HTML)),
            matrices=Markup(bundle(*matrix.SCRIPTS)) if matrices else "",
            vectors=Markup(f"{source.script()}\n{lab.script()}") if vectors else "",
            words=Markup(standalone.inert(source.words())),
            data=Markup(standalone.inert(dict(inside))),
        )
    )


@functools.cache
def _template() -> Any:
    # everything is escaped except our script and plotly's
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined
    )
    environment.filters |= {"to_json": to_json_plotly, "file_name": downloads.file_name}
    return environment.get_template("page.html.j2")


@functools.cache
def _plotly(basic: bool) -> Markup:
    """plotly.js: the basic bundle, a quarter of the size, if it supports all figures."""
    if basic:
        script = (Path(__file__).parent.parent / "plotly_basic" / "plotly-basic.min.js").read_text(encoding="utf-8")
    else:
        from plotly.offline import get_plotlyjs

        script = str(get_plotlyjs())
    # the end tag only occurs inside strings, where both are equivalent
    return Markup(script.replace("</script", "<\\/script"))


def vectors_inside(entries: Collection[Entry], *, texts: bool) -> dict[str, Any]:
    """The vectors that the page is about, as a file has them; with texts on request."""
    inside: dict[str, Any] = {}
    for entry in entries:
        if isinstance(entry, ExportedVectors):
            inside = {**embedded(entry.vectors, texts=texts), "transforms": entry.transforms}
    return inside


def _block(entry: Entry, texts: bool) -> dict[str, Any]:
    """What the template shows of an entry."""
    match entry:
        case ExportedFigure():
            spec = figure_spec(entry, texts=texts)
            title = entry.title or (entry.explanation.title if entry.explanation else "") or entry.words
            block = {"kind": "figure", "title": title[:1].upper() + title[1:], "words": entry.words, "spec": spec}
            notes = (*entry.notes, _reading(entry.explanation))
            return block | {"height": spec["layout"].get("height", _HEIGHT), "notes": notes}
        case ExportedMatrix():
            notes = (entry.words, _reading(explanations.MATRIX))
            return {"kind": "matrix", "title": explanations.MATRIX.title, "inside": entry.make(), "notes": notes}
        case ExportedTable():
            frame = entry.table() if callable(entry.table) else entry.table
            header = [str(name) for name in frame.columns]
            places = [entry.places.get(name) for name in header]
            rows = [
                [_cell(value, digits) for value, digits in zip(row, places, strict=True)]
                for row in frame.to_numpy(dtype=object)
            ]
            return {"kind": "table", "title": entry.title, "header": header, "rows": rows, "notes": entry.notes}
        case ExportedSentences():
            return {"kind": "sentences", "title": entry.title, "lines": entry.lines, "notes": ()}
    raise TypeError(type(entry))


def _reading(explanation: Explanation | None) -> str:
    parts = (explanation.reading, explanation.formula_text, explanation.paper) if explanation else ()
    return " ".join(f"{part.removesuffix('.')}." for part in parts if part)


def _cell(value: object, places: int | None) -> tuple[str, bool]:
    """A cell as text, and whether it is a number: counts in full, others with four digits or so many `places`; missing ones empty."""
    is_number = isinstance(value, (int, float))
    if value is None or value is pd.NA or value != value:
        return "", is_number
    if isinstance(value, float):
        return number(value) if places is None else decimals(value, places), True
    return str(value), is_number


def figure_spec(entry: ExportedFigure, *, texts: bool = True) -> dict[str, Any]:
    """The figure for plotly.js: few points without WebGL, and no texts of rows if they are not wanted."""
    spec: dict[str, Any] = json.loads(entry.spec)
    if entry.of_rows:
        spec["layout"].setdefault("height", _MAP_HEIGHT)
    maps = [trace for trace in spec["data"] if trace["type"] == "scattergl"]
    if sum(len(_array(trace["x"])) for trace in maps) <= _FEW:
        for trace in maps:
            trace["type"] = "scatter"
    for trace in spec["data"] if entry.of_rows else ():
        if not texts or isinstance(trace.get("customdata"), dict):  # numbers, with which the app requests texts
            for field in ("text", "hovertext", "customdata", "hovertemplate"):
                trace.pop(field, None)
    return spec


def _array(values: Any) -> NDArray[Any]:
    """Of a list, or of an array as plotly writes it: its bytes in base64."""
    if not isinstance(values, dict):
        return np.asarray(values)
    return np.frombuffer(base64.b64decode(values["bdata"]), dtype=values["dtype"])

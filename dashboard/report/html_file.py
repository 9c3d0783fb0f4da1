"""A report as one self-contained HTML file with interactive figures."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from plotly.io.json import to_json_plotly

from dashboard.report.document import Block, Code, Document, Heading, Numbers, Paragraph, Picture, Points, rows_of
from dashboard.shared import downloads

_BASIC = frozenset({"scatter", "bar", "pie"})
"""Trace types of plotly.js's basic bundle."""
_HEIGHT = 420
"""Default height in pixels."""


def render(document: Document) -> str:
    """The HTML file. User text is escaped."""
    blocks = [_plain(block) for block in document.blocks]
    return _template().render(document=document, blocks=blocks, script=_script(document.pictures))


@functools.cache
def _template() -> Any:
    folder = Path(__file__).parent
    # everything is escaped except our script and plotly's
    environment = Environment(loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined)
    return environment.get_template("page.html.j2")


def _plain(block: Block) -> dict[str, Any]:
    match block:
        case Heading(text):
            return {"kind": "heading", "text": text}
        case Paragraph(text, kind):
            return {"kind": "words", "text": text, "style": {"note": "faint"}.get(kind, kind)}
        case Points(lines):
            return {"kind": "points", "lines": lines}
        case Code(title, text):
            return {"kind": "code", "title": title, "text": text}
        case Numbers(title, frame, notes, _):
            numeric = [[isinstance(value, (int, float)) for value in line] for line in frame.to_numpy(dtype=object)]
            rows = [list(zip(*line, strict=True)) for line in zip(rows_of(block), numeric, strict=True)]
            return {
                "kind": "numbers",
                "title": title,
                "header": list(map(str, frame.columns)),
                "rows": rows,
                "notes": notes,
            }
        case Picture(title, figure, words):
            spec = figure.to_plotly_json()
            spec["layout"].pop("template", None)
            name = downloads.file_name(title) or "figure"
            height = figure.layout.height or _HEIGHT
            return {
                "kind": "picture",
                "title": title,
                "spec": to_json_plotly(spec),
                "words": words,
                "name": name,
                "height": height,
            }


def _script(pictures: Sequence[Picture]) -> Markup | None:
    """plotly.js: the basic bundle, a quarter of the size, if it supports all figures."""
    if not pictures:
        return None
    basic = all(trace.type in _BASIC for picture in pictures for trace in picture.figure.data)
    text = _basic_plotly() if basic else _full_plotly()
    return Markup(text.replace("</script", "<\\/script"))  # only occurs inside strings, where both are equivalent


@functools.cache
def _basic_plotly() -> str:
    return (Path(__file__).parent.parent / "plotly_basic" / "plotly-basic.min.js").read_text(encoding="utf-8")


@functools.cache
def _full_plotly() -> str:
    from plotly.offline import get_plotlyjs

    text: str = get_plotlyjs()
    return text

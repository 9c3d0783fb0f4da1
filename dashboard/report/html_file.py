"""A report, or a page of the app, as one self-contained HTML file with interactive figures."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from plotly.io.json import to_json_plotly

from dashboard import one_page
from dashboard.components import bundle, cloud_matrix
from dashboard.components.lab import source as lab
from dashboard.components.playground import source
from dashboard.report.document import Document, Matrix, Picture
from dashboard.shared import downloads

_BASIC = frozenset({"scatter", "bar", "pie"})
"""Trace types of plotly.js's basic bundle."""


def render(document: Document) -> str:
    """The HTML file. User text is escaped."""
    blocks = [(type(block).__name__, block) for block in document.blocks]
    matrices = any(isinstance(block, Matrix) for block in document.blocks)
    vectors = "npy" in document.inside
    styles = [bundle(cloud_matrix.CSS)] * matrices + [source.styles(), lab.styles()] * vectors
    return str(
        _template().render(
            document=document,
            blocks=blocks,
            script=_script(document.pictures),
            styles=Markup("\n".join(styles)),
            light=Markup(one_page.colours("light")),
            dark=Markup(one_page.colours("dark")),
            matrix=Markup(bundle(cloud_matrix.HTML)),
            matrices=Markup(bundle(*cloud_matrix.SCRIPTS)) if matrices else "",
            vectors=Markup(f"{source.script()}\n{lab.script()}") if vectors else "",
            words=Markup(one_page.inert(source.words())),
            inside=Markup(one_page.inert(document.inside)),
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


def _script(pictures: Sequence[Picture]) -> Markup | None:
    """plotly.js: the basic bundle, a quarter of the size, if it supports all figures."""
    if not pictures:
        return None
    # the end tag only occurs inside strings, where both are equivalent
    basic = all(trace.type in _BASIC for picture in pictures for trace in picture.figure.data)
    return Markup(_plotly(basic).replace("</script", "<\\/script"))


@functools.cache
def _plotly(basic: bool) -> str:
    if basic:
        return (Path(__file__).parent.parent / "plotly_basic" / "plotly-basic.min.js").read_text(encoding="utf-8")
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())

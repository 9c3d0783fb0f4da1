"""Which measure sees what, as HTML: a table whose cells are links to clouds of the playground."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
from markupsafe import Markup

from dashboard.components import bundle
from dashboard.components.playground import source
from isoviz import metrics
from isoviz.lessons import responses
from isoviz.lessons.responses import CHANGES, PLAIN, SIGNS, Change, Response

_ABOUT = (
    "Each column changes a plain cloud: {n} normally distributed points in {d} dimensions, all equally wide. Read a row for what a measure "
    "sees, a column for which measures notice a change; numbers are the values after it. Open a cell or a picture to make the change in "
    "the playground."
)
_POINTS, _SIZE, _SEED = 70, 56, 6


@functools.cache
def styles() -> str:
    return bundle("playground/responses.css")


@functools.cache
def table() -> Markup:
    """The section with its table and the key to its signs."""
    head = Markup("").join(
        Markup('<th scope="col"><a href="{}">{}<span>{}</span></a><small>{}</small></th>').format(
            link(change.state), picture(change), change.title, change.help
        )
        for change in CHANGES
    )
    rows = Markup("").join(_row(slug, row) for slug, row in responses.table().items())
    signs = Markup("").join(
        Markup("<li><b>{}</b> {}</li>").format(sign, text)
        for claim, (sign, text) in SIGNS.items()
        if claim != "undefined"
    )
    return Markup(
        '<section class="ivr" aria-labelledby="ivr-title"><h2 id="ivr-title">Which measure sees what</h2><p>{}</p><ul>{}</ul>'
        '<div class="ivr-scroll" tabindex="0" role="region" aria-label="Table of measures and changes">'
        '<table><thead><tr><th scope="col">Measure</th><th scope="col">{}<span>Plain cloud</span></th>{}</tr></thead>'
        "<tbody>{}</tbody></table></div><p>{}</p></section>"
    ).format(_ABOUT.format(**PLAIN), signs, picture(None), head, rows, responses.HOW)


def _row(slug: str, row: Mapping[str, Response]) -> Markup:
    metric = metrics.get(slug)
    title = source.short_title(metric)
    cells = (_cell(title, slug, change, row[change.slug]) for change in CHANGES)
    plain = row[CHANGES[0].slug].shown[0]
    return Markup('<tr><th scope="row" title="{}">{}</th><td>{}</td>{}</tr>').format(
        metric.sees, title, plain, Markup("").join(cells)
    )


def _cell(title: str, slug: str, change: Change, response: Response) -> Markup:
    text = f"{title}, {change.title}: {SIGNS[response.claim][1]}"
    if response.claim != "undefined":
        text += "; {} before, {} after".format(*response.shown)
    return Markup('<td class="ivr-{}"><a href="{}" title="{}"><span>{}: </span>{}</a></td>').format(
        response.claim.replace(" ", "-"), link({**change.state, "measure": slug}), text, text, str(response)
    )


def link(state: Mapping[str, Any]) -> str:
    """The address of a cloud, as in state.js; `measure`: the row to mark."""
    pairs = {**state, "transforms": "~".join(step["slug"] for step in state.get("transforms", ()))}
    texts = {name: f"{value:g}" if isinstance(value, float) else value for name, value in pairs.items() if value != ""}
    return "#" + "&".join(f"{name}={text}" for name, text in texts.items())


def picture(change: Change | None) -> Markup:
    """The points before (grey) and after a change, in two dimensions; without one, the plain cloud."""
    two = {"d": 2, "n": _POINTS}
    part = {} if change is None else {**change.part, **two, **change.picture}
    begins = next((other.part for other in CHANGES if change and other.slug == change.begins), {})
    before, after = (responses.drawn({**two, **part}, _SEED)[0] for part in (begins, part))
    extent = float(np.quantile(np.abs(np.concatenate([before, after])), 0.985)) * 1.1
    grey = Markup("") if change is None else _dots(before, extent, "ivr-before")
    cross = Markup('<path class="ivr-cross" d="M-28 0h56M0-28v56"/>')
    return Markup('<svg viewBox="-28 -28 56 56" width="{0}" height="{0}" aria-hidden="true">{1}{2}{3}</svg>').format(
        _SIZE, cross, grey, _dots(after, extent, "ivr-after")
    )


def _dots(points: np.ndarray, extent: float, name: str) -> Markup:
    places = (points * [28 / extent, -28 / extent]).round(1)
    return Markup('<path class="{}" d="{}"/>').format(name, "".join(f"M{x:g} {y:g}h0" for x, y in places))

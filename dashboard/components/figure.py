"""Python side of a finished figure, drawn by the part of plotly.js that suffices for it."""

from __future__ import annotations

from dataclasses import dataclass

import plotly.graph_objects as go
import streamlit as st
from plotly.io.json import to_json_plotly

from dashboard import routes, theme
from dashboard.components import bundle

_BASIC = frozenset({"scatter", "bar", "pie"})
"""Kinds of traces that plotly.js's basic part draws."""
_HEIGHT = 450
"""Pixels of a figure that says nothing of it, as plotly has it."""

_mount = st.components.v2.component(
    "isoviz_figure",
    html=bundle("figure.html"),
    css=bundle("figure.css"),
    js=bundle("feed.js", "look.js", "plotly_script.js", "saved_picture.js", "figure.js"),
    isolate_styles=False,  # plotly.js writes its styles into the document's head
)


@dataclass(frozen=True)
class Prepared:
    """A figure as plotly.js takes it.

    Attributes:
        spec: JSON.
        basic: plotly.js's basic part draws it.
        height: pixels.
    """

    spec: str
    basic: bool
    height: int


def prepared(figure: go.Figure) -> Prepared:
    """For a figure that is drawn again and again."""
    spec = figure.to_plotly_json()
    spec["layout"].pop("template", None)  # the page's look takes its place
    basic = {trace.type for trace in figure.data} <= _BASIC
    return Prepared(to_json_plotly(spec), basic, int(figure.layout.height or _HEIGHT))


def draw(
    figure: go.Figure | Prepared,
    *,
    key: str,
    words: str,
    name: str | None = None,
    about: str = "",
    opens_runs: bool = False,
) -> str | None:
    """Mount a figure. It stays in its place when it is drawn anew with the same key, and so does its zoom while `uirevision` does.

    Unlike `st.plotly_chart`, which brings all of plotly.js, it is on the screen soon after the page is; its picture is saved with
    the page's background, and nothing of it can be sent elsewhere.

    Args:
        words: what it shows, for those who do not see it.
        name: of the files that its buttons save; None for the key's.
        about: a line below the picture in these files: which cloud it is of.
        opens_runs: a press on a mark with a run behind it (the fifth of its `customdata`) gives that run's id, once.
    """
    found = figure if isinstance(figure, Prepared) else prepared(figure)
    pressed = _mount(
        key=key,
        data={
            "spec": found.spec,
            "basic": found.basic,
            "plotly": routes.basic_plotly_path() if found.basic else routes.plotly_path(),
            "height": found.height,
            "words": words,
            "name": name or key.replace("_", "-"),
            "about": about,
            "palettes": theme.POINT_PALETTES,
            "scales": theme.POINT_SCALES,
            "cells": theme.CELL_SCALES,
            "config": theme.CHART_CONFIG,
            "opensRuns": opens_runs,
        },
        on_run_change=_noted,
    )
    run = getattr(pressed, "run", None)
    return str(run) if run else None


def _noted() -> None:
    """A press is answered by the page's own run."""

"""Python side of a finished figure, drawn by the smallest plotly.js bundle that supports it."""

from __future__ import annotations

from dataclasses import dataclass

import plotly.graph_objects as go
import streamlit as st
from plotly.io.json import to_json_plotly

from dashboard.components import bundle
from dashboard.server import routes
from dashboard.shared import downloads, explanations, exported, theme, wording
from dashboard.shared.explanations import Explanation
from dashboard.shared.exported import ExportedFigure

BASIC = frozenset({"scatter", "bar", "pie"})
"""Trace types of plotly.js's basic bundle."""
_HEIGHT = 450
"""Plotly's default height in pixels."""

_mount = st.components.v2.component(
    "isoviz_figure",
    html=bundle("figure.html"),
    css=bundle("figure.css"),
    js=bundle("feed.js", "look.js", "plotly_script.js", "saved_picture.js", "figure.js"),
    isolate_styles=False,  # plotly.js writes its styles into the document's head
)


@dataclass(frozen=True)
class Prepared:
    """A figure as input of plotly.js.

    Attributes:
        spec: JSON.
        basic: the basic bundle is enough.
        height: in pixels.
    """

    spec: str
    basic: bool
    height: int


def prepared(figure: go.Figure) -> Prepared:
    """Serialise a figure, to draw it repeatedly."""
    spec = figure.to_plotly_json()
    spec["layout"].pop("template", None)  # replaced by the page's theme
    basic = {trace.type for trace in figure.data} <= BASIC
    return Prepared(to_json_plotly(spec), basic, int(figure.layout.height or _HEIGHT))


def draw(
    figure: go.Figure | Prepared,
    *,
    key: str,
    words: str,
    name: str | None = None,
    title: str = "",
    caption: str = "",
    about: str = "",
    explanation: Explanation | None = None,
    table: downloads.Table | None = None,
    opens_runs: bool = False,
    of_rows: bool = False,
) -> str | None:
    """Mount a figure as a card: its title, the figure, its caption, how to read it, and its numbers as files.

    A redraw with the same key keeps its place, and the same `uirevision` keeps its zoom.

    Unlike `st.plotly_chart`, which loads all of plotly.js, it appears soon after the page. Saved pictures have the page's background,
    and the figure has no button that sends data elsewhere.

    Args:
        words: alternative text.
        name: name of saved files; None for the key.
        title, caption: text above and below the figure.
        about: caption of saved files, which describes the cloud.
        explanation, table: for the button *How to read this*, and the downloads of the figure's numbers.
        of_rows: the marks are rows, and show their texts.
        opens_runs: return a run's id once, after a click on its mark (the fifth item of `customdata`).
    """
    figure_spec = figure if isinstance(figure, Prepared) else prepared(figure)
    name = name or key.replace("_", "-")
    if title:
        st.markdown(f"**{wording.plain(title)}**")
    notes = tuple(filter(None, (caption, "" if about in caption else about)))
    exported.note(key, ExportedFigure(title, figure_spec.spec, words, notes, explanation, of_rows))
    pressed = _mount(
        key=key,
        data={
            "spec": figure_spec.spec,
            "basic": figure_spec.basic,
            "plotly": routes.basic_plotly_path() if figure_spec.basic else routes.plotly_path(),
            "height": figure_spec.height,
            "words": words,
            "name": name,
            "about": about,
            "palettes": theme.POINT_PALETTES,
            "scales": theme.POINT_SCALES,
            "cells": theme.CELL_SCALES,
            "config": theme.CHART_CONFIG,
            "opensRuns": opens_runs,
        },
        on_run_change=lambda: None,  # the rerun handles the click
    )
    if caption:
        st.caption(wording.plain(caption))
    if explanation is not None:
        explanations.show(explanation)
    if table is not None:
        downloads.buttons(name, table)
    run = getattr(pressed, "run", None)
    return str(run) if run else None

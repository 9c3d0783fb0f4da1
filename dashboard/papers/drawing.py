"""A study's panels → Plotly figures in our theme. No Streamlit here."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any, Final

import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from dashboard.shared import theme
from isoviz import methods
from isoviz.studies.figures import ADDED, REFERENCE
from isoviz.studies.result import Panel

SHADE_SCALE: Final = [[0.0, "rgba(73,104,246,0.0)"], [1.0, "rgba(73,104,246,1.0)"]]
"""Colours of a matrix: transparent at zero correlation, so that they suit any background."""
_HEIGHT: Final = {"scatter": 330, "bar": 270, "heatmap": 340}
_WIDE: Final = 420
"""Height in pixels of a figure's only panel."""


def panel(content: Panel, *, alone: bool) -> go.Figure:
    """One panel.

    Args:
        alone: it is the figure's only panel, so it is drawn larger.
    """
    plot = copy.deepcopy(content.plot)
    colour_of = colours(plot["data"])
    place_of = {group: place for place, group in enumerate(colour_of)}
    for trace in plot["data"]:
        group = trace.get("legendgroup", "")
        _style(trace, colour_of.get(group, theme.NEUTRAL), place_of.get(group, 0))
    layout = plot["layout"]
    for name in ("xaxis", "yaxis"):
        layout[name]["title"] = {"text": escape(layout[name]["title"]["text"])}
    for shape in layout.get("shapes", ()):
        shape["line"]["color"] = theme.NEUTRAL
    kind = plot["data"][0]["type"] if plot["data"] else "scatter"
    named = sum(trace.get("showlegend") is not False and bool(trace.get("name")) for trace in plot["data"])
    height = (_WIDE if alone and kind != "heatmap" else _HEIGHT[kind]) + 22 * max(0, math.ceil(named / 3) - 1)
    return go.Figure(plot["data"], theme.figure_layout(height=height, showlegend=named > 1, **layout))


def _style(trace: dict[str, Any], colour: str, place: int) -> None:
    """Give a trace its colours; lines of several groups also differ in dash and symbol."""
    marker = trace.get("marker", {})
    if "name" in trace:
        trace["name"] = escape(trace["name"])
    if trace["type"] == "heatmap":
        trace["colorscale"] = SHADE_SCALE
    elif "colorbar" in marker:
        marker |= {"colorscale": theme.STRENGTH_SCALE, "line": {"width": 1, "color": theme.NEUTRAL}}
        trace |= {error: {**trace[error], "color": theme.NEUTRAL} for error in ("error_x", "error_y")}
    elif trace["type"] == "bar":
        pattern = {} if "customdata" in trace else {"pattern": {"shape": "/"}}  # of the bar at zero
        trace["marker"] = {"color": colour, **pattern}
    else:
        symbols = list(theme.METHOD_SYMBOLS.values())
        dash = theme.DASHES[place % len(theme.DASHES)]
        trace["line"] = {"color": colour, "width": 2, "dash": dash} | trace.get("line", {})
        trace["marker"] = {"size": 7, "symbol": symbols[place % len(symbols)], "color": colour}
        if "error_y" in trace:
            trace["error_y"]["color"] = colour


def colours(traces: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Group → colour: by its value on a scale around 0, by its method, or from the palette; additions and references are grey."""
    values = {trace.get("legendgroup", ""): trace.get("meta", {}).get("value") for trace in traces}
    limit = max((abs(value) for value in values.values() if value is not None), default=0.0) or 1.0
    spare = iter(theme.PALETTE * 4)
    colour_of: dict[str, str] = {}
    for group, value in values.items():
        if value is not None:
            (sampled,) = sample_colorscale(theme.STRENGTH_SCALE, (value / limit + 1) / 2, colortype="tuple")
            colour_of[group] = "#" + "".join(f"{round(255 * part):02x}" for part in sampled)
        elif group in (ADDED, REFERENCE):
            colour_of[group] = theme.NEUTRAL
        else:
            colour_of[group] = theme.method_colour(group) if group in methods.catalogue() else next(spare)
    return colour_of


def words(content: Panel) -> str:
    """Alternative text of a panel."""
    layout = content.plot["layout"]
    axes = " against ".join(layout[name]["title"]["text"] for name in ("yaxis", "xaxis"))
    names = ", ".join(
        trace["name"] for trace in content.traces if trace.get("showlegend") is not False and "name" in trace
    )
    return ": ".join(filter(None, (content.title, axes))) + (f". Series: {names}." if names else ".")

"""A study's figures → Plotly figures in our theme, one for each panel. No Streamlit here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from html import escape
from types import MappingProxyType
from typing import Any, Final

import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from dashboard.shared import theme
from isoviz import methods
from isoviz.studies.result import SHADES, Axis, Panel, Series

SHADE_SCALE: Final = [[0.0, "rgba(73,104,246,0.0)"], [1.0, "rgba(73,104,246,1.0)"]]
"""Colours of a matrix: transparent at zero correlation, so that they suit any background."""

_HEIGHT: Final = {"lines": 330, "bars": 270, "points": 320, "matrix": 340}
_WIDE: Final = 420
"""Height in pixels of a figure's only panel."""
_ALIASES: Final[Mapping[str, str]] = MappingProxyType({"none": "baseline", "BN": "batchnorm", "IsoBN": "isobn"})
"""Groups in older records → the method whose colour they take."""


def panel(content: Panel, *, alone: bool) -> go.Figure:
    """One panel.

    Args:
        alone: it is the figure's only panel, so it is drawn larger.
    """
    figure = go.Figure()
    {"matrix": _matrix, "bars": _bars, "points": _points, "lines": _lines}[content.kind](figure, content)
    named = sum(bool(trace.showlegend is not False and trace.name) for trace in figure.data)
    layout = theme.figure_layout(
        height=(_WIDE if alone and content.kind != "matrix" else _HEIGHT[content.kind])
        + 22 * max(0, math.ceil(named / 3) - 1),
        showlegend=named > 1,
        xaxis=_axis(content.x_axis),
        yaxis=_axis(content.y_axis),
    )
    if content.kind == "lines" and _counts(content):
        layout["xaxis"] |= {"tick0": 0, "dtick": 1}
    if content.kind == "lines" and content.x_axis.log:
        layout["xaxis"] |= _measured_places(content)
    if content.kind == "bars":
        layout["xaxis"] |= _decades(content)
        layout["bargap"] = 0.0
    if content.kind == "matrix":
        hidden_axis = {"ticks": "", "constrain": "domain"} | dict.fromkeys(
            ("showticklabels", "showgrid", "zeroline"), False
        )
        layout["xaxis"] |= hidden_axis
        layout["yaxis"] |= hidden_axis | {"autorange": "reversed", "scaleanchor": "x"}
    figure.update_layout(layout)
    return figure


def colours(series: Iterable[Series]) -> dict[str, str]:
    """Group → colour: by its value on a scale around 0, by its method, or from the palette. Our additions are grey."""
    all_series = list(series)
    limit = max((abs(entry.value) for entry in all_series if entry.value is not None), default=0.0) or 1.0
    colour_of: dict[str, str] = {}
    spare = iter(theme.PALETTE * 4)
    for entry in all_series:
        if entry.group in colour_of:
            continue
        slug = _ALIASES.get(entry.group, entry.group)
        if entry.value is not None:
            share = (entry.value / limit + 1) / 2
            (sampled,) = sample_colorscale(theme.STRENGTH_SCALE, share, colortype="tuple")
            colour_of[entry.group] = "#" + "".join(f"{round(255 * part):02x}" for part in sampled)
        elif entry.role == "added":
            colour_of[entry.group] = theme.NEUTRAL
        elif slug in methods.catalogue():
            colour_of[entry.group] = theme.method_colour(slug)
        else:
            colour_of[entry.group] = next(spare)
    return colour_of


def words(content: Panel) -> str:
    """Alternative text of a panel."""
    axes = f"{content.y_axis.label} against {content.x_axis.label}"
    names = ", ".join(series.name for series in content.series if series.role != "expected")
    return ": ".join(filter(None, (content.title, axes))) + (f". Series: {names}." if names else ".")


def _axis(axis: Axis) -> dict[str, Any]:
    layout: dict[str, Any] = {"title": {"text": escape(axis.label)}, "type": "log" if axis.log else "linear"}
    if axis.low is not None and axis.high is not None:
        layout["range"] = [math.log10(end) if axis.log else end for end in (axis.low, axis.high)]
    elif axis.low is not None and not axis.log:
        layout["rangemode"] = "tozero" if axis.low == 0 else "normal"
    return layout


def _lines(figure: go.Figure, content: Panel) -> None:
    """Measured series with their spread; a formula's values as thin lines, values to compare with as dashed lines."""
    by_group = colours(content.series)
    order = {group: place for place, group in enumerate(by_group)}
    for series in content.series:
        colour, place = by_group[series.group], order[series.group]
        dash = theme.DASHES[place % len(theme.DASHES)]
        line: dict[str, Any] = {"color": colour, "width": 2, "dash": dash}
        if series.role == "expected":
            figure.add_scatter(
                x=series.x,
                y=series.y,
                mode="lines",
                line={"color": colour, "width": 1},
                showlegend=False,
                name=escape(series.name),
                hoverinfo="skip",
            )
            continue
        if series.low is not None and series.high is not None:
            _band(figure, series, colour)
            line["width"] = 2.5 if series.role == "added" else 1.5
        figure.add_scatter(
            x=series.x,
            y=series.y,
            mode="lines" if series.low is None and len(series.x) > 24 else "lines+markers",
            line=line,
            marker={"size": 7, "symbol": list(theme.METHOD_SYMBOLS.values())[place % len(theme.METHOD_SYMBOLS)]},
            name=escape(series.name),
            hovertemplate=f"%{{y:.4g}} at %{{x:.4g}}<extra>{escape(series.name)}</extra>",
        )
    for reference in content.references:
        line = {"color": theme.NEUTRAL, "width": 1.5, "dash": "dash" if reference.axis == "y" else "dot"}
        (figure.add_hline if reference.axis == "y" else figure.add_vline)(
            **{reference.axis: reference.value}, line=line
        )
        figure.add_scatter(x=[None], y=[None], mode="lines", line=line, name=escape(reference.label))


def _band(figure: go.Figure, series: Series, colour: str) -> None:
    assert series.low is not None and series.high is not None
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    figure.add_scatter(
        x=[*series.x, *reversed(series.x)],
        y=[*series.high, *reversed(series.low)],
        fill="toself",
        fillcolor=f"rgba({red},{green},{blue},0.18)",
        line={"width": 0},
        mode="lines",
        hoverinfo="skip",
        showlegend=False,
        name=escape(series.name),
    )


def _bars(figure: go.Figure, content: Panel) -> None:
    """Bars over powers of ten; values at zero have a separate bin on the left."""
    by_group = colours(content.series)
    for series in content.series:
        at = [math.log10(x) for x in series.x] if content.x_axis.log else series.x
        width = at[1] - at[0] if len(at) > 1 else 1.0
        colour = by_group[series.group]
        figure.add_bar(
            x=at,
            y=series.y,
            width=width,
            marker={"color": colour},
            name=escape(series.name),
            customdata=[f"{x:.2g}" for x in series.x],
            hovertemplate="%{y:.3g} at about %{customdata}<extra></extra>",
        )
        if series.at_zero is not None:
            figure.add_bar(
                x=[math.floor(at[0]) - 2],
                y=[series.at_zero],
                width=0.8,
                marker={"color": colour, "pattern": {"shape": "/"}},
                showlegend=False,
                name="zero",
                hovertemplate="%{y:.3g} at 0<extra></extra>",
            )


def _points(figure: go.Figure, content: Panel) -> None:
    """Single points with error bars both ways; a series with a value is coloured on a scale around 0."""
    by_group = colours(series for series in content.series if series.value is None)
    valued = [series for series in content.series if series.value is not None and series.x]
    limit = max((abs(series.value) for series in valued if series.value is not None), default=0.0) or 1.0
    if valued:
        symbol = valued[0].group.partition(" = ")[0]
        marker: dict[str, Any] = {
            "size": 11,
            "color": [series.value for series in valued for _ in series.x],
            "colorscale": theme.STRENGTH_SCALE,
            "cmin": -limit,
            "cmax": limit,
            "line": {"width": 1, "color": theme.NEUTRAL},
            "colorbar": {"title": {"text": escape(symbol)}, "thickness": 10, "outlinewidth": 0, "len": 0.9},
        }
        _scatter_points(figure, valued, marker)
    for index, (group, colour) in enumerate(by_group.items()):
        members = [series for series in content.series if series.value is None and series.group == group and series.x]
        symbols = list(theme.METHOD_SYMBOLS.values())
        if members:
            marker = {"size": 10, "color": colour, "symbol": symbols[index % len(symbols)]}
            _scatter_points(figure, members, marker, name=members[0].name)


def _scatter_points(figure: go.Figure, members: list[Series], marker: dict[str, Any], name: str = "") -> None:
    """One trace for several series of points."""
    figure.add_scatter(
        x=[x for series in members for x in series.x],
        y=[y for series in members for y in series.y],
        error_x=_spread(members, "x", "x_low", "x_high"),
        error_y=_spread(members, "y", "low", "high"),
        mode="markers",
        marker=marker,
        name=escape(name),
        showlegend=bool(name),
        text=[escape(series.name) for series in members for _ in series.x],
        hovertemplate="%{text}<br>%{x:.4g}, %{y:.4g}<extra></extra>",
    )


def _spread(members: list[Series], middle: str, low: str, high: str) -> dict[str, Any]:
    """Error bars of each point, as long as the named fields of its series say."""
    up: list[float] = []
    down: list[float] = []
    for series in members:
        at, ends = getattr(series, middle), (getattr(series, high), getattr(series, low))
        up += [top - y for y, top in zip(at, ends[0] or at, strict=True)]
        down += [y - bottom for y, bottom in zip(at, ends[1] or at, strict=True)]
    return {"type": "data", "symmetric": False, "array": up, "arrayminus": down, "color": theme.NEUTRAL, "thickness": 1}


def _counts(content: Panel) -> bool:
    """Whether the x axis counts a few items, such as layers, so that only whole numbers are ticks."""
    places = {x for series in content.series for x in series.x}
    return (
        0 < len(places) <= 25
        and not content.x_axis.log
        and all(x == round(x) for x in places)
        and max(places) - min(places) <= 25
    )


def _measured_places(content: Panel) -> dict[str, Any]:
    """Ticks of a logarithmic axis at the measured values, if these are few; values too close to the previous tick get none."""
    places = sorted({x for series in content.series for x in series.x})
    if not places or len(places) > 16:
        return {}
    ticks = [places[0]]
    for place in places[1:]:
        if place / ticks[-1] >= 1.4:
            ticks.append(place)
    return {"tickvals": ticks, "ticktext": [f"{place:,.6g}" for place in ticks]}


def _decades(content: Panel) -> dict[str, Any]:
    """Ticks of an axis whose bars are placed by their logarithms."""
    if not content.x_axis.log:
        return {}
    places = [math.log10(x) for series in content.series for x in series.x]
    low, high = math.floor(min(places)), math.ceil(max(places))
    zero = any(series.at_zero is not None for series in content.series)
    decades = range(low, high + 1, max(1, (high - low) // 5))
    return {
        "type": "linear",
        "range": [low - 2.6 if zero else low, high],
        "tickvals": [*([low - 2] if zero else []), *decades],
        "ticktext": [*(["0"] if zero else []), *(f"10<sup>{decade}</sup>".replace("-", "−") for decade in decades)],
    }


def _matrix(figure: go.Figure, content: Panel) -> None:
    import numpy as np

    assert content.matrix is not None
    figure.add_heatmap(
        z=np.rint(content.matrix.array() * SHADES).astype(np.uint8),  # one byte per cell, a quarter of a float
        zmin=0,
        zmax=SHADES,
        colorscale=SHADE_SCALE,
        hoverinfo="skip",
        colorbar={
            "thickness": 10,
            "outlinewidth": 0,
            "tickvals": [0, SHADES / 2, SHADES],
            "ticktext": ["0", "0.5", "1"],
        },
    )

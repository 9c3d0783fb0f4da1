"""Frames → Plotly figures of finished runs. No Streamlit here; live curves are drawn by the components instead."""

from __future__ import annotations

from html import escape
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from dashboard import theme
from dashboard.tables import decimals, mean_sd

MARK_LINE = {"width": 1, "color": "rgba(127,134,145,0.9)"}
LEVEL_DASHES = ("dot", "dash", "dashdot", "longdash")
NARROW = 0.04
"""Values closer together than this get an axis of about this width: alike is drawn as alike, not as 0 to 1.5."""
_HOVER = "<br>".join(
    (
        "%{customdata[0]}",
        "%{customdata[1]}",
        "seed %{customdata[2]}",
        "%{customdata[3]}<extra>run %{customdata[4]}</extra>",
    )
)


def tradeoff(points: pd.DataFrame, metric: str, parameter: str) -> go.Figure:
    """IsoScore* (x) against the task metric (y), one mark per run: symbol = method, colour = the parameter's value.

    Args:
        points: of `tables.points`.
        metric: the metric's name, for the axis.
        parameter: the parameter's label, for the colour bar. Runs without it are drawn in their method's colour.
    """
    figure = go.Figure()
    scaled = points["at"].notna()
    limit = float(points.loc[scaled, "at"].abs().max()) if scaled.any() else 1.0
    for (slug, has_value), part in points.groupby(["method", scaled.rename("scaled")], sort=False):
        marker: dict[str, Any] = {
            "size": 11,
            "symbol": theme.method_symbol(str(slug)),
            "line": MARK_LINE,
            "opacity": 0.9,
        }
        if has_value:
            marker |= {"color": part["at"].tolist(), "coloraxis": "coloraxis"}
        else:
            marker["color"] = theme.method_colour(str(slug))
        figure.add_scatter(
            x=part["isoscore_star"].tolist(),
            y=part["value"].tolist(),
            mode="markers",
            marker=marker,
            showlegend=False,
            customdata=_hover_data(part, metric),
            hovertemplate=_HOVER,
        )
    for slug, part in points.groupby("method", sort=False):  # a legend that tells the symbols, whatever the colours
        colour = theme.method_colour("baseline") if part["at"].notna().any() else theme.method_colour(str(slug))
        figure.add_scatter(
            x=[None],
            y=[None],
            mode="markers",
            name=escape(part["title"].iloc[0]),
            marker={"size": 11, "symbol": theme.method_symbol(str(slug)), "color": colour},
        )
    figure.update_layout(
        theme.figure_layout(
            height=440,
            xaxis={"title": {"text": "IsoScore* (all layers' tokens, ζ = 0.2)"}},
            yaxis={"title": {"text": metric}, **_room(points["value"])},
            showlegend=True,
            coloraxis={
                "colorscale": theme.STRENGTH_SCALE,
                "cmin": -limit,
                "cmax": limit,
                "showscale": bool(scaled.any()),
                "colorbar": {"title": {"text": escape(parameter)}, "thickness": 12, "len": 0.9, "outlinewidth": 0},
            },
        )
    )
    return figure


def against_parameter(points: pd.DataFrame, column: str, label: str, parameter: str) -> go.Figure:
    """A value against a method parameter: one mark per run, a line through the means, runs without it as level lines.

    Args:
        points: of `tables.points`.
        column: `value` or `isoscore_star`.
        label: of the y axis.
        parameter: the parameter's label, for the x axis.
    """
    figure = go.Figure()
    swept = points[points["at"].notna()]
    for slug, part in swept.groupby("method", sort=False):
        colour = theme.method_colour(str(slug))
        name = escape(part["title"].iloc[0])
        means = part.groupby("at")[column].mean()
        figure.add_scatter(
            x=means.index.tolist(),
            y=means.tolist(),
            mode="lines",
            line={"color": colour, "width": 2, "dash": theme.method_dash(str(slug))},
            name=f"{name} (line: mean)",
            hovertemplate="mean %{y:.3f} at %{x}<extra></extra>",
        )
        figure.add_scatter(
            x=part["at"].tolist(),
            y=part[column].tolist(),
            mode="markers",
            marker={
                "size": 9,
                "color": colour,
                "symbol": theme.method_symbol(str(slug)),
                "opacity": 0.75,
                "line": MARK_LINE,
            },
            showlegend=False,
            customdata=_hover_data(part, label),
            hovertemplate=_HOVER,
        )
    for slug, part in points[points["at"].isna()].groupby("method", sort=False):
        mean, _ = mean_sd(part[column])
        if mean is not None:
            line = {"color": theme.method_colour(str(slug)), "dash": "dot", "width": 2}
            figure.add_hline(y=mean, line=line)
            words = f"{escape(part['title'].iloc[0])} {decimals(mean)} (n = {len(part)})"
            figure.add_scatter(x=[None], y=[None], mode="lines", line=line, name=words)
    figure.update_layout(
        theme.figure_layout(
            height=340,
            xaxis={"title": {"text": escape(parameter)}},
            yaxis={"title": {"text": escape(label)}, **_room(points[column])},
            showlegend=True,
        )
    )
    return figure


def seed_strip(runs: pd.DataFrame, metric: str, levels: list[tuple[str, float]]) -> go.Figure:
    """Every seed as a mark, one row per method and parameters, the mean as a tick; simple baselines as level lines.

    Args:
        runs: of `tables.runs_frame`, with a column `row`: the words of the mark's row.
        metric: the metric's name.
        levels: (words, value) of baselines.
    """
    figure = go.Figure()
    rows = list(dict.fromkeys(runs["row"]))
    for slug, part in runs.groupby("method", sort=False):
        colour = theme.method_colour(str(slug))
        figure.add_scatter(
            x=part["value"].tolist(),
            y=[escape(text) for text in part["row"]],
            mode="markers",
            showlegend=False,
            marker={
                "size": 10,
                "color": colour,
                "symbol": theme.method_symbol(str(slug)),
                "opacity": 0.75,
                "line": MARK_LINE,
            },
            customdata=_hover_data(part, metric),
            hovertemplate=_HOVER,
        )
        means = part.groupby("row", sort=False)["value"].mean()
        figure.add_scatter(
            x=means.tolist(),
            y=[escape(str(text)) for text in means.index],
            mode="markers",
            marker={"symbol": "line-ns", "size": 22, "line": {"width": 2.5, "color": colour}},
            showlegend=False,
            hovertemplate="mean %{x:.3f}<extra></extra>",
        )
    for place, (words, value) in enumerate(sorted(levels, key=lambda level: level[1])):
        line = {"color": "rgba(127,134,145,0.9)", "dash": LEVEL_DASHES[place % len(LEVEL_DASHES)], "width": 1.5}
        figure.add_vline(x=value, line=line)
        # in the legend, because words beside the lines run into each other on a narrow screen
        name = f"{escape(words)} {decimals(value)}"
        figure.add_scatter(x=[None], y=[None], mode="lines", line=line, name=name)
    figure.update_layout(
        theme.figure_layout(
            height=130 + 34 * len(rows),
            xaxis={"title": {"text": escape(metric)}},
            yaxis={"categoryorder": "array", "categoryarray": [escape(text) for text in reversed(rows)]},
            showlegend=bool(levels),
            margin={"t": 48},
        )
    )
    return figure


def _room(values: pd.Series) -> dict[str, Any]:
    """An axis range for values that hardly differ; nothing for others, which Plotly fits well."""
    known = values.dropna()
    if known.empty or known.max() - known.min() >= NARROW:
        return {}
    middle = float(known.max() + known.min()) / 2
    return {"range": [middle - NARROW, middle + NARROW]}


def _hover_data(part: pd.DataFrame, label: str) -> list[list[Any]]:
    """Per mark: method, parameters, seed, value, run. Text is escaped: Plotly would read tags in it."""
    return [
        [
            escape(f"{row.title}  {row.variant}".strip()),
            escape(f"{label} {decimals(row.value)}, IsoScore* {decimals(row.isoscore_star)}"),
            row.seed,
            escape(str(row.problem)) or "finished",
            row.run,
        ]
        for row in part.itertuples()
    ]

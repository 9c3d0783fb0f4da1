"""Frames → Plotly figures of finished runs. No Streamlit here; live curves are drawn by the components instead."""

from __future__ import annotations

import functools
import html
import itertools
from collections.abc import Iterator
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from dashboard import measures, theme
from dashboard.explanations import Explanation
from dashboard.tables import decimals
from isoviz.metrics.protocol import Metric
from isoviz.statistics import mean_sd

TRADEOFF = Explanation(
    title="Isotropy against performance",
    reading=(
        "Each point is one run: its isotropy and its task performance. A slope means that the two vary together "
        "among these runs, not that one causes the other."
    ),
    formula=r"(x_r, y_r), \quad r = 1, \dots, R",
    formula_text="one point (x_r, y_r) for each run r",
    paper="Rudman & Eickhoff 2024, figure 3.",
)

PARAMETER = Explanation(
    title="Against the method's parameter",
    reading=(
        "Each mark is one run at its parameter value. A line joins the means of runs that differ in nothing else; "
        "runs without the parameter give a dotted level. If the marks at one value scatter as widely as the line "
        "moves, the parameter has no visible effect."
    ),
    formula=r"\bar y(\lambda) = \frac{1}{n_\lambda} \sum_{\text{seeds}} y",
    formula_text="line: mean over the seeds of one value of λ",
    paper="Rudman & Eickhoff 2024, figures 5 and 7.",
)

SEEDS = Explanation(
    title="Every seed",
    reading=(
        "Each mark is one run, the vertical tick their mean; dotted lines are simple baselines. If the marks of "
        "two methods overlap, these runs cannot tell the methods apart, whatever their means."
    ),
    formula=r"s = \sqrt{\frac{1}{n - 1} \sum_{i} (y_i - \bar y)^2}",
    formula_text="s: sample standard deviation over n seeds",
    paper="Reimers & Gurevych 2017 on reporting score distributions.",
)

escape = functools.partial(html.escape, quote=False)
"""Text for Plotly, which would read tags in it; quotes mean nothing to it."""

MARK_LINE = {"width": 1, "color": "rgba(127,134,145,0.9)"}
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

MOST_LINES = 24
"""In a figure against a parameter: more have no colours and dashes to tell them apart, and take seconds to draw."""


def tradeoff(points: pd.DataFrame, metric: str, measure: Metric, parameter: str) -> go.Figure:
    """A measure of isotropy (x) against the task metric (y), one mark per run: symbol = method, colour = the parameter's value.

    Args:
        points: of `tables.points`.
        metric, measure: on the axes.
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
            x=part["isotropy"].tolist(),
            y=part["value"].tolist(),
            mode="markers",
            marker=marker,
            showlegend=False,
            customdata=_hover_data(part, metric, measure),
            hovertemplate=_HOVER,
        )
    _ring_collapsed(figure, points, "isotropy", "value")
    for slug, part in points.groupby("method", sort=False):  # a legend that tells the symbols, whatever the colours
        colour = theme.NEUTRAL if part["at"].notna().any() else theme.method_colour(str(slug))
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
            xaxis={"title": {"text": escape(measures.with_cloud(measure))}, "type": measure.axis},
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


def against_parameter(
    points: pd.DataFrame, metric: str, measure: Metric, parameter: str, *, of_isotropy: bool = False
) -> go.Figure:
    """A value against a method parameter: one mark per run, and a line through the means of runs that differ in nothing else.

    Runs without the parameter are level lines. Where a method has several lines, their names say in what they differ. Of more than
    `MOST_LINES` swept or level lines the first are drawn.

    Args:
        points: of `tables.points`.
        metric, measure: the task metric and the measure of isotropy.
        parameter: the parameter's label, for the x axis.
        of_isotropy: the measure is on the y axis instead of the task metric.
    """
    figure = go.Figure()
    column, label = ("isotropy", measures.with_cloud(measure)) if of_isotropy else ("value", metric)
    axis = measure.axis if of_isotropy else "linear"
    swept, level = points[points["at"].notna()], points[points["at"].isna()]
    for slug, name, place, part in itertools.islice(_lines(swept), MOST_LINES):
        colour = theme.method_colour(slug)
        means = part.groupby("at")[column].agg(["mean", "count"])
        figure.add_scatter(
            x=means.index.tolist(),
            y=means["mean"].tolist(),
            mode="lines",
            line={"color": colour, "width": 2, "dash": theme.method_dash(slug, place)},
            name=f"{escape(name)} (line: mean)",
            legendgroup=str(part["line"].iloc[0]),
            text=[f"n = {count}" for count in means["count"]],
            hovertemplate="mean %{y:.3f} at %{x} (%{text})",
        )
        figure.add_scatter(
            x=part["at"].tolist(),
            y=part[column].tolist(),
            mode="markers",
            marker={
                "size": 9,
                "color": colour,
                "symbol": theme.method_symbol(slug, place),
                "opacity": 0.75,
                "line": MARK_LINE,
            },
            showlegend=False,
            legendgroup=str(part["line"].iloc[0]),
            customdata=_hover_data(part, metric, measure),
            hovertemplate=_HOVER,
        )
    _ring_collapsed(figure, swept, "at", column)
    for slug, name, place, part in itertools.islice(_lines(level), MOST_LINES):
        mean, _ = mean_sd(part[column])
        if mean is not None:
            line = {"color": theme.method_colour(slug), "dash": theme.LEVEL_DASHES[place % len(theme.LEVEL_DASHES)]}
            figure.add_hline(y=mean, line={**line, "width": 2})
            words = f"{escape(name)} {decimals(mean)} (n = {len(part)})"
            figure.add_scatter(x=[None], y=[None], mode="lines", line={**line, "width": 2}, name=words)
    figure.update_layout(
        theme.figure_layout(
            height=340,
            xaxis={"title": {"text": escape(parameter)}},
            yaxis={
                "title": {"text": escape(label)},
                "type": axis,
                **(_room(points[column]) if axis == "linear" else {}),
            },
            showlegend=True,
        )
    )
    return figure


def _lines(points: pd.DataFrame) -> Iterator[tuple[str, str, int, pd.DataFrame]]:
    """Slug, name and place among its method's lines of each set of runs whose means may be joined."""
    for slug, method in points.groupby("method", sort=False):
        for place, (_, part) in enumerate(method.groupby("line", sort=False)):
            name = ", ".join(filter(None, (part["title"].iloc[0], part["settings"].iloc[0])))
            yield str(slug), name, place, part


def seed_strip(runs: pd.DataFrame, metric: str, measure: Metric, levels: list[tuple[str, float]]) -> go.Figure:
    """Every seed as a mark, one row per method and parameters, the mean as a tick; simple baselines as level lines.

    Args:
        runs: of `tables.runs_frame`, with a column `row`: the words of the mark's row.
        metric: the metric's name.
        measure: of isotropy, told where one points at a mark.
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
            customdata=_hover_data(part.assign(isotropy=part[measure.slug]), metric, measure),
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
    _ring_collapsed(figure, runs.assign(row=runs["row"].map(escape)), "value", "row")
    for place, (words, value) in enumerate(sorted(levels, key=lambda level: level[1])):
        line = {
            "color": "rgba(127,134,145,0.9)",
            "dash": theme.LEVEL_DASHES[place % len(theme.LEVEL_DASHES)],
            "width": 1.5,
        }
        figure.add_vline(x=value, line=line)
        # in the legend, because words beside the lines run into each other on a narrow screen
        name = f"{escape(words)} {decimals(value)}"
        figure.add_scatter(x=[None], y=[None], mode="lines", line=line, name=name)
    figure.update_layout(
        theme.figure_layout(
            height=130 + 34 * len(rows),
            xaxis={"title": {"text": escape(metric)}},
            yaxis={"categoryorder": "array", "categoryarray": [escape(text) for text in reversed(rows)]},
            showlegend=bool(levels) or bool(runs["collapsed"].any()),
            margin={"t": 48},
        )
    )
    return figure


def _ring_collapsed(figure: go.Figure, points: pd.DataFrame, x: str, y: str) -> None:
    """A ring around the mark of every run whose predictions are constant, named in the legend."""
    collapsed = points[points["collapsed"] != ""]
    if len(collapsed):
        figure.add_scatter(
            x=collapsed[x].tolist(),
            y=collapsed[y].tolist(),
            mode="markers",
            name="collapsed",
            marker={"symbol": "circle-open", "size": 20, "color": MARK_LINE["color"], "line": {"width": 2.5}},
            hoverinfo="skip",
        )


def _room(values: pd.Series) -> dict[str, Any]:
    """An axis range for values that hardly differ; nothing for others, which Plotly fits well."""
    known = values.dropna()
    if known.empty or known.max() - known.min() >= NARROW:
        return {}
    middle = float(known.max() + known.min()) / 2
    return {"range": [middle - NARROW, middle + NARROW]}


def _hover_data(part: pd.DataFrame, metric: str, measure: Metric) -> list[list[Any]]:
    """Per mark: method with settings, both values, seed, problem, run. Text is escaped: Plotly would read tags in it."""
    return [
        [
            escape(", ".join(str(words) for words in (row.title, row.variant, getattr(row, "settings", "")) if words)),
            escape(
                f"{metric} {decimals(row.value)}, {measures.with_cloud(measure)} {decimals(row.isotropy, measure.decimals)}"
            ),
            row.seed,
            escape(str(row.problem)) or "finished",
            row.run,
        ]
        for row in part.itertuples()
    ]

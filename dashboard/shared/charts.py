"""Frames → Plotly figures of finished runs. No Streamlit here; live curves are drawn by the components instead."""

from __future__ import annotations

import functools
import html
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from dashboard.shared import measures, tables, theme
from dashboard.shared.explanations import Explanation
from isoviz.formatting import decimals
from isoviz.metrics.protocol import Metric
from isoviz.runs.naming import setting
from isoviz.statistics import front, mean_sd
from isoviz.tasks.metrics import METRICS

TRADEOFF = Explanation(
    title="Isotropy against performance",
    reading=(
        "Each small mark is one run; a large one is the mean of a setting over its seeds, with a standard deviation both ways. "
        "A slope is a correlation among these runs, not a cause. The dotted line is the Pareto "
        "front: no other setting is higher on both."
    ),
    formula=r"\bar x \pm s_x, \ \bar y \pm s_y \ \text{ over the seeds of a setting}",
    paper="Rudman & Eickhoff 2024, figure 3.",
)

PARAMETER = Explanation(
    title="Against the method's parameter",
    reading=(
        "Each mark is one run at its parameter value. Lines join the means of otherwise identical runs; the "
        "dotted level marks runs without the parameter. If the marks at one value scatter as much as the line moves, the "
        "parameter has no visible effect."
    ),
    formula=r"\bar y(\lambda) = \frac{1}{n_\lambda} \sum_{\text{seeds}} y",
    paper="Rudman & Eickhoff 2024, figures 5 and 7.",
)

SEEDS = Explanation(
    title="Every seed",
    reading=(
        "Each mark is one run, the vertical tick their mean; dotted lines are simple baselines. If the marks of "
        "two methods overlap, these runs show no difference, whatever their means."
    ),
    formula=r"s = \sqrt{\frac{1}{n - 1} \sum_{i} (y_i - \bar y)^2}",
    paper="Reimers & Gurevych 2017 on reporting score distributions.",
)

escape = functools.partial(html.escape, quote=False)
"""Escape text for Plotly, which interprets tags but not quotes."""

MARK_LINE: dict[str, Any] = {"width": 1, "color": "rgba(127,134,145,0.9)"}
NARROW = 0.04
"""If values differ by less, the axis is about this wide, so that nearly equal values look nearly equal."""
_HOVER = "%{customdata[0]}<br>%{customdata[1]}<br>seed %{customdata[2]}<br>%{customdata[3]}<extra>run %{customdata[4]}</extra>"

MOST_LINES = 24
"""Most lines in a figure against a parameter: more would share colours and dashes, and take seconds to draw."""


def tradeoff(points: pd.DataFrame, metric: str, measure: Metric, parameter: str) -> go.Figure:
    """A measure of isotropy (x) against the task metric (y): a small mark per run, a large one with error bars per setting.

    Symbol = method; colour = the parameter's value if there are at least two, else the method's colour.

    Args:
        points: of `tables.points`.
        metric, measure: on the axes.
        parameter: the parameter's label, for the colour bar. Runs without it are drawn in their method's colour.
    """
    figure = go.Figure()
    values = sorted(set(points["at"].dropna()))
    by_value = len(values) > 1
    means = tables.setting_means(points)
    spread = means[means["n"] > 1]
    for slug, part in _by_colour(points, by_value):
        figure.add_scatter(
            x=part["isotropy"].tolist(),
            y=part["value"].tolist(),
            mode="markers",
            marker={
                **_marker(slug, part, by_value),
                "size": 8 if len(spread) else 11,
                "opacity": 0.6 if len(spread) else 0.9,
            },
            showlegend=False,
            customdata=_hover_data(part, metric, measure),
            hovertemplate=_HOVER,
        )
    for slug, part in _by_colour(spread, by_value):
        figure.add_scatter(
            x=part["isotropy"].tolist(),
            y=part["value"].tolist(),
            error_x=_error_bar(part["isotropy_sd"]),
            error_y=_error_bar(part["value_sd"]),
            mode="markers",
            marker={**_marker(slug, part, by_value), "size": 14},
            showlegend=False,
            text=_mean_words(part, metric, measure),
            hovertemplate="%{text}<extra></extra>",
        )
    _pareto(figure, means, metric, measure)
    _ring_collapsed(figure, points, "isotropy", "value")
    # the legend explains the symbols, whatever the colours mean
    for method, part in points.groupby("method", sort=False):
        slug = str(method)
        coloured = by_value and part["at"].notna().any()
        figure.add_scatter(
            x=[None],
            y=[None],
            mode="markers",
            name=escape(part["title"].iloc[0]),
            marker={
                "size": 11,
                "symbol": theme.method_symbol(slug),
                "color": theme.NEUTRAL if coloured else theme.method_colour(slug),
            },
        )
    axes = {"xaxis_type": measure.axis, "yaxis": _room(points["value"]), "coloraxis": _colour_axis(values, parameter)}
    return theme.titled(figure, escape(measures.with_cloud(measure)), metric, height=460, **axes)


def _by_colour(frame: pd.DataFrame, by_value: bool) -> Iterator[tuple[str, pd.DataFrame]]:
    """The rows of each method; if colour shows the parameter, rows without a value come separately."""
    scaled = frame["at"].notna() & by_value
    for (slug, _), part in frame.groupby(["method", scaled.rename("scaled")], sort=False):
        yield str(slug), part


def _marker(slug: str, part: pd.DataFrame, by_value: bool) -> dict[str, Any]:
    marker: dict[str, Any] = {"symbol": theme.method_symbol(slug), "line": MARK_LINE}
    if by_value and part["at"].notna().all():
        return marker | {"color": part["at"].tolist(), "coloraxis": "coloraxis"}
    return marker | {"color": theme.method_colour(slug)}


def _colour_axis(values: list[float], parameter: str) -> dict[str, Any]:
    """A diverging scale around 0 if any value is negative, else a sequential scale over the range."""
    if len(values) < 2:
        return {"showscale": False}
    limit = max(abs(value) for value in values)
    signed = values[0] < 0
    return {
        "colorscale": theme.STRENGTH_SCALE if signed else theme.POINT_SCALES["light"],
        "cmin": -limit if signed else values[0],
        "cmax": limit if signed else values[-1],
        "showscale": True,
        "colorbar": {
            "title": {"text": escape(parameter)},
            "thickness": 12,
            "len": 0.9,
            "outlinewidth": 0,
            **_ticks_at(values),
        },
    }


def _error_bar(deviations: pd.Series) -> dict[str, Any]:
    return {"type": "data", "array": deviations.tolist(), "thickness": 1.2, "width": 4, "color": MARK_LINE["color"]}


def _mean_words(means: pd.DataFrame, metric: str, measure: Metric) -> list[str]:
    """Hover text per setting: method and settings, both means with deviations, seeds. Escaped."""
    return [
        "<br>".join(
            (
                _named(row),
                escape(f"{metric} {decimals(row.value)} ± {decimals(row.value_sd)}"),
                escape(
                    f"{measures.with_cloud(measure)} {decimals(row.isotropy, measure.decimals)} ± "
                    f"{decimals(row.isotropy_sd, measure.decimals)}"
                ),
                f"mean of {row.n} seeds",
            )
        )
        for row in means.itertuples()
    ]


def _pareto(figure: go.Figure, means: pd.DataFrame, metric: str, measure: Metric) -> None:
    """A line through the settings that no other setting exceeds on both axes. Drawn only if the measure's direction is known."""
    task_metric = METRICS.get(metric)
    upwards = 1 if task_metric is None or task_metric.higher_is_better else -1
    direction = measures.towards_isotropy(measure)
    if not direction or len(means) < 3:
        return
    places = front(list(zip(direction * means["isotropy"], upwards * means["value"], strict=True)))
    best = means.iloc[places]
    figure.add_scatter(
        x=best["isotropy"].tolist(),
        y=best["value"].tolist(),
        mode="lines",
        line={"color": MARK_LINE["color"], "width": 1.5, "dash": "dot"},
        name="Pareto front",
        hoverinfo="skip",
    )


def against_parameter(
    points: pd.DataFrame, metric: str, measure: Metric, parameter: str, *, of_isotropy: bool = False
) -> go.Figure:
    """A value against a method parameter: one mark per run, and a line through the means of otherwise identical runs.

    Runs without the parameter are level lines. If a method has several lines, their names say how they differ. At most the first
    `MOST_LINES` swept and level lines are drawn.

    Args:
        points: of `tables.points`.
        metric, measure: the task metric and the measure of isotropy.
        parameter: the parameter's label, for the x axis.
        of_isotropy: put the measure on the y axis instead of the task metric.
    """
    figure = go.Figure()
    column, label = ("isotropy", measures.with_cloud(measure)) if of_isotropy else ("value", metric)
    axis = measure.axis if of_isotropy else "linear"
    swept, level = points[points["at"].notna()], points[points["at"].isna()]
    for slug, name, place, part in itertools.islice(_lines(swept), MOST_LINES):
        colour = theme.method_colour(slug)
        means = part[part["collapsed"] == ""].groupby("at")[column].agg(["mean", "std", "count"])
        figure.add_scatter(
            x=means.index.tolist(),
            y=means["mean"].tolist(),
            error_y={**_error_bar(means["std"]), "color": colour, "visible": bool((means["count"] > 1).any())},
            mode="lines",
            line={"color": colour, "width": 2, "dash": theme.method_dash(slug, place)},
            name=escape(name),
            legendgroup=str(part["line"].iloc[0]),
            text=[f"n = {count}" for count in means["count"]],
            hovertemplate="mean %{y:.3f} at %{x} (%{text})",
        )
        figure.add_scatter(
            x=part["at"].tolist(),
            y=part[column].tolist(),
            mode="markers",
            marker=_run_mark(slug, place),
            showlegend=False,
            legendgroup=str(part["line"].iloc[0]),
            customdata=_hover_data(part, metric, measure),
            hovertemplate=_HOVER,
        )
    _ring_collapsed(figure, swept, "at", column)
    for slug, name, place, part in itertools.islice(_lines(level), MOST_LINES):
        mean, _ = mean_sd(part.loc[part["collapsed"] == "", column])
        if mean is not None:
            line = _level_line(figure, f"{name} {decimals(mean)} (n = {len(part)})", theme.method_colour(slug), place)
            figure.add_hline(y=mean, line=line)
    named = sum(trace.showlegend is not False for trace in figure.data)
    height = 340 + 12 * max(0, named - 4)  # room for the legend above
    axes = {
        "xaxis": _ticks_at(swept["at"]),
        "yaxis": {"type": axis, **(_room(points[column]) if axis == "linear" else {})},
    }
    return theme.titled(figure, escape(parameter), escape(label), height=height, **axes)


def _ticks_at(values: Iterable[float]) -> dict[str, Any]:
    """Ticks at the values that ran, if they are few."""
    distinct = sorted(set(values))
    if len(distinct) > 9:
        return {}
    return {"tickvals": distinct, "ticktext": [setting(float(value)) for value in distinct]}


def _lines(points: pd.DataFrame) -> Iterator[tuple[str, str, int, pd.DataFrame]]:
    """Each set of runs whose means may be joined: method slug, name, index among the method's lines, rows."""
    for slug, method in points.groupby("method", sort=False):
        for index, (_, part) in enumerate(method.groupby("line", sort=False)):
            name = ", ".join(filter(None, (part["title"].iloc[0], part["settings"].iloc[0])))
            yield str(slug), name, index, part


def seed_strip(runs: pd.DataFrame, metric: str, measure: Metric, levels: list[tuple[str, float]]) -> go.Figure:
    """Every seed as a mark, one row per method and parameters, the mean as a tick; simple baselines as level lines.

    Args:
        runs: of `tables.runs_frame`, with a column `row`: the label of the mark's row.
        metric: the metric's name.
        measure: of isotropy, for the hover text.
        levels: (title, value) of baselines.
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
            marker=_run_mark(str(slug)),
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
    for index, (title, value) in enumerate(sorted(levels, key=lambda level: level[1])):
        figure.add_vline(x=value, line=_level_line(figure, f"{title} {decimals(value)}", MARK_LINE["color"], index))
    order = {"categoryorder": "array", "categoryarray": [escape(text) for text in reversed(rows)]}
    more = {
        "height": 130 + 34 * len(rows),
        "showlegend": bool(levels) or bool(runs["collapsed"].any()),
        "margin": {"t": 48},
    }
    return theme.titled(figure, escape(metric), "", yaxis=order, **more)


def _run_mark(slug: str, place: int = 0) -> dict[str, Any]:
    """The mark of one run in a method's colour; `place` among several lines of the method."""
    symbol = theme.method_symbol(slug, place)
    return {"size": 9, "color": theme.method_colour(slug), "symbol": symbol, "opacity": 0.75, "line": MARK_LINE}


def _level_line(figure: go.Figure, name: str, colour: str, place: int) -> dict[str, Any]:
    """The style of a level line, which the legend names: labels at the lines would overlap on a narrow screen."""
    line = {"color": colour, "dash": theme.LEVEL_DASHES[place % len(theme.LEVEL_DASHES)], "width": 1.75}
    figure.add_scatter(x=[None], y=[None], mode="lines", line=line, name=escape(name))
    return line


def _ring_collapsed(figure: go.Figure, points: pd.DataFrame, x: str, y: str) -> None:
    """A ring around the mark of every run with constant predictions, with an entry in the legend."""
    collapsed = points[points["collapsed"] != ""]
    if len(collapsed):
        figure.add_scatter(
            x=collapsed[x].tolist(),
            y=collapsed[y].tolist(),
            mode="markers",
            name="learned nothing",
            marker={"symbol": "circle-open", "size": 20, "color": MARK_LINE["color"], "line": {"width": 2.5}},
            hoverinfo="skip",
        )


def _room(values: pd.Series) -> dict[str, Any]:
    """An axis range for values that hardly differ; empty otherwise, because Plotly's default fits."""
    defined = values.dropna()
    if defined.empty or defined.max() - defined.min() >= NARROW:
        return {}
    middle = float(defined.max() + defined.min()) / 2
    return {"range": [middle - NARROW, middle + NARROW]}


def _named(row: Any) -> str:
    """Method and settings. Escaped, because Plotly interprets tags."""
    return escape(", ".join(str(text) for text in (row.title, row.variant, getattr(row, "settings", "")) if text))


def _hover_data(part: pd.DataFrame, metric: str, measure: Metric) -> list[list[Any]]:
    """Hover data per mark: method and settings, both values, seed, problem, run. Escaped, because Plotly interprets tags."""
    return [
        [
            _named(row),
            escape(
                f"{metric} {decimals(row.value)}, {measures.with_cloud(measure)} {decimals(row.isotropy, measure.decimals)}"
            ),
            row.seed,
            escape(str(row.problem)) or "finished",
            row.run,
        ]
        for row in part.itertuples()
    ]

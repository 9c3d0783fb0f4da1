"""Plotly figures of studies as plain JSON, without plotly: traces, axes and reference lines of one panel.

`dashboard.papers.drawing` adds the app's look. Traces with the same `legendgroup` have one colour: that of the method with this slug,
grey for `ADDED`, or, with a `value` in their `meta`, that of the value on a scale around 0.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from isoviz.studies.judging import primary
from isoviz.studies.records import Ends, Evidence, mean_and_ends, task_title
from isoviz.studies.result import Figure, Panel

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Trace: TypeAlias = dict[str, Any]
Axis: TypeAlias = Mapping[str, Any]
Reference: TypeAlias = tuple[str, str, float]
"""A straight line across a panel: its label, the axis that it crosses (x or y), and where."""

ADDED: Final = "added"
"""The group of what is not in the paper."""
REFERENCE: Final = "reference"
SHADES: Final = 63
"""Steps between 0 and 1 that a recorded matrix keeps; an eye tells fewer apart."""
_FEW: Final = 25
"""Points of a line up to which each has a marker."""


def axis(label: str, low: float | None = None, high: float | None = None, *, log: bool = False) -> Axis:
    """An axis with its limits, if they are meant; only `low` = 0 without `high`."""
    layout: dict[str, Any] = {"title": {"text": label}, "type": "log" if log else "linear"}
    if low is not None:
        layout |= {"rangemode": "tozero"} if high is None else {"range": [low, high]}
    return layout


def panel(title: str, x: Axis, y: Axis, traces: Sequence[Trace], references: Iterable[Reference] = ()) -> Panel:
    """One pair of axes with its traces; whole numbers on x, such as layers, are ticked one by one."""
    places = [value for trace in traces for value in trace["x"]]
    counts = bool(places) and all(value == round(value) for value in places) and max(places) - min(places) <= _FEW
    layout: dict[str, Any] = {
        "xaxis": {**x, "dtick": 1} if counts and x["type"] == "linear" else dict(x),
        "yaxis": dict(y),
    }
    shapes, labels = [], []
    for label, crossed, at in references:
        dash = "dash" if crossed == "y" else "dot"
        ends = {"x0": 0, "x1": 1, "xref": "paper"} if crossed == "y" else {"y0": 0, "y1": 1, "yref": "paper"}
        shapes.append(
            {"type": "line", f"{crossed}0": at, f"{crossed}1": at, "line": {"width": 1.5, "dash": dash}, **ends}
        )
        legend = {"type": "scatter", "x": [None], "y": [None], "mode": "lines", "name": label}
        labels.append({**legend, "line": {"width": 1.5, "dash": dash}, "legendgroup": REFERENCE})
    return Panel(
        title=title, plot={"data": [*traces, *labels], "layout": layout | ({"shapes": shapes} if shapes else {})}
    )


def line(
    name: str, group: str, x: Sequence[float], ends: Sequence[Ends], *, spread: bool = True, **meta: float
) -> Trace:
    """A line through means; `spread` draws their ends as error bars. `meta`: the `value` of its parameter."""
    trace: Trace = {
        "type": "scatter",
        "name": name,
        "legendgroup": group,
        "x": list(x),
        "y": [mean for mean, _, _ in ends],
        "mode": "lines+markers" if spread or len(x) < _FEW else "lines",
        "hovertemplate": "%{y:.4g} at %{x:.4g}",
    }
    return trace | ({"error_y": error_bars(ends)} if spread else {}) | ({"meta": meta} if meta else {})


def formula(group: str, x: Sequence[float], y: Sequence[float]) -> Trace:
    """A thin line of what a formula predicts for a group."""
    thin = {"mode": "lines", "line": {"width": 1}, "showlegend": False, "hoverinfo": "skip"}
    return {"type": "scatter", "name": f"expected, {group}", "legendgroup": group, "x": list(x), "y": list(y), **thin}


def points(symbol: str, settings: Sequence[tuple[str, float, Ends, Ends]]) -> list[Trace]:
    """Single points with error bars both ways, coloured by a parameter: name, value, x and y of each."""
    if not settings:
        return []
    names, values, x, y = zip(*settings, strict=True)
    limit = max(map(abs, values)) or 1.0
    colorbar = {"title": {"text": symbol}, "thickness": 10, "outlinewidth": 0, "len": 0.9}
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": symbol,
            "showlegend": False,
            "text": list(names),
            "x": [mean for mean, _, _ in x],
            "y": [mean for mean, _, _ in y],
            "error_x": error_bars(x),
            "error_y": error_bars(y),
            "marker": {"size": 11, "color": list(values), "cmin": -limit, "cmax": limit, "colorbar": colorbar},
            "hovertemplate": "%{text}<br>%{x:.4g}, %{y:.4g}<extra></extra>",
        }
    ]


def error_bars(ends: Sequence[Ends]) -> dict[str, Any]:
    """From each mean to the ends of its spread."""
    up, down = [high - mean for mean, _, high in ends], [mean - low for mean, low, _ in ends]
    return {"type": "data", "symmetric": False, "array": up, "arrayminus": down, "thickness": 1}


def log_bars(title: str, label: str, x: Sequence[float], y: Sequence[float], zero: float, y_axis: Axis) -> Panel:
    """Bars over powers of ten, x the middle of each; values at zero have a separate bar on the left."""
    at = [math.log10(middle) for middle in x]
    low, high = math.floor(min(at)), math.ceil(max(at))
    decades = range(low, high + 1, max(1, (high - low) // 5))
    ticks = {
        "range": [low - 2.6, high],
        "tickvals": [low - 2, *decades],
        "ticktext": ["0", *(f"10<sup>{decade}</sup>".replace("-", "−") for decade in decades)],
    }
    bar: Trace = {"type": "bar", "legendgroup": "bars", "showlegend": False}
    texts = {
        "customdata": [f"{middle:.2g}" for middle in x],
        "hovertemplate": "%{y:.3g} at about %{customdata}<extra></extra>",
    }
    bars = [
        {**bar, "x": at, "y": list(y), "width": at[1] - at[0], **texts},
        {**bar, "x": [low - 2], "y": [zero], "width": 0.8, "hovertemplate": "%{y:.3g} at 0<extra></extra>"},
    ]
    layout = {"xaxis": {**axis(label), **ticks}, "yaxis": dict(y_axis), "bargap": 0.0}
    return Panel(title=title, plot={"data": bars, "layout": layout})


def matrix(title: str, values: ArrayLike, label: str = "dimensions, clustered") -> Panel:
    """The picture of a matrix (d, d) with entries from 0 to 1, in `SHADES` steps of a byte each."""
    import numpy as np

    cells = np.rint(np.asarray(values, dtype=np.float64) * SHADES).astype(np.uint8)
    bar = {"thickness": 10, "outlinewidth": 0, "tickvals": [0, SHADES / 2, SHADES], "ticktext": ["0", "0.5", "1"]}
    z = {
        "dtype": "u1",
        "bdata": base64.b64encode(cells.tobytes()).decode("ascii"),
        "shape": f"{len(cells)}, {len(cells)}",
    }
    heat = {"type": "heatmap", "z": z, "zmin": 0, "zmax": SHADES, "hoverinfo": "skip", "colorbar": bar}
    hidden = dict.fromkeys(("showticklabels", "showgrid", "zeroline"), False) | {"ticks": "", "constrain": "domain"}
    x = {**axis(label), **hidden}
    return Panel(
        title=title,
        plot={"data": [heat], "layout": {"xaxis": x, "yaxis": {**x, "autorange": "reversed", "scaleanchor": "x"}}},
    )


# ---------------------------------------------------------------------------------------------------- trained studies


def mean_line(curves: Sequence[Sequence[float | None]], name: str, group: str, first: int, **more: Any) -> list[Trace]:
    """The mean of some runs' curves with its standard deviation, at every position that all of them have; nothing without one.

    Args:
        first: x of the first position.
        more: see `line`.
    """
    length = min(map(len, curves), default=0)
    places = [at for at in range(length) if all(one[at] is not None for one in curves)]
    ends = [ends for at in places if (ends := mean_and_ends(one[at] for one in curves))]
    return [line(name, group, [float(first + at) for at in places], ends, **more)] if places else []


def panels(
    title: str,
    x_axis: str,
    y_axis: Axis | None,
    content: Callable[[Evidence, str], tuple[Sequence[Trace], Sequence[Reference]]],
    between: str = ", ",
) -> Callable[[Evidence, str], Figure]:
    """A figure with a panel for each task and model.

    Args:
        y_axis: None for the task's metric.
        content: traces and reference lines, from a panel's runs and the task's metric.
        between: task and model in a panel's title.
    """

    def figure(evidence: Evidence, place: str) -> Figure:
        drawn = [
            panel(
                f"{task_title(task)}{between}{model.rsplit('/', 1)[-1]}",
                axis(x_axis),
                y_axis or axis(primary(task)),
                *content(part, primary(task)),
            )
            for task, model, part in evidence.each("task", "model")
        ]
        return Figure(title=title, place=place, columns=min(3, len(drawn)), panels=drawn)

    return figure

"""Rows of records → Plotly figures of encoders side by side. No Streamlit here."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from dashboard.shared import theme
from dashboard.shared.charts import escape
from dashboard.shared.explanations import Explanation

FLOORS = Explanation(
    title="Noise floor and threshold",
    reading=(
        "Of the pairs of unrelated texts, 99 % have a lower cosine than the dot; the bar is its 95 % interval, which counts "
        "texts, not pairs. Above the diamond, nine in ten pairs are related if half of all pairs are; no diamond means that no "
        "cosine reaches that."
    ),
    formula=r"\Pr(\cos \le f \mid \text{unrelated}) = 0.99",
    paper="Woodruff 1952, doi:10.2307/2280781 (interval).",
)
LAYERS = Explanation(
    title="Over the layers",
    reading=(
        "Each mark is a layer, one vector per text (the mean over its tokens), from the embedding output (0) to the last layer "
        "(1). The range of many measures depends on the width of the encoder, so compare shapes before heights."
    ),
    formula=r"x = \frac{\text{layer}}{\text{depth}}",
    paper="Ethayarajh 2019, arXiv:1909.00512, compares layers.",
)


def floors(rows: pd.DataFrame) -> go.Figure:
    """The noise floor of each row with its interval, and its threshold. `label` names the rows."""
    figure = go.Figure()
    rows = rows.assign(label=rows["label"].map(escape))
    floor, low, high = (rows[name] for name in ("noise_floor", "noise_floor_low", "noise_floor_high"))
    figure.add_scatter(
        x=floor.tolist(),
        y=rows["label"].tolist(),
        error_x={"type": "data", "array": (high - floor).tolist(), "arrayminus": (floor - low).tolist(), "width": 6},
        mode="markers",
        name="noise floor (99 %)",
        marker={"size": 6, "color": theme.PALETTE[0]},
        hovertemplate="%{y}<br>noise floor %{x:.4f}<extra></extra>",
    )
    found = rows[rows["threshold"].notna()]
    figure.add_scatter(
        x=found["threshold"].tolist(),
        y=found["label"].tolist(),
        mode="markers",
        name="threshold",
        marker={"size": 10, "symbol": "diamond", "color": theme.MARK},
        hovertemplate="%{y}<br>threshold %{x:.4f}<extra></extra>",
    )
    axes = {"xaxis": {"range": [min(0.0, low.min() - 0.02), 1]}, "yaxis": {"autorange": "reversed"}}
    return theme.titled(figure, "cosine", "", height=120 + 40 * len(rows), **axes)


def over_layers(rows: pd.DataFrame, column: str, title: str) -> go.Figure:
    """A line per encoder, from its embedding output (0) to its last layer (1)."""
    figure = go.Figure()
    for number, (label, part) in enumerate(rows.groupby("label", sort=False)):
        style = {"color": theme.PALETTE[number % len(theme.PALETTE)], "dash": theme.DASHES[number % len(theme.DASHES)]}
        figure.add_scatter(
            x=(part["layer"] / part["depth"].clip(lower=1)).tolist(),
            y=[None if pd.isna(value) else value for value in part[column]],
            mode="lines+markers",
            name=escape(str(label)),
            line=style,
            customdata=part["layer"].tolist(),
            hovertemplate="layer %{customdata}: %{y:.4g}",
        )
    return theme.titled(figure, "layer / depth", escape(title))

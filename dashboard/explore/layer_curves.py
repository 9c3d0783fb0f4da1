"""What changes from layer to layer: prompt entropy with its valley, and the nearest rows that layers have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import plotly.graph_objects as go
import streamlit as st
from numpy.typing import NDArray

from dashboard.components.figure import Prepared
from dashboard.explore import figures, numbers
from dashboard.explore.form import Pane
from dashboard.explore.sections import cached, plot, sized
from dashboard.shared import explanations, theme, wording
from dashboard.shared.explanations import Explanation
from isoviz.exploring import layers
from isoviz.exploring.layers import Retention, Valley
from isoviz.statistics import intervals
from isoviz.statistics.intervals import Interval

ENTROPY: Final = Explanation(
    title="Prompt entropy",
    reading=(
        "How evenly the tokens of one text spread over directions: 1 if they are orthogonal and equally long, 0 if they lie on one "
        "line. A valley is a layer in the middle where it is lowest; in many decoders one token of massive length causes it."
    ),
    formula=r"\frac{-\sum_i p_i \log p_i}{\log \min(T, d)}, \quad p = \lambda / \textstyle\sum_j \lambda_j, \quad"
    r" \lambda = \operatorname{eig}(Z Z^\top)",
    paper="Skean et al. 2025; Queipo-de-Llano et al. 2025 (compression valleys).",
)
RETENTION: Final = Explanation(
    title="Neighbours that layers keep",
    reading=(
        "The share of each row's 10 nearest rows, by cosine, that a layer keeps from the layer before, and that the last layer has too. "
        "Where both lines are high, layers change little; the dotted line is what unrelated layers would share."
    ),
    formula=r"\tfrac{1}{10 n} \sum_i |\mathcal{N}_{10}^{(l)}(i) \cap \mathcal{N}_{10}^{(m)}(i)|",
    paper="After the Neighborhood Retention Score of Jiang et al. 2026.",
)
Points = Sequence[tuple[float, Interval | None]]
Curve = tuple[Prepared | None, str, str]
"""A figure, what it shows in words, and its caption."""


def applies(panes: list[Pane]) -> bool:
    """Whether a view has layers to compare."""
    return any(pane.view.depth for pane in panes)


def section(panes: list[Pane]) -> None:
    """Both curves of each view with layers."""
    for pane in panes:
        if not pane.view.depth:
            continue
        if pane.views > 1:
            st.markdown(f"**View {pane.number}**")
        for column, name in zip(st.columns(2, gap="large"), _CURVES, strict=True):
            explanation, draw = _CURVES[name]
            with column:
                with st.container(horizontal=True, vertical_alignment="center"):
                    st.markdown(f"**{explanation.title}**")
                    explanations.show(explanation)
                figure, words, caption = draw(pane)
                if figure is not None:
                    plot(pane, name, figure, f"{explanation.title} by layer. {words}")
                st.caption(wording.plain(caption))


@cached()
def _entropy(pane: Pane) -> Curve:
    arrays = [pane.view.array(layer, "tokens", "prompts") for layer in range(pane.view.depth + 1)]
    values = np.stack([array for array in arrays if array is not None])
    values = values[:, ~np.isnan(values).any(axis=0)]
    if not values.size:
        return None, "", "Undefined: no text has it at every layer."
    dip = layers.valley(values)
    words = valley_words(dip, values.mean(axis=1))
    notes = numbers.notes_on(pane.view.entry(pane.view.depth, "tokens"), "prompt_entropy")
    figure = entropy_curve([(float(of.mean()), intervals.of_mean(of.tolist())) for of in values], dip)
    return sized(figure, pane.views), words, f"{words} {'. '.join(note[0].upper() + note[1:] for note in notes)}."


def valley_words(dip: Valley | None, means: NDArray[np.floating]) -> str:
    """A sentence on the valley, or on where entropy is lowest instead."""
    if dip is None:
        end = "first" if means.argmin() == 0 else "last"
        return f"No valley: entropy is lowest at the {end} layer ({wording.number(float(means.min()), 3)})."
    sure = f" [{dip.interval.low:.3f}, {dip.interval.high:.3f}]" if dip.interval else ""
    return f"A valley at layer {dip.layer}: {dip.depth:.3f}{sure} below the lower of its two sides."


def entropy_curve(points: Points, dip: Valley | None) -> go.Figure:
    """The mean over texts by layer with its interval; the valley is marked."""
    figure = go.Figure()
    _line(figure, points, 0, "tokens of a text", figures.pooling_colour("tokens"))
    if dip is not None:
        figure.add_scatter(
            x=[dip.layer],
            y=[points[dip.layer][0]],
            mode="markers",
            marker={"symbol": "triangle-down", "size": 13, "color": theme.MARK},
            name="valley",
            hoverinfo="skip",
        )
    return _titled(figure, "prompt entropy")


@cached()
def _retention(pane: Pane) -> Curve:
    kept = None
    if pane.pooling != "tokens" and len(pane.layers) > pane.view.depth:
        kept = layers.retention([pane.view.mapped(layer, pane.pooling) for layer in pane.layers])
    if kept is None:
        return None, "", f"It needs {layers.FEWEST_ROWS} rows, and a pooling that every layer has."
    words = f"The other layers share most neighbours with layer {kept.choice}"
    of = f" of {wording.number(pane.entry.n)}" if kept.rows < pane.entry.n else ""
    caption = f"{words}: a choice without labels, which need not serve a task best. Pooling {pane.pooling}, "
    caption += f"{wording.number(kept.rows)}{of} rows; {kept.by_chance:.3f} by chance."
    return sized(retention_curves(kept), pane.views), words, caption


def retention_curves(kept: Retention) -> go.Figure:
    """What each layer keeps of the layer before, and what the last layer shares with it."""
    figure = go.Figure()
    _line(figure, kept.from_before, 1, "kept from the layer before", theme.PALETTE[0])
    _line(figure, kept.to_last, 0, "shared with the last layer", theme.PALETTE[1], "dash")
    figure.add_scatter(
        x=[0, len(kept.to_last)],
        y=[kept.by_chance] * 2,
        mode="lines",
        line={"color": figures.GREY, "dash": "dot", "width": 1.5},
        name="by chance",
        hoverinfo="skip",
    )
    return _titled(figure, "share of the 10 nearest rows", yaxis_range=[0, 1.02])


def _line(figure: go.Figure, points: Points, first: int, name: str, colour: str, dash: str = "solid") -> None:
    values = [value for value, _ in points]
    ends = [(end.low, end.high) if end else None for _, end in points]
    figure.add_scatter(
        x=list(range(first, first + len(points))),
        y=values,
        error_y=theme.error_bars(values, ends),
        mode="lines+markers",
        line={"color": colour, "dash": dash, "width": 2},
        marker={"color": colour, "size": 8},
        name=name,
        hovertemplate="layer %{x}: %{y:.3f}<extra></extra>",
    )


def _titled(figure: go.Figure, y: str, **axes: Any) -> go.Figure:
    return theme.titled(figure, "layer (0: embedding output)", y, xaxis_dtick=1, xaxis_tick0=0, **axes)


_CURVES: Final[dict[str, tuple[Explanation, Callable[[Pane], Curve]]]] = {
    "prompt_entropy": (ENTROPY, _entropy),
    "retention": (RETENTION, _retention),
}

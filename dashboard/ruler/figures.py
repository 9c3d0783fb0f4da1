"""The figure and the tables of the Ruler page. No Streamlit here: a ruler in, Plotly figures and frames out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from dashboard.shared import theme
from dashboard.shared.explanations import Explanation
from isoviz.formatting import decimals
from isoviz.readouts.ruler import Ruler
from isoviz.readouts.ruler.near_misses import NearMisses

UNRELATED, RELATED, CURVE, NEAR = theme.NEUTRAL, theme.PALETTE[0], theme.PALETTE[2], theme.PALETTE[4]
_FEWEST_BINS, _MOST_BINS = 24, 90
_DASHES: Final = {0.95: "dot", 0.99: "dash", 0.999: "dashdot"}
"""Quantile of unrelated pairs → its line."""

DISTRIBUTION = Explanation(
    title="Cosines of pairs",
    reading=(
        "Grey: how the cosines of unrelated pairs are distributed; blue: those of related pairs, if they are known; "
        "pink: those of near misses, if they are switched on. 95, 99 or "
        "99.9 % of the unrelated pairs lie left of a broken line, whose band is its 95 % interval. A cosine left of these lines is "
        "no sign of a relation, however high it looks. Below: the probability that a pair with this cosine is related; of a search, that a "
        "query's best hit with this cosine is relevant, with its 95 % interval."
    ),
    formula=r"P(\text{related} \mid c) = \frac{\pi f_1(c)}{\pi f_1(c) + (1 - \pi) f_0(c)}",
    paper="Quantiles: Woodruff 1952, Korn & Graubard 1998. The curve is isotonic; π is the share of related pairs that you assume.",
)
VARIANTS = Explanation(
    title="The same after a transform",
    reading=(
        "AUC is the probability that a related pair has a higher score than an unrelated one; the gain is against the vectors as "
        "they are. Each transform is fitted on half of the rows and judged on the others. If the interval of a gain includes 0, the "
        "two cannot be told apart. A lower floor alone is no gain: rescaling lowers it too."
    ),
    formula=r"\mathrm{AUC} = P(c_{\text{related}} > c_{\text{unrelated}})",
    paper="CSLS: Conneau et al. 2018, arXiv:1710.04087. All-but-the-top: Mu & Viswanath 2018, arXiv:1702.01417.",
)
YOURS, SENTENCES, THRESHOLD = "yours", "your sentences", "threshold"
_MARKS: Final = {YOURS: theme.MARK, SENTENCES: theme.PALETTE[1], THRESHOLD: theme.PALETTE[3]}
"""Vertical line → its colour."""


def densities(ruler: Ruler, near: NearMisses | None = None) -> pd.DataFrame:
    """Shares of unrelated and of related pairs, and of near misses if there are some, by their cosine, in bins, and P(related | cosine)."""
    related = ruler.related
    both = [ruler.cosine, *([related.quantiles] if related is not None else [])]
    both += [np.sort(near.cosines, axis=None).tolist()] if near is not None else []
    pairs = min(ruler.compared, ruler.compared if related is None else related.pairs)
    bins = int(np.clip(2.5 * np.sqrt(pairs), _FEWEST_BINS, _MOST_BINS))
    edges = np.linspace(min(one[0] for one in both), max(one[-1] for one in both), bins + 1)
    middle = (edges[1:] + edges[:-1]) / 2
    columns: dict[str, Any] = {"cosine": middle, "unrelated": _shares(edges, ruler.cosine, ruler.percentile)}
    if related is not None:
        columns["related"] = _shares(edges, related.quantiles, ruler.percentile)
        if related.separates:
            columns["probability"] = np.interp(middle, related.cosine, related.probability)
    if near is not None:
        columns["near misses"] = np.histogram(near.cosines, edges)[0] / near.cosines.size
    if ruler.hits is not None:
        columns["best hit relevant"] = np.interp(middle, ruler.hits.cosine, ruler.hits.probability)
    return pd.DataFrame(columns)


def _shares(edges: NDArray[np.float64], quantiles: list[float], percentile: list[float]) -> NDArray[np.float64]:
    below: NDArray[np.float64] = np.interp(edges, quantiles, percentile, left=0.0, right=1.0)
    return np.diff(below)


def distribution(ruler: Ruler, marks: Mapping[str, float], near: NearMisses | None = None) -> go.Figure:
    """Unrelated and related pairs by their cosine, with the noise floor; below, P(related | cosine) if the pairs can be separated.

    Args:
        marks: of `YOURS`, `SENTENCES` and `THRESHOLD`, those that are known, each with its cosine.
    """
    shown = densities(ruler, near)
    figure = go.Figure()
    top = 0.0
    for name, colour in (("unrelated", UNRELATED), ("related", RELATED), ("near misses", NEAR)):
        if name in shown:
            top = max(top, float(shown[name].max()))
            _area(figure, shown["cosine"], shown[name], name, colour)
    for level in ruler.floor:
        if level.share in _DASHES:
            ends = f"{decimals(level.low)} to {decimals(level.high)}"
            said = f"{100 * level.share:g} % of unrelated pairs below {decimals(level.cosine)} ({ends})"
            entry = {
                "legendgroup": "floor",
                "showlegend": level.share == max(_DASHES),
                "hovertemplate": f"{said}<extra></extra>",
            }
            _vertical(figure, level.cosine, top, "noise floor", UNRELATED, _DASHES[level.share], **entry)
            band = {"fillcolor": UNRELATED, "opacity": 0.25, "line_width": 0, "layer": "below"}
            figure.add_vrect(x0=level.low, x1=level.high, **band)
    curve = ruler.hits or (ruler.related if ruler.related is not None and ruler.related.separates else None)
    chance = "P(best hit is relevant)" if ruler.hits is not None else "P(related)"
    if ruler.hits is not None:
        band = {
            "name": "95 % interval",
            "mode": "lines",
            "line_width": 0,
            "yaxis": "y2",
            "showlegend": False,
            "hoverinfo": "skip",
        }
        for end, fill in ((ruler.hits.low, None), (ruler.hits.high, "tonexty")):
            figure.add_scatter(x=ruler.hits.cosine, y=end, fill=fill, fillcolor=_translucent(CURVE), **band)
    if curve is not None:
        figure.add_scatter(
            x=curve.cosine,
            y=curve.probability,
            yaxis="y2",
            mode="lines",
            line={"color": CURVE, "width": 2.5},
            name=chance,
            hovertemplate="cosine %{x:.3f}: %{y:.2f}",
        )
    for name, cosine in marks.items():
        hover = f"{name}: {decimals(cosine)}<extra></extra>"
        _vertical(figure, cosine, top, name, _MARKS[name], "solid", hovertemplate=hover)
        if curve:
            _vertical(figure, cosine, 1, name, _MARKS[name], "solid", yaxis="y2", showlegend=False, hovertemplate=hover)
    above = {"tickformat": ".1~%", "rangemode": "tozero", **({"domain": [0.34, 1.0]} if curve else {})}
    below = {"title": {"text": chance}, "range": [-0.03, 1.05], "domain": [0.0, 0.26]}
    return theme.titled(
        figure,
        "cosine",
        "share of the pairs",
        height=430,
        xaxis={"title": {"text": "cosine"}, "anchor": "y2" if curve else "y"},
        yaxis={"title": {"text": "share of the pairs"}, **above},
        **({"yaxis2": below} if curve else {}),
    )


def _translucent(colour: str) -> str:
    return f"rgba({','.join(str(int(colour[place : place + 2], 16)) for place in (1, 3, 5))},0.22)"


def _area(figure: go.Figure, x: pd.Series, y: pd.Series, name: str, colour: str) -> None:
    figure.add_scatter(
        x=x.tolist(),
        y=y.tolist(),
        mode="lines",
        line={"color": colour, "width": 2, "shape": "hvh"},
        fill="tozeroy",
        fillcolor=_translucent(colour),
        name=name,
        hovertemplate="cosine %{x:.3f}: %{y:.2%}",
    )


def _vertical(figure: go.Figure, x: float, top: float, name: str, colour: str, dash: str, **options: Any) -> None:
    line = {"color": colour, "dash": dash, "width": 2.5 if dash == "solid" else 1.5}
    figure.add_scatter(x=[x, x], y=[0, top], mode="lines", line=line, name=name, **options)


def variants(ruler: Ruler) -> pd.DataFrame:
    """One line per transform: floor, and if pairs are known AUC, gain and its interval."""
    lines = []
    for one in ruler.variants:
        low, high = one.gain[1:] if one.gain is not None else (0.0, 0.0)
        separates = "" if low == high else "more" if low > 0 else "less" if high < 0 else "cannot tell"
        lines.append([one.name, one.noise_floor, one.auc, *(one.gain or (None,) * 3), separates])
    frame = pd.DataFrame(lines, columns=["Vectors", "Floor (99 %)", "AUC", "Gain", "95 % from", "to", "Separates"])
    return frame if ruler.related is not None else frame[["Vectors", "Floor (99 %)"]]


def floor(ruler: Ruler) -> pd.DataFrame:
    """One line per quantile of unrelated pairs, with its interval."""
    lines = [(f"{100 * level.share:g} %", level.cosine, level.low, level.high) for level in ruler.floor]
    return pd.DataFrame(lines, columns=["Unrelated pairs below", "Cosine", "95 % from", "to"])

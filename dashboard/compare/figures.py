"""A comparison of encoders → a Plotly figure and tables. No Streamlit here."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from dashboard.shared import theme
from dashboard.shared.charts import escape
from dashboard.shared.explanations import Explanation
from isoviz.readouts.encoders import QUALITIES, EncoderComparison, Ends, Question

CHANGE = Explanation(
    title="Change from the first encoder",
    reading=(
        "Each dot is how much a quality changes over all questions, with its 95 % interval: right of 0 is higher. The dotted line is "
        "your margin; the verdict is about nDCG@10 only."
    ),
    formula=r"\bar\delta = \frac{1}{q}\sum_i (s_i^{\text{other}} - s_i^{\text{first}})",
    paper="Järvelin & Kekäläinen 2002, doi:10.1145/582415.582418 (nDCG); Smucker et al. 2007, doi:10.1145/1321440.1321528 (paired tests).",
)
_HEADINGS = {**QUALITIES, "noise_floor": "Noise floor (99 %)"}


def changes(found: EncoderComparison) -> go.Figure:
    """A dot with its interval for each encoder and quality, in points; without questions, the neighbours that it finds."""
    figure = go.Figure()
    qualities = QUALITIES if found.questions else {"": "Neighbours found"}
    for place, (name, title) in enumerate(qualities.items()):
        ends = [(one.name, one.change.get(name) if name else one.neighbours) for one in found.differences]
        rows = [(f"{escape(one)}, {title}" if name else escape(one), value) for one, value in ends if value]
        middles, low, high = ([100 * value[end] for _, value in rows] for end in range(3))
        figure.add_scatter(
            x=middles,
            y=[label for label, _ in rows],
            error_x=theme.error_bars(middles, zip(low, high, strict=True)),
            mode="markers",
            name=title,
            marker={"size": 9, "color": theme.PALETTE[place], "symbol": ("circle", "square", "diamond")[place]},
            hovertemplate="%{y}: %{x:.2f}<extra></extra>",
        )
    order = [f"{escape(one.name)}, {title}" for one in found.differences for title in QUALITIES.values()]
    axis = {"autorange": "reversed", **({"categoryorder": "array", "categoryarray": order} if found.questions else {})}
    axes = {"yaxis": axis, "height": 160 + 36 * len(qualities) * len(found.differences), "showlegend": False}
    if not found.questions:
        return theme.titled(figure, "% of each row's ten nearest rows", "", **axes)
    figure.add_vline(0, line_width=1)
    figure.add_vline(-100 * found.margin, line_width=1, line_dash="dot")
    return theme.titled(figure, f"points more than {escape(found.encoders[0].name)}", "", **axes)


def table(found: EncoderComparison) -> pd.DataFrame:
    """A row for each encoder, as it is read."""
    rows = []
    for one, change in zip(found.encoders, (None, *found.differences), strict=True):
        row: dict[str, object] = {"Encoder": one.name}
        if found.questions:
            row["Verdict"] = "compared with" if change is None else change.outcome
        ends = {"noise_floor": one.noise_floor, **one.quality}
        row |= {title: _words(ends.get(name)) for name, title in _HEADINGS.items() if ends.get(name)}
        if found.questions:
            row["Rise, stay, fall"] = "" if change is None else f"{change.wins}, {change.ties}, {change.losses}"
        else:
            row["Neighbours found"] = "" if change is None else _words(change.neighbours)
        rows.append({**row, "d": one.d, "Bytes per vector": one.bytes, "ms per text": one.milliseconds})
    return pd.DataFrame(rows)


def hits(question: Question, first: str, other: str) -> pd.DataFrame:
    """The first documents of both encoders, side by side."""
    return pd.DataFrame(
        {
            name: [f"{'✓ ' * hit.relevant}{hit.cosine:.3f}  {hit.document}  {hit.text or ''}" for hit in found]
            for name, found in ((first, question.hits_before), (other, question.hits_after))
        }
    )


def _words(ends: Ends | None) -> str:
    return "" if ends is None else f"{ends[0]:.3f} ({ends[1]:.3f} to {ends[2]:.3f})"

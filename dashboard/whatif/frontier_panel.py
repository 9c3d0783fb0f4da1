"""How small the vectors can be stored: the compression frontier, judged on the set's questions or on neighbours."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from pydantic import TypeAdapter

from dashboard.components import figure
from dashboard.inputs import set_sections
from dashboard.shared import downloads, theme, wording
from dashboard.shared.forms import choice
from dashboard.whatif.form import PREFIX
from isoviz.readouts.frontier import BITS, MEASURES, ROTATIONS, Frontier

_KEY = "● float32, ■ int8, ◆ 4 bits, ▲ binary. Line: no smaller way has a higher value."
KEY = PREFIX + "frontier"
_MARGINS = {"1 point": 0.01, "2 points": 0.02, "5 points": 0.05}
_SYMBOLS = dict(zip(BITS, ("circle", "square", "diamond", "triangle-up"), strict=True))
_FRONTIER: TypeAdapter[Frontier] = TypeAdapter(Frontier)


def draw(key: str) -> None:
    """For the stored set of a key: the smallest that loses at most a margin, all ways, and Python for one of them."""
    panel = st.expander("How small can it be?", icon=":material/compress:", key=KEY, bind="query-params")
    if not panel.open:
        return
    with panel:
        st.caption(
            "Dimensions × bits × a rotation first, fitted on the documents or, without questions, on all rows. A loss is harmless "
            "if its 95 % interval ends above minus the margin. The smallest of many is optimistic: check it on other questions."
        )
        margin = _MARGINS[
            choice(
                "Margin", list(_MARGINS), KEY + "_margin", "The largest loss that you accept, in points of a hundred."
            )
        ]
        found = set_sections.result(key, KEY, "frontier")
        if found is not None:
            _show(replace(_FRONTIER.validate_python(found.facts["frontier"]), margin=margin))


def _show(found: Frontier) -> None:
    name = MEASURES[found.judged[0]]
    st.markdown(f"**{wording.plain(found.sentence)}**")
    words = f"{name} against bytes per vector, {len(found.ways)} ways to store it"
    figure.draw(picture(found, name), key=KEY + "_figure", words=words, caption=_KEY)
    header = ("vectors", "bytes", "GB for ten million", *(f"{MEASURES[slug]}, change (95 %)" for slug in found.judged))
    table = pd.DataFrame([one.cells(found.judged) for one in found.ways], columns=list(header))
    st.dataframe(table, hide_index=True, height=330, alt=words)
    downloads.buttons("frontier", table, key=KEY)
    ways = {one.words: one for one in found.pareto}
    best = found.smallest.words if found.smallest is not None else next(iter(ways))
    ways.setdefault(best, found.smallest or found.ways[0])
    chosen = str(st.selectbox("Copy as Python", list(ways), index=list(ways).index(best), key=KEY + "_way"))
    st.code(ways[chosen].python('np.load("vectors.npy")'), language="python", wrap_lines=True)


def picture(found: Frontier, name: str) -> go.Figure:
    """The measure against bytes: a colour for each rotation, a symbol for each type."""
    plot, first = go.Figure(), found.judged[0]
    grey = {"color": "#7f8691", "width": 1}
    best = [(one.bytes, one.values[first]) for one in found.pareto]
    plot.add_scatter(
        x=[x for x, _ in best], y=[y for _, y in best], mode="lines", name="frontier", line=grey, hoverinfo="skip"
    )
    for colour, (rotation, title) in zip(theme.PALETTE, ROTATIONS.items(), strict=False):
        ways = [one for one in found.ways if one.rotation == rotation]
        plot.add_scatter(
            x=[one.bytes for one in ways],
            y=[one.values[first] for one in ways],
            mode="markers",
            name=title,
            marker={"color": colour, "size": 9, "symbol": [_SYMBOLS[one.bits] for one in ways]},
            text=[one.words for one in ways],
            hovertemplate="%{text}: %{x} bytes, %{y:.3f}",
        )
    axis = {"type": "log", "tickvals": sorted({one.bytes for one in found.ways})}
    return theme.titled(plot, "bytes per vector", name, xaxis=axis, height=380)

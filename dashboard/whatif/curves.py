"""Curves of What-if: a read-out and IsoScore over one parameter of the chain, and its best value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.shared import explanations, theme, wording
from dashboard.shared.explanations import Explanation
from dashboard.whatif import form
from dashboard.whatif.drawing import AFTER, BEFORE, View, figure_card
from dashboard.whatif.form import PREFIX
from dashboard.whatif.verdict_card import READOUT
from dashboard.whatif.waiting import wait_for
from isoviz.readouts.division import Division
from isoviz.readouts.reading import ReadOut, applicable
from isoviz.whatif import chains, curves
from isoviz.whatif.curves import Axis, CurvePoint, cached_curve
from isoviz.whatif.scheduler import Rank

CURVE = Explanation(
    title="Curve",
    reading=(
        "Above: the read-out at each value of the parameter; the bars are 95 % intervals of its change from no transform "
        "(dashed). Below: IsoScore with its jackknife interval. The two need not peak at the same value. The best value "
        "was chosen on the rows shown, so it is optimistic; the held-back rows give the honest number."
    ),
    formula=r"m(\theta) - m(\text{no transform})",
    paper="Efron & Tibshirani 1993, chapters 11 and 13.",
)
_HEADLINE = PREFIX + "headline"
"""Session key: title of the read-out that the curve opened on."""


@dataclass(frozen=True)
class Curve:
    """A curve and its place on the page.

    Attributes:
        axis, readout: selected parameter and read-out.
        pending: placeholder for progress.
        container: of the figure and the sentence on the best value.
    """

    axis: Axis
    readout: ReadOut
    pending: DeltaGenerator
    container: DeltaGenerator


def controls(view: View) -> Curve | None:
    """Fields for the parameter and the read-out; None if no step has a numeric parameter."""
    st.markdown("**One parameter, all its values**")
    axis_choice = {axis.title: axis for axis in curves.axes(view.steps, view.engine.train.shape[1])}
    if not axis_choice:
        st.caption("No step of this chain has a numeric parameter. Add ZCA whitening, all-but-the-top or a truncation.")
        return None
    readouts = {readout_type.title: readout_type for readout_type in applicable(view.engine.annotations)}
    headline = next(iter(readouts))
    if st.session_state.get(_HEADLINE, headline) != headline:  # labels or pairs have arrived: the newest are answered
        st.session_state[READOUT] = headline
    st.session_state[_HEADLINE] = headline
    left, right = st.columns(2)
    axis = left.selectbox("Parameter", list(axis_choice), key=PREFIX + "axis", bind="query-params")
    readout = right.selectbox("Read-out", list(readouts), key=READOUT, bind="query-params")
    pending, container = st.empty(), st.container()
    explanations.show(CURVE)
    return Curve(axis_choice[str(axis)], readouts[str(readout)], pending, container)


def draw(view: View, key: str, curve: Curve) -> None:
    """The curve once all points are computed, and its best value."""
    engine, steps, axis = view.engine, view.steps, curve.axis
    slug, total = curve.readout.slug, len(axis.values)
    points = cached_curve(engine, steps, axis, slug)
    if len(points) < total:
        points = wait_for(
            lambda: curves.curve(engine, steps, axis, slug),
            Rank.FOLLOW,
            f"{key}|curve|{chains.write(steps)}|{axis.place}|{axis.name}|{slug}",
            curve.pending,
            what=lambda: f"{len(cached_curve(engine, steps, axis, slug))} of {total} values",
        )
    curve.pending.empty()
    with curve.container:
        first, last = (axis.moved(steps, axis.values[end])[axis.place].title for end in (0, -1))
        figure_card(
            view,
            "curve",
            picture(points, axis.title, curve.readout.title, axis.current),
            f"{view.chain} · n = {points[0].change.n:,} {curve.readout.unit}",
            words=f"{curve.readout.title} and IsoScore over {axis.title}",
            caption=f"At {axis.values[0]:g}: {first}." if first != last else "",  # such as whitening that only centres
        )
        _best(view, curve, points)


def _best(view: View, curve: Curve, points: list[CurvePoint]) -> None:
    best, axis = curves.best(points, curve.readout.slug), curve.axis
    if best is None or not curve.readout.aim:
        return
    st.markdown(
        wording.plain(
            f"Best on these {best.change.n:,} {curve.readout.unit}: {axis.title} = {best.value:g}, "
            f"{curve.readout.title} {wording.number(best.readout, 3)}. The best of {len(points)} values is optimistic."
        )
    )
    chain = axis.moved(view.steps, best.value)
    st.button(
        f"Use {best.value:g}",
        key=PREFIX + "use_best",
        icon=":material/tune:",
        on_click=form.set_steps,
        args=(chain,),
        disabled=chain == view.steps,
    )
    assert isinstance(view.engine.source, Division)
    if curve.readout.needs == "labels" and view.engine.source.crossed is not None:
        st.caption("This set is too small to hold rows back: the cross-validation above uses all of them.")


def picture(points: Sequence[CurvePoint], parameter: str, readout: str, current: float | None) -> go.Figure:
    """A read-out over a parameter above, IsoScore below. Values are evenly spaced, because grids may be linear or logarithmic."""
    figure = go.Figure()
    names = [f"{point.value:g}" for point in points]
    readouts = [(point.readout, point.change.value, (point.change.low, point.change.high)) for point in points]
    scores = [(point.isoscore, point.isoscore, (point.isoscore_low, point.isoscore_high)) for point in points]
    for title, axis, measured, colour in (
        (readout, "y", readouts, AFTER),
        ("IsoScore", "y2", scores, theme.PALETTE[1]),
    ):
        values, middles, ends = zip(*measured, strict=True)
        figure.add_scatter(
            x=names,
            y=values,
            yaxis=axis,
            mode="lines+markers",
            line={"color": colour, "width": 2},
            marker={"size": [11 if point.value == current else 7 for point in points]},
            error_y=theme.error_bars(middles, ends),
            name=title,
            hovertemplate=f"{escape(parameter)} = %{{x}}<br>{escape(title)} %{{y:.4f}}<extra></extra>",
        )
    defined = [point for point in points if point.readout is not None and point.change.value is not None]
    if defined:
        baseline = defined[0].readout - defined[0].change.value  # type: ignore[operator]
        figure.add_scatter(
            x=names,
            y=[baseline] * len(names),
            mode="lines",
            line={"color": BEFORE, "dash": "dash", "width": 1.5},
            name="no transform",
            hovertemplate="no transform: %{y:.4f}<extra></extra>",
        )
    below = {"title": {"text": "IsoScore"}, "domain": [0.0, 0.38], "rangemode": "tozero"}
    axes = {"xaxis_type": "category", "xaxis_anchor": "y2", "yaxis_domain": [0.46, 1.0], "yaxis2": below}
    return theme.titled(figure, parameter, readout, height=440, **axes)

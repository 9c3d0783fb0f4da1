"""The figures of one cloud of each view, side by side on the same axes."""

from __future__ import annotations

import functools
from collections.abc import Callable

import plotly.graph_objects as go
import streamlit as st

from dashboard import downloads, explanations, wording
from dashboard.components.cloud_matrix import cloud_matrix
from dashboard.explore import activation_plot, number_table, plots
from dashboard.explore.form import PREFIX
from dashboard.explore.shown import Shown, cloud_file, plot
from dashboard.steady import steady
from isoviz.exploring import clustering

_AXIS = PREFIX + "ev_axis"


@steady
def section(shown: list[Shown]) -> None:
    """The figures of each view's layer and pooling: by themselves in pairs, several views side by side on the same axes."""
    alone = len(shown) == 1
    first = shown[0]
    cloud = f"Layer {first.layer}, {plots.POOLING_TITLES[first.pooling]}"
    st.subheader(cloud if alone else "Side by side", anchor=False)
    with st.container(horizontal=True, vertical_alignment="center"):
        with st.container(width="content"):
            if alone:
                st.caption(f"n = {wording.number(first.entry['n'])} points, d = {first.entry['d']} dimensions")
        _axis_field()
    if alone:
        for row in (("spectrum", "mean_activation"), ("sigma_histogram", "cosine_histogram")):
            for column, name in zip(st.columns(2, gap="large"), row, strict=True):
                with column:
                    _row(shown, name)
    else:
        for name in ("spectrum", "sigma_histogram", "mean_activation", "cosine_histogram"):
            _row(shown, name)
    _numbers_behind(shown)
    _correlations(shown)


def _numbers_behind(shown: list[Shown]) -> None:
    """The four figures above as files."""
    for one, column in zip(shown, st.columns(len(shown), gap="medium"), strict=True):
        with column:
            st.caption("The numbers behind these four figures:")
            made = functools.partial(number_table.behind, one.view, one.layer, one.pooling)
            downloads.points(cloud_file(one, "figures"), made, key=one.prefix + "figures")


def _row(shown: list[Shown], name: str) -> None:
    """One figure of all views, under one heading."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{explanations.get(name).title}**")
        explanations.show(name)
    found = [_FIGURES[name](one, shown) for one in shown]
    figures = [figure for figure, _, _ in found if figure is not None]
    if len(shown) > 1:
        plots.share_axes(figures)
    for one, column, (figure, words, note) in zip(shown, st.columns(len(shown), gap="medium"), found, strict=True):
        with column:
            if figure is None:
                st.caption("Not kept for this cloud.")
                continue
            plot(one, name, figure, words)
            if len(shown) > 1:
                note = f"View {one.number}: {one.cloud}. {note}"
            if note:
                st.caption(wording.plain(note))


def _axis_field() -> None:
    """How k is measured out along its axis; `_spectrum` looks it up."""
    st.segmented_control(
        "Explained variance over k",
        ["linear axis", "log axis"],
        default="linear axis",
        required=True,
        key=_AXIS,
        bind="query-params",
        help="Of k. On a logarithmic one the first few directions take as much room as the many after them.",
    )


Drawn = tuple[go.Figure | None, str, str]
"""A figure, what it shows in words, and what is told below it."""


def _spectrum(one: Shown, _: list[Shown]) -> Drawn:
    curves = {}
    for number in range(one.view.depth + 1):
        curve = one.view.array(number, one.pooling, "ev")
        if curve is not None:
            curves[number] = curve
    d = one.entry["d"]
    told = f"first {len(curves[one.layer])} of {d} components, layer {one.layer} over the others"
    figure = plots.spectrum(curves, one.layer, one.pooling, d, log=st.session_state.get(_AXIS) == "log axis")
    few = any("EV high" in note for note in number_table.notes_on(one.entry, "ev_1"))
    note = f"Reads high for so few points: n/d = {one.entry['n'] / d:.2g}." if few else ""
    return figure, f"Explained variance of the {told}", note


def _sigma(one: Shown, shown: list[Shown]) -> Drawn:
    sigma = one.view.array(one.layer, one.pooling, "sigma")
    if sigma is None:
        return None, "", ""
    spread = f"{sigma.min():.3g} to {sigma.max():.3g}"
    told = f"Histogram of the standard deviations of {len(sigma)} dimensions, {spread}"
    others = [other.view.array(other.layer, other.pooling, "sigma") for other in shown if other is not one]
    beside = [found for found in others if found is not None]
    return plots.sigma_histogram(sigma, one.pooling, beside), told, ""


def _mean(one: Shown, shown: list[Shown]) -> Drawn:
    mean = one.view.array(one.layer, one.pooling, "mean")
    if mean is None:
        return None, "", ""
    outliers = one.entry["outlier_dimensions"]
    named = f"outlier dimensions: {', '.join(map(str, outliers))}" if outliers else "no outlier dimension"
    beside = [
        (found, other.entry["outlier_dimensions"])
        for other in shown
        if other is not one and (found := other.view.array(other.layer, other.pooling, "mean")) is not None
    ]
    figure = activation_plot.figure(mean, outliers, one.pooling, beside)
    span, (beyond, *_) = activation_plot.beyond_axis([(mean, outliers), *beside])
    if span is not None:
        ends = f"{wording.number(span[0], 3)} to {wording.number(span[1], 3)}"
        why = "so that the rest is seen" if beyond else "for the outliers of another view"
        listed = [f"dimension {activation_plot.named(mean, number, ' at ')}" for number in beyond]
        named += f"; the axis is cut to {ends}, {why}" + (f"; beyond it: {', '.join(listed)}" if beyond else "")
    return figure, f"Mean activation of {len(mean)} dimensions; {named}", named[0].upper() + named[1:] + "."


def _cosine(one: Shown, _: list[Shown]) -> Drawn:
    counts = one.view.array(one.layer, one.pooling, "cosine")
    if counts is None:
        return None, "", ""
    pairs = int(counts.sum())
    most, seed = one.view.facts["cosine_points"], one.view.facts["request"]["seed"]
    drawn = f" of {most:,} points drawn at random with seed {seed}" if one.entry["n"] > most else ""
    figure = plots.cosine_histogram(counts, one.entry["mean_cosine"], one.pooling)
    counted = f"{pairs:,} pair{'' if pairs == 1 else 's'}"
    return figure, f"Histogram of the cosines of {counted} of points", f"{counted}{drawn}."


_FIGURES: dict[str, Callable[[Shown, list[Shown]], Drawn]] = {
    "spectrum": _spectrum,
    "sigma_histogram": _sigma,
    "mean_activation": _mean,
    "cosine_histogram": _cosine,
}


def _correlations(shown: list[Shown]) -> None:
    """The clustered |ρ| of every view, in its own order or in that of the first."""
    entry = explanations.get("matrix")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{entry.title}**")
        explanations.show("matrix")
    own = True
    if len(shown) > 1:
        choice = st.segmented_control(
            "Order of the dimensions",
            ["own", "as in view 1"],
            default="own",
            required=True,
            key=PREFIX + "order",
            bind="query-params",
            help="Own: like dimensions of each view side by side. As in view 1: the same dimension at the same place.",
        )
        own = choice == "own"
    first = shown[0]
    for one, column in zip(shown, st.columns(len(shown), gap="medium"), strict=True):
        with column:
            same = one.entry["d"] == first.entry["d"]
            average = wording.number(one.entry["abs_correlation"], 3)
            counted, total = clustering.points_in(one.view, one.layer, one.pooling), one.entry["n"]
            sample = "" if counted == total else f"the picture is of {counted:,} of these points, drawn at random"
            cloud = f"{one.cloud} ({sample})" if sample else one.cloud
            told = f"Absolute correlation of {one.entry['d']} dimensions, {cloud}, mean {average} off the diagonal"
            cloud_matrix(
                one.place,
                order=None if own or one is first or not same else first.place,
                key=one.prefix + "correlation",
                name=cloud_file(one, "correlation"),
                about=f"{one.about}{f' ({sample})' if sample else ''}",
                words=told if one.of == 1 else f"View {one.number}: {told}",
                mean=average,
            )
            name = f"View {one.number}: {one.cloud}" if one.of > 1 else one.cloud.capitalize()
            note = (
                f". Mean |ρ| off the diagonal: {average}."
                if one.of > 1
                else ". Rows and columns: dimensions, like ones side by side."
            )
            if not own and not same:
                note += f" In its own order: it has {one.entry['d']} dimensions, view 1 has {first.entry['d']}."
            if sample:
                note += f" {sample[0].upper()}{sample[1:]}; the mean is of all."
            st.caption(wording.plain(name + note))

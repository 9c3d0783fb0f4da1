"""The figures of Explore: the layer profile, and those of one cloud of each view, side by side on the same axes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from dashboard import activation_figure, downloads, explanations, explore_figures, explore_tables, wording
from dashboard.components.cloud_matrix import cloud_matrix
from dashboard.components.figure import draw
from dashboard.explore_form import PREFIX, Filled
from dashboard.steady import steady
from isoviz.exploring import clustering, shrinkage
from isoviz.exploring.results import ViewResult
from isoviz.metrics.catalogue import METRICS

MEASURES = ("isoscore", "isoscore_star", "isoscore_unbiased", "ev_1", "mean_cosine", "participation_ratio",
            "effective_rank", "twonn")  # fmt: skip
"""Of the catalogue, in the order in which they are offered; `MORE` comes after them."""

MORE = {"Mean |ρ| of two dimensions": "abs_correlation", "Length of the mean vector": "mean_norm"}
"""What else each cloud has a number of: title → column."""
_AXIS = PREFIX + "ev_axis"


@dataclass(frozen=True)
class Shown:
    """One of the views on the page, with the cloud of it that is looked at.

    Attributes:
        number: counted from 1.
        of: how many views there are.
    """

    number: int
    of: int
    filled: Filled
    view: ViewResult
    layer: int
    pooling: str

    @property
    def prefix(self) -> str:
        """Of the keys of its widgets."""
        return self.filled.prefix

    @property
    def place(self) -> tuple[str, int, str]:
        """Key of the view, layer and pooling: which cloud it is."""
        return self.view.folder.name, self.layer, self.pooling

    @property
    def entry(self) -> dict[str, Any]:
        """The numbers of its cloud."""
        return self.view.entry(self.layer, self.pooling)

    @property
    def cloud(self) -> str:
        """Layer, pooling, n and d in words."""
        return f"layer {self.layer}, {self.pooling}, n = {wording.number(self.entry['n'])}, d = {self.entry['d']}"

    @property
    def source(self) -> str:
        """Model, task and split in words."""
        assert self.filled.request is not None
        request = self.filled.request
        direction = [f"read as {request.direction}"] if request.direction else []
        return " · ".join([request.model, request.task, request.split, *direction])

    @property
    def about(self) -> str:
        """Which cloud it is, in a line that stands by itself, as in a saved picture."""
        n, d = wording.number(self.entry["n"]), self.entry["d"]
        return f"{self.source} · layer {self.layer} · {self.pooling} · n = {n}, d = {d}"


def file_name(one: Shown) -> str:
    """Of what is downloaded of a view, without its ending."""
    assert one.filled.request is not None
    request = one.filled.request
    parts = (part.replace("/", "-").replace(":", "-").strip("-.~") for part in (request.model, request.task))
    return "-".join(("explore", *parts, request.split))


def cloud_file(one: Shown, what: str) -> str:
    """Of what is downloaded of the cloud that a view shows, without its ending; views of the same cloud are told apart."""
    again = f"-view{one.number}" if one.number > 1 else ""
    return f"{file_name(one)}-{what}-layer{one.layer}-{one.pooling}{again}"


@steady
def profile(views: list[ViewResult], all_filled: list[Filled]) -> list[Shown]:
    """One measure over all layers; returns the views with the layer and pooling chosen for the figures below."""
    st.subheader("Layer by layer", anchor=False)
    titles = _titles()
    title = str(st.selectbox("Measure", list(titles), key=PREFIX + "measure", bind="query-params", width=420))
    measure = titles[title]
    columns = st.columns(len(views), gap="medium")
    shown = []
    for number, (view, filled, column) in enumerate(zip(views, all_filled, columns, strict=True), start=1):
        with column:
            _which_view(number, len(views))
            with st.container(horizontal=True, gap="large"):  # however many views there are: see `dashboard.steady`
                pooling = _pooling_field(view, filled.prefix)
                layer = _layer_field(view, filled.prefix)
        shown.append(Shown(number, len(views), filled, view, layer, pooling))
    figures = [
        explore_figures.layer_profile(one.view.entries, measure, title, (one.layer, one.pooling)) for one in shown
    ]
    if len(views) > 1:
        explore_figures.share_axes(figures)
    for one, figure, column in zip(shown, figures, columns, strict=True):
        with column:
            words = f"{title} over layers 0 to {one.view.depth}, one line for each of {', '.join(one.view.poolings)}"
            _plot(one, "profile", figure, words, about=_all_clouds(one, measure))
            found = explore_tables.value(one.entry, measure)
            points = explore_tables.points_of(one.entry, measure)
            told = f"Layer {one.layer}, {one.pooling}: {wording.number(found)} (n = {points}, d = {one.entry['d']})"
            st.caption(wording.plain(told))
            if found is None or measure != shrinkage.MEASURE:  # what it is from is told below
                for note in explore_tables.notes_on(one.entry, measure):
                    st.caption(f":material/info: {wording.plain(note)}")
            if measure == shrinkage.MEASURE:
                _all_layers(one)
    _how_to_read(measure)
    return shown


@steady
def _which_view(number: int, of: int) -> None:
    if of > 1:
        st.markdown(f"**View {number}**")


def _all_clouds(one: Shown, measure: str) -> str:
    """Of which clouds the profile is, with the points that the measure was taken on."""
    pools = []
    for pooling in one.view.poolings:
        counts = {explore_tables.points_of(entry, measure) for entry in one.view.entries if entry["pooling"] == pooling}
        pools.append(f"{pooling}: n = {' or '.join(sorted(counts))}")
    return f"{one.source} · layers 0 to {one.view.depth} · {'; '.join(pools)} · d = {one.entry['d']}"


def _all_layers(one: Shown) -> None:
    """IsoScore* of all layers together, and what its Σ_S and that of each layer are from."""
    together = one.view.together
    told = explore_tables.of_shrinkage(one.view.facts["shrinkage"])
    if together is not None:
        value = wording.number(together[shrinkage.MEASURE])
        which = explore_tables.of_layers(together)
        told = (
            f"{which[0].upper()}{which[1:]}: {value} (n = {wording.number(together['n'])}, d = {together['d']}). {told}"
        )
    st.caption(wording.plain(told))


def _titles() -> dict[str, str]:
    return {METRICS[slug].title: slug for slug in MEASURES} | MORE


def measure_of_address() -> str:
    """The measure that the layer profile shows, by its column."""
    titles = _titles()
    return titles.get(str(st.session_state.get(PREFIX + "measure")), MEASURES[0])


def _pooling_field(view: ViewResult, prefix: str) -> str:
    if (
        st.session_state.get(prefix + "pooling", view.poolings[0]) not in view.poolings
    ):  # of a model that reads otherwise
        del st.session_state[prefix + "pooling"]
    return str(
        st.segmented_control(
            "Pooling",
            view.poolings,
            default=view.poolings[0],
            required=True,
            key=prefix + "pooling",
            bind="query-params",
            help="cls: the first token of each row; last: its last one, for models that read forwards. "
            "mean: the mean of its tokens. tokens: every token by itself.",
        )
    )


def _layer_field(view: ViewResult, prefix: str) -> int:
    key = prefix + "layer"
    if st.session_state.get(key, 0) > view.depth:  # of a deeper model
        del st.session_state[key]
    return int(
        st.slider("Layer", 0, view.depth, view.depth, key=key, bind="query-params", help="0 is the embedding output.")
    )


def _how_to_read(measure: str) -> None:
    """What a measure sees and what it cannot, as the catalogue claims it and the tests measure it."""
    if measure not in MEASURES:
        explanations.show("matrix" if measure == "abs_correlation" else measure)
        return
    metric = METRICS[measure]
    with st.popover("How to read this", type="tertiary", icon=":material/help:"):
        st.markdown(wording.plain(metric.sees) + "  \n" + wording.plain(metric.blind_to))
        if measure == shrinkage.MEASURE:
            st.markdown(wording.plain(explanations.get(measure).reading))
        st.latex(metric.equation)
        st.caption(
            wording.plain(
                f"Range: {metric.range.text}. Isotropic: {metric.at_isotropy.text}. Enough points: {metric.enough.text}."
            )
        )
        st.caption(wording.plain(f"{metric.paper.text}, {metric.paper.identifier}"))


@steady
def clouds(shown: list[Shown]) -> None:
    """The figures of each view's layer and pooling: by themselves in pairs, several views side by side on the same axes."""
    alone = len(shown) == 1
    first = shown[0]
    cloud = f"Layer {first.layer}, {explore_figures.POOLING_TITLES[first.pooling]}"
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
            made = functools.partial(explore_tables.behind, one.view, one.layer, one.pooling)
            downloads.points(cloud_file(one, "figures"), made, key=one.prefix + "figures")


def _row(shown: list[Shown], name: str) -> None:
    """One figure of all views, under one heading."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{explanations.get(name).title}**")
        explanations.show(name)
    found = [_FIGURES[name](one, shown) for one in shown]
    figures = [figure for figure, _, _ in found if figure is not None]
    if len(shown) > 1:
        explore_figures.share_axes(figures)
    for one, column, (figure, words, note) in zip(shown, st.columns(len(shown), gap="medium"), found, strict=True):
        with column:
            if figure is None:
                st.caption("Not kept for this cloud.")
                continue
            _plot(one, name, figure, words)
            if len(shown) > 1:
                note = f"View {one.number}: {one.cloud}. {note}"
            if note:
                st.caption(wording.plain(note))


def _axis_field() -> None:
    """How k is measured out along its axis; `_spectrum` looks it up."""
    st.segmented_control(
        "Axis of k in the spectrum",
        ["linear axis", "log axis"],
        default="linear axis",
        required=True,
        key=_AXIS,
        bind="query-params",
        label_visibility="collapsed",
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
    figure = explore_figures.spectrum(curves, one.layer, one.pooling, d, log=st.session_state.get(_AXIS) == "log axis")
    few = any("EV high" in note for note in explore_tables.notes_on(one.entry, "ev_1"))
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
    return explore_figures.sigma_histogram(sigma, one.pooling, beside), told, ""


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
    figure = activation_figure.figure(mean, outliers, one.pooling, beside)
    span, (beyond, *_) = activation_figure.beyond_axis([(mean, outliers), *beside])
    if span is not None:
        ends = f"{wording.number(span[0], 3)} to {wording.number(span[1], 3)}"
        why = "so that the rest is seen" if beyond else "for the outliers of another view"
        listed = [f"dimension {activation_figure.named(mean, number, ' at ')}" for number in beyond]
        named += f"; the axis is cut to {ends}, {why}" + (f"; beyond it: {', '.join(listed)}" if beyond else "")
    return figure, f"Mean activation of {len(mean)} dimensions; {named}", named[0].upper() + named[1:] + "."


def _cosine(one: Shown, _: list[Shown]) -> Drawn:
    counts = one.view.array(one.layer, one.pooling, "cosine")
    if counts is None:
        return None, "", ""
    pairs = int(counts.sum())
    most, seed = one.view.facts["cosine_points"], one.view.facts["request"]["seed"]
    drawn = f" of {most:,} points drawn at random with seed {seed}" if one.entry["n"] > most else ""
    figure = explore_figures.cosine_histogram(counts, one.entry["mean_cosine"], one.pooling)
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


def _plot(one: Shown, name: str, figure: go.Figure, words: str, *, about: str = "") -> None:
    if one.of > 1:
        explore_figures.compact(figure)
        words = f"View {one.number}: {words}"
    draw(
        figure,
        key=one.prefix + name,
        words=words,
        name=cloud_file(one, name.replace("_", "-")),
        about=about or one.about,
    )

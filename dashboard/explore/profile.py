"""The layer profile: one measure over all layers of each view, and the fields that say which cloud the figures below are of."""

from __future__ import annotations

import streamlit as st

from dashboard import explanations, wording
from dashboard.explore import number_table, plots
from dashboard.explore.form import PREFIX, Filled
from dashboard.explore.shown import Shown, plot
from dashboard.steady import steady
from isoviz.exploring import shrinkage
from isoviz.exploring.results import ViewResult
from isoviz.metrics.catalogue import METRICS

MEASURES = ("isoscore", "isoscore_star", "isoscore_unbiased", "ev_1", "mean_cosine", "participation_ratio",
            "effective_rank", "twonn")  # fmt: skip
"""Of the catalogue, in the order in which they are offered; `MORE` comes after them."""

MORE = {"Mean |ρ| of two dimensions": "abs_correlation", "Length of the mean vector": "mean_norm"}
"""What else each cloud has a number of: title → column."""


@steady
def section(views: list[ViewResult], all_filled: list[Filled]) -> list[Shown]:
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
            with st.container(horizontal=True):  # however many views there are: see `dashboard.steady`
                pooling = _pooling_field(view, filled.prefix)
                layer = _layer_field(view, filled.prefix)
        shown.append(Shown(number, len(views), filled, view, layer, pooling))
    figures = [plots.layer_profile(one.view.entries, measure, title, (one.layer, one.pooling)) for one in shown]
    if len(views) > 1:
        plots.share_axes(figures)
    for one, figure, column in zip(shown, figures, columns, strict=True):
        with column:
            words = f"{title} over layers 0 to {one.view.depth}, one line for each of {', '.join(one.view.poolings)}"
            plot(one, "profile", figure, words, about=_all_clouds(one, measure))
            found = number_table.value(one.entry, measure)
            points = number_table.points_of(one.entry, measure)
            told = f"Layer {one.layer}, {one.pooling}: {wording.number(found)} (n = {points}, d = {one.entry['d']})"
            st.caption(wording.plain(told))
            if found is None or measure != shrinkage.MEASURE:  # what it is from is told below
                for note in number_table.notes_on(one.entry, measure):
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
        counts = {number_table.points_of(entry, measure) for entry in one.view.entries if entry["pooling"] == pooling}
        pools.append(f"{pooling}: n = {' or '.join(sorted(counts))}")
    return f"{one.source} · layers 0 to {one.view.depth} · {'; '.join(pools)} · d = {one.entry['d']}"


def _all_layers(one: Shown) -> None:
    """IsoScore* of all layers together, and what its Σ_S and that of each layer are from."""
    together = one.view.together
    told = number_table.of_shrinkage(one.view.facts["shrinkage"])
    if together is not None:
        value = wording.number(together[shrinkage.MEASURE])
        which = number_table.of_layers(together)
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

"""Sections of the Explore page: ask, wait, then the layer profile, one cloud's figures, and all numbers."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from dashboard import downloads, explanations, explore_figures, explore_tables, forms, theme, wording
from dashboard.explore_form import PREFIX, Filled, forget_hub_models
from dashboard.logs import read_tail
from isoviz.errors import InputError, IsoVizError
from isoviz.exploring import jobs, results
from isoviz.exploring.jobs import State
from isoviz.exploring.results import ViewResult
from isoviz.metrics.catalogue import METRICS

TICK = 0.5
"""Seconds between looks at a job that runs. Nothing looks while none does."""

MEASURES = ("isoscore", "isoscore_unbiased", "ev_1", "mean_cosine", "participation_ratio", "effective_rank", "twonn")
"""Of the catalogue, in the order in which they are offered; the length of the mean vector comes after them."""

MEAN_NORM = "Length of the mean vector"


def ask(filled: Filled) -> ViewResult | None:
    """The button, the progress of a job that runs, what went wrong, or what will be here; the view, once it is there."""
    if filled.request is None or filled.key is None:
        _look_button("none", disabled=True)
        _nothing_yet(filled)
        return None
    state = jobs.look(filled.key)
    if _look_button(state.kind, disabled=state.kind in ("running", "done")):
        state = _started(filled)
    if state.kind == "running":
        st.fragment(_watch, run_every=TICK)(filled.key)
    elif state.kind in ("failed", "lost"):
        _trouble(filled, state)
    elif state.kind == "done":
        return results.find(filled.key)
    else:
        _nothing_yet(filled)
    return None


def _look_button(kind: str, *, disabled: bool) -> bool:
    label = "Look again" if kind in ("failed", "lost") else "Look"
    return st.button(label, key=PREFIX + "look", type="primary", icon=":material/visibility:", disabled=disabled)


def _started(filled: Filled) -> State:
    assert filled.request is not None and filled.key is not None
    try:
        return jobs.start(filled.request, filled.key)
    except IsoVizError as error:
        return State("failed", message=str(error), field=error.field, advice=error.advice or "")


def _watch(key: str) -> None:
    """The progress of a job; the whole page is drawn anew when it has ended."""
    state = jobs.look(key)
    if state.kind != "running":
        forget_hub_models()
        st.rerun()
    told = state.progress
    words = f"{100 * told.fraction:.0f} % · {told.text} · {wording.duration(state.seconds)}"
    st.progress(told.fraction, text=wording.plain(words))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if st.button("Stop", key=PREFIX + "stop", icon=":material/stop_circle:"):
            jobs.stop(key)
            st.rerun()
        st.caption("Goes on if you leave this page; its address shows it again.")


def _trouble(filled: Filled, state: State) -> None:
    """Why there is no view, beside the field it is about; the log where it may tell more."""
    error = InputError(state.message, field=state.field)
    advice = f" {state.advice}" if state.advice else ""
    with filled.place_of(state.field) or st.container():
        forms.error_beside(forms.sentence(error) + advice)
    text = None if state.log is None else read_tail(state.log)
    if text and (state.kind == "lost" or state.field is None):
        with st.expander("Log", icon=":material/terminal:"):
            st.code(text, language=None, wrap_lines=True, height=240)


def _nothing_yet(filled: Filled) -> None:
    """The page before the first look."""
    with st.container(border=True):
        st.markdown("#### Nothing to see yet")
        st.markdown(
            "Each row of the task goes through the encoder once. Every layer then becomes a cloud of points: how evenly it "
            "spreads, which dimensions stand out, how the layers differ. Press *Look*; the bundled model takes well under a minute."
        )
        if filled.request is not None:
            rows = min(filled.request.max_rows, filled.rows_in_split)
            st.caption(f"To be read: the first {rows:,} of {filled.rows_in_split:,} rows of {filled.request.split}.")


def heading(view: ViewResult) -> None:
    """What was read, how, and what a reader must know."""
    facts = view.facts
    seconds = facts["reading_seconds"] + facts["measuring_seconds"]
    told = [
        f"The first {facts['rows']:,} of {facts['rows_in_split']:,} rows of {facts['request']['split']}",
        f"at most {facts['max_length']} tokens each",
        f"{view.depth} layers after the embeddings",
        f"computed in {wording.duration(seconds)} ({facts['device']})",
        f"all kept views: {wording.size(results.size())}, the longest unseen go above {wording.size(results.limit())}",
    ]
    st.caption(wording.plain(" · ".join(told)))
    for note in facts["warnings"]:
        st.caption(f":material/info: {wording.plain(note)}")


def profile(view: ViewResult) -> tuple[int, str]:
    """One measure over all layers; returns the layer and pooling chosen for the figures below."""
    st.subheader("Layer by layer", anchor=False)
    titles = {METRICS[slug].title: slug for slug in MEASURES} | {MEAN_NORM: "mean_norm"}
    left, middle, right = st.columns([3, 2, 3])
    with left:
        title = str(st.selectbox("Measure", list(titles), key=PREFIX + "measure", bind="query-params"))
    with middle:
        pooling = _pooling_field(view)
    with right:
        layer = _layer_field(view)
    measure = titles[title]
    entry = view.entry(layer, pooling)
    figure = explore_figures.layer_profile(view.entries, measure, title, (layer, pooling))
    words = f"{title} over layers 0 to {view.depth}, one line for each of {', '.join(view.poolings)}"
    st.plotly_chart(figure, key=PREFIX + "profile", config=theme.CHART_CONFIG, alt=words)
    with st.container(horizontal=True, vertical_alignment="center"):
        _how_to_read(measure)
        found = explore_tables.value(entry, measure)
        told = f"Layer {layer}, {pooling}: {wording.number(found)} (n = {wording.number(entry['n'])}, d = {entry['d']})"
        st.caption(wording.plain(told))
    if found is None:
        for note in entry["warnings"]:
            st.caption(f":material/info: {wording.plain(note)}")
    return layer, pooling


def _pooling_field(view: ViewResult) -> str:
    key = PREFIX + "pooling"
    if st.session_state.get(key, view.poolings[0]) not in view.poolings:  # of a model that reads otherwise
        del st.session_state[key]
    return str(
        st.segmented_control(
            "Pooling",
            view.poolings,
            default=view.poolings[0],
            required=True,
            key=key,
            bind="query-params",
            help="cls: the first token of each row; last: its last one, for models that read forwards. "
            "mean: the mean of its tokens. tokens: every token by itself.",
        )
    )


def _layer_field(view: ViewResult) -> int:
    key = PREFIX + "layer"
    if st.session_state.get(key, 0) > view.depth:  # of a deeper model
        del st.session_state[key]
    return int(
        st.slider("Layer", 0, view.depth, view.depth, key=key, bind="query-params", help="0 is the embedding output.")
    )


def _how_to_read(measure: str) -> None:
    """What a measure sees and what it cannot, as the catalogue claims it and the tests measure it."""
    if measure not in METRICS:
        explanations.show(measure)
        return
    metric = METRICS[measure]
    with st.popover("How to read this", type="tertiary", icon=":material/help:"):
        st.markdown(wording.plain(metric.sees) + "  \n" + wording.plain(metric.blind_to))
        st.latex(metric.equation)
        st.caption(
            wording.plain(
                f"Range: {metric.range.text}. Isotropic: {metric.at_isotropy.text}. Enough points: {metric.enough.text}."
            )
        )
        st.caption(wording.plain(f"{metric.paper.text}, {metric.paper.identifier}"))


def cloud(view: ViewResult, layer: int, pooling: str) -> None:
    """The figures of one layer and pooling."""
    entry = view.entry(layer, pooling)
    st.subheader(f"Layer {layer}, {explore_figures.POOLING_TITLES[pooling]}", anchor=False)
    st.caption(f"n = {wording.number(entry['n'])} points, d = {entry['d']} dimensions")
    for row in ((_spectrum, _mean), (_sigma, _cosine)):
        for column, draw in zip(st.columns(2, gap="large"), row, strict=True):
            with column:
                draw(view, layer, pooling)
    _correlation(view, pooling)


def _spectrum(view: ViewResult, layer: int, pooling: str) -> None:
    curves = {}
    for number in range(view.depth + 1):
        curve = view.array(number, pooling, "ev")
        if curve is not None:
            curves[number] = curve
    d = view.entry(layer, pooling)["d"]
    figure = explore_figures.spectrum(curves, layer, pooling, d)
    told = f"first {len(curves[layer])} of {d} components, layer {layer} over the others"
    _figure("spectrum", figure, "spectrum", f"Explained variance of the {told}")


def _sigma(view: ViewResult, layer: int, pooling: str) -> None:
    sigma = view.array(layer, pooling, "sigma")
    if sigma is not None:
        figure = explore_figures.sigma_histogram(sigma, pooling)
        told = (
            f"Histogram of the standard deviations of {len(sigma)} dimensions, {sigma.min():.3g} to {sigma.max():.3g}"
        )
        _figure("sigma", figure, "sigma_histogram", told)


def _mean(view: ViewResult, layer: int, pooling: str) -> None:
    mean = view.array(layer, pooling, "mean")
    if mean is None:
        return
    outliers = view.entry(layer, pooling)["outlier_dimensions"]
    figure = explore_figures.mean_activation(mean, outliers, pooling)
    named = f"outlier dimensions: {', '.join(map(str, outliers))}" if outliers else "no outlier dimension"
    _figure("mean", figure, "mean_activation", f"Mean activation of {len(mean)} dimensions; {named}")
    st.caption(named.capitalize() + ".")


def _cosine(view: ViewResult, layer: int, pooling: str) -> None:
    counts = view.array(layer, pooling, "cosine")
    if counts is None:
        return
    average = view.entry(layer, pooling)["mean_cosine"]
    figure = explore_figures.cosine_histogram(counts, average, pooling)
    pairs = int(counts.sum())
    _figure("cosine", figure, "cosine_histogram", f"Histogram of the cosines of {pairs:,} pairs of points")
    most, seed = view.facts["cosine_points"], view.facts["request"]["seed"]
    drawn = f" of {most:,} points drawn at random with seed {seed}" if view.entry(layer, pooling)["n"] > most else ""
    st.caption(f"{pairs:,} pairs{drawn}.")


def _correlation(view: ViewResult, pooling: str) -> None:
    cells = view.array(view.depth, pooling, "correlation")
    order = view.array(view.depth, pooling, "order")
    if cells is None or order is None:
        return
    st.subheader(f"Correlation of dimensions, last layer, {pooling}", anchor=False)
    figure = explore_figures.correlation(cells, order)
    average = wording.number(view.entry(view.depth, pooling)["abs_correlation"], 3)
    told = f"Absolute correlation of {len(order)} dimensions of the last layer, mean {average} off the diagonal"
    _figure("correlation", figure, "matrix", told)
    st.caption(f"Mean |ρ| off the diagonal: {average}.")


def _figure(name: str, figure: object, explanation: str, words: str) -> None:
    entry = explanations.get(explanation)
    if name != "correlation":
        st.markdown(f"**{entry.title}**")
    st.plotly_chart(figure, key=PREFIX + name, config=theme.CHART_CONFIG, alt=words)
    explanations.show(explanation)


def numbers(view: ViewResult, filled: Filled) -> None:
    """Every measure of every layer and pooling, with n, d and notes; downloads."""
    assert filled.request is not None
    st.subheader("All numbers", anchor=False)
    table = explore_tables.frame(view.entries)
    st.dataframe(
        table.rename(columns=explore_tables.COLUMNS),
        hide_index=True,
        column_config=_columns(table),
        placeholder="–",
        alt=f"Every measure of {len(table)} clouds, one line per layer and pooling",
    )
    request = filled.request
    name = "-".join(
        ("explore", *(part.replace("/", "-").strip("-.~") for part in (request.model, request.task)), request.split)
    )
    caption = f"{request.model} on {request.task} ({request.split}, {view.facts['rows']} rows), by layer and pooling."
    downloads.buttons(name, table, lambda: explore_tables.latex(table, caption))


def _columns(table: pd.DataFrame) -> dict[str, Any]:
    number, words = st.column_config.NumberColumn, explore_tables.COLUMNS
    fine = ("isoscore", "isoscore_unbiased", "low", "high", "ev_1", "mean_cosine", "abs_correlation")
    coarse = ("participation_ratio", "effective_rank", "twonn", "mean_norm")
    small = ("sigma_min", "sigma_median", "sigma_max")
    return {
        **{words[name]: number(format="%.4f") for name in fine},
        **{words[name]: number(format="%.2f") for name in coarse},
        **{words[name]: number(format="%.3g") for name in small},
        words["notes"]: st.column_config.TextColumn(width="large"),
    }

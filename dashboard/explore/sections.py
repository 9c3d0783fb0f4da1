"""The sections of Explore about the chosen layer and pooling: the profile, the figures and the output matrix."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from dashboard.components.figure import Prepared, draw, prepared
from dashboard.components.matrix import cloud_matrix
from dashboard.explore import figures, grid, numbers
from dashboard.explore.form import PREFIX, Pane, ViewForm, cloud_file, file_name, view_names
from dashboard.shared import downloads, explanations, measures, tables, wording
from dashboard.shared.forms import choice
from dashboard.shared.stable import stable
from isoviz import metrics
from isoviz.exploring import shrinkage, user_sets
from isoviz.exploring.results import ViewResult
from isoviz.formatting import sentence
from isoviz.metrics.directions import indistinct

cached = functools.partial(
    st.cache_data, show_spinner=False, max_entries=64, hash_funcs={Pane: lambda pane: (*pane.place, pane.views)}
)
"""Cache of figures: making them took two thirds of a rerun, and the same clouds give the same figures."""


def sized(figure: go.Figure, views: int) -> Prepared:
    """The figure as it is drawn, smaller if there are several views."""
    if views > 1:
        figures.compact(figure)
    return prepared(figure)


def plot(pane: Pane, name: str, figure: Prepared, words: str, *, about: str = "") -> None:
    """Mount a figure of a view, in the height of its place if that is in the grid."""
    if name in ("profile", "spectrum") and (pane.views == 1 or grid.is_large(name)):
        figure = replace(figure, height=grid.height(name))
    if pane.views > 1:
        words = f"View {pane.number}: {words}"
    draw(
        figure,
        key=pane.prefix + name,
        words=words,
        name=cloud_file(pane, name.replace("_", "-")),
        about=about or pane.about,
    )


# --------------------------------------------------------------------------------------------------- layer by layer

MORE = {"Length of the mean vector": "mean_norm"}
"""Further measures of each cloud: title → column."""


@stable
def select(views: list[ViewResult], view_forms: list[ViewForm]) -> list[Pane]:
    """Fields of the measure, and of each view's layer and pooling, in one row; the panes."""
    measure, *columns = st.columns([2, *[3 for _ in views]], gap="medium")
    measure.selectbox("Measure", list(_titles()), key=PREFIX + "measure", bind="query-params")
    panes = []
    for number, (view, form, column) in enumerate(zip(views, view_forms, columns, strict=True), start=1):
        with column:
            with st.container():
                if len(views) > 1:
                    st.markdown(f"**View {number}**")
            with st.container(horizontal=True):  # for any number of views: see `dashboard.shared.stable`
                _forget_another_models_fields(view, form)
                pooling = _pooling_field(view, form.prefix)
                layer = _layer_field(view, form.prefix, pooling)
        panes.append(Pane(number, len(views), form, view, layer, pooling))
    return panes


@stable
def sentences(panes: list[Pane]) -> None:
    """How isotropic each cloud is, against what, and which dimensions stand out."""
    measure = measure_of_address()
    if len({(pane.layer / max(pane.view.depth, 1), pane.pooling) for pane in panes}) > 1:
        places = (f"view {pane.number}: {pane.where or 'vectors, '}".removesuffix(", ") for pane in panes)
        st.markdown(f":material/warning: Different depths or poolings: {'; '.join(places)}.")
    for pane in panes:
        view = f"**View {pane.number}**, {wording.plain(pane.source)}: " if len(panes) > 1 else ""
        st.markdown(view + wording.plain(_in_one_sentence(pane, measure)))
        if alike := indistinct(pane.entry.number("mean_cosine")):
            st.markdown(f":material/warning: {wording.plain(sentence(alike))}")
        if numbers.value(pane.entry, measure) is None:
            for note in numbers.notes_on(pane.entry, measure):
                st.caption(f":material/info: {wording.plain(note)}")


def _in_one_sentence(pane: Pane, measure: str) -> str:
    parts = [f"n = {numbers.points_of(pane.entry, measure)}, d = {pane.entry.d}"]
    if pane.entry.n < 5 * pane.entry.d:
        parts.append(f"few points: n/d = {pane.entry.n / pane.entry.d:.2g}")
    if measure in metrics.catalogue():
        parts.append(f"isotropic: {metrics.get(measure).at_isotropy.text}")
    of_layers = [numbers.value(entry, measure) for entry in pane.view.entries if entry.pooling == pane.pooling]
    known = [value for value in of_layers if value is not None]
    if len(known) > 1:
        parts.append(f"over its layers {wording.number(min(known))} to {wording.number(max(known))}")
    value = wording.number(numbers.value(pane.entry, measure))
    rogue = pane.rogue
    listed = ", ".join(map(str, rogue[:_LISTED])) + f" and {len(rogue) - _LISTED} more" * (len(rogue) > _LISTED)
    stand_out = f"Rogue dimensions by mean: {listed}." if rogue else "No dimension stands out by its mean."
    if (sigma := pane.array("sigma")) is not None and sigma.any():
        variances = np.square(sigma, dtype=np.float64)
        share, even = (wording.number(100 * part, 2) for part in (variances.max() / variances.sum(), 1 / pane.entry.d))
        stand_out += f" Dimension {variances.argmax()} has most variance: {share} % of it (if even: {even} %)."
    return f"{_title_of(measure)} {value} ({'; '.join(parts)}). {stand_out}"


_LISTED = 8
"""Most rogue dimensions named in the sentence."""


@stable
def profile(panes: list[Pane]) -> None:
    """The measure over all layers of each view; of vectors, which have none, the mean of each dimension."""
    measure = measure_of_address()
    layered = [pane for pane in panes if not pane.of_vectors]
    flat = [pane for pane in panes if pane.of_vectors]
    means = dict(zip((pane.number for pane in flat), _figures(flat, "mean_activation", False), strict=True))
    profiles = dict(zip((pane.number for pane in layered), _profiles(layered, measure), strict=True))
    with grid.cell("profile", "Layer by layer" if layered else figures.MEAN_ACTIVATION.title):
        for pane, column in zip(panes, st.columns(len(panes), gap="medium"), strict=True):
            with column:
                if pane.of_vectors:
                    figure, words, _ = means[pane.number]
                    if figure is not None:
                        plot(pane, "profile", figure, words)
                    continue
                poolings = ", ".join(pane.view.poolings)
                words = f"{_title_of(measure)} over layers 0 to {pane.view.depth}, one line for each of {poolings}"
                plot(pane, "profile", profiles[pane.number], words, about=_all_clouds(pane, measure))
                if measure == shrinkage.MEASURE:
                    _all_layers(pane)
        with grid.details("profile"):
            for note in dict.fromkeys(note for pane in panes for note in numbers.notes_on(pane.entry, measure)):
                st.caption(f":material/info: {wording.plain(note)}")
            _how_to_read(measure)
            if flat:
                explanations.show(figures.MEAN_ACTIVATION)


@cached()
def _profiles(panes: list[Pane], measure: str) -> list[Prepared]:
    label = _title_of(measure)
    profiles = [figures.layer_profile(pane.view.entries, measure, label, (pane.layer, pane.pooling)) for pane in panes]
    if len(panes) > 1:
        figures.share_axes(profiles)
    return [sized(figure, len(panes)) for figure in profiles]


def _all_clouds(pane: Pane, measure: str) -> str:
    """The clouds of the profile, with the number of points measured."""
    pools = []
    for pooling in pane.view.poolings:
        counts = {numbers.points_of(entry, measure) for entry in pane.view.entries if entry.pooling == pooling}
        pools.append(f"{pooling}: n = {' or '.join(sorted(counts))}")
    return f"{pane.source} · layers 0 to {pane.view.depth} · {'; '.join(pools)} · d = {pane.entry.d}"


def _all_layers(pane: Pane) -> None:
    """IsoScore* of all layers together, and the source of Σ_S."""
    together = pane.view.together
    caption = numbers.of_shrinkage(pane.view.facts["shrinkage"])
    if together is not None:
        value = wording.number(together.number(shrinkage.MEASURE))
        layers = numbers.of_layers(pane.view)
        caption = (
            f"{layers[0].upper()}{layers[1:]}: {value} (n = {wording.number(together.n)}, d = {together.d}). {caption}"
        )
    st.caption(wording.plain(caption))


def _titles() -> dict[str, str]:
    return {metric.number_title: metric.slug for metric in measures.of_clouds()} | MORE


def _title_of(measure: str) -> str:
    return next(title for title, slug in _titles().items() if slug == measure)


def measure_of_address() -> str:
    """Column of the measure in the layer profile."""
    titles = _titles()
    return titles.get(str(st.session_state.get(PREFIX + "measure")), measures.of_clouds()[0].slug)


def _forget_another_models_fields(view: ViewResult, form: ViewForm) -> None:
    """A layer or pooling that was chosen for another model is not kept: another model starts at its last layer."""
    assert form.request is not None
    before = st.session_state.get(key := form.prefix + "of_model", form.request.model)
    st.session_state[key] = form.request.model
    if before != form.request.model:
        st.session_state[form.prefix + "layer"] = view.depth
        st.session_state[form.prefix + "pooling"] = view.poolings[0]


def _pooling_field(view: ViewResult, prefix: str) -> str:
    if view.poolings == [user_sets.POOLING]:
        return user_sets.POOLING
    # left over from a model with other poolings
    if st.session_state.get(prefix + "pooling", view.poolings[0]) not in view.poolings:
        del st.session_state[prefix + "pooling"]
    return choice(
        "Pooling",
        view.poolings,
        prefix + "pooling",
        "cls: the first token of each row. last: its last token (decoder models). mean: the mean of its tokens. "
        "tokens: every token as a point. sentence: the sentence-transformers model's vector, last layer only.",
    )


def _layer_field(view: ViewResult, prefix: str, pooling: str) -> int:
    if not view.depth:
        return 0
    key = prefix + "layer"
    if st.session_state.get(key, 0) > view.depth:  # left over from a deeper model
        del st.session_state[key]
    last_only = {entry.layer for entry in view.entries if entry.pooling == pooling} == {view.depth}
    hint = f"Only the last layer has pooling {pooling}." if last_only else "Layer 0 is the output of the embeddings."
    selected = st.slider(
        "Layer", 0, view.depth, view.depth, key=key, bind="query-params", disabled=last_only, help=hint
    )
    return view.depth if last_only else int(selected)


@stable
def _how_to_read(measure: str) -> None:
    if measure not in metrics.catalogue():
        explanations.show(figures.MEAN_NORM)
        return
    more = figures.ISOSCORE_STAR.reading if measure == shrinkage.MEASURE else ""
    if comparison := metrics.get(measure).comparison:
        st.caption(wording.plain(comparison))
    explanations.show_metric(metrics.get(measure), more)


# ----------------------------------------------------------------------------------------- the figures of one cloud


def spectrum(panes: list[Pane]) -> None:
    """EV_k of each view with the share of each direction."""
    with grid.cell("spectrum", explanations.SPECTRUM.title, explanations.SPECTRUM):
        hint = "A log axis gives the first few directions as much room as the many after them."
        with grid.details("spectrum"):
            axis = choice("Explained variance over k", ["linear axis", "log axis"], PREFIX + "ev_axis", hint, kept=True)
        _row(panes, "spectrum", axis == "log axis")


def cloud_figures(panes: list[Pane]) -> None:
    """The further figures of each pane: beside each other for a single view, else one row of views for each, on the same axes."""
    alone = len(panes) == 1
    cells = st.columns(2, gap="large") * 2 if alone else [st.container()] * len(_FURTHER)
    for column, name in zip(cells, _FURTHER, strict=False):
        explanation = _FIGURES[name][1]
        with column:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f"**{explanation.title}**")
                explanations.show(explanation)
            _row(panes, name, False)
    for pane, column in zip(panes, st.columns(len(panes), gap="medium"), strict=True):
        with column:
            st.caption("Data of these figures and of EV_k:")
            make_frame = functools.partial(numbers.figure_data, pane.view, pane.layer, pane.pooling)
            downloads.buttons(cloud_file(pane, "figures"), make_frame, key=pane.prefix)


def _row(panes: list[Pane], name: str, log: bool) -> None:
    """One figure for all views."""
    parts = zip(panes, st.columns(len(panes), gap="medium"), _figures(panes, name, log), strict=True)
    for pane, column, (figure, words, note) in parts:
        with column:
            if figure is None:
                st.caption("Not available for this cloud.")
                continue
            plot(pane, name, figure, words)
            if len(panes) > 1:
                note = f"View {pane.number}: {pane.cloud_words}. {note}"
            if note:
                st.caption(wording.plain(note))


@cached()
def _figures(panes: list[Pane], name: str, log: bool) -> list[tuple[Prepared | None, str, str]]:
    """A figure of `_FIGURES` for all views, on the same axes."""
    draw, _ = _FIGURES[name]
    parts = [draw(pane, panes, log) for pane in panes]
    if len(panes) > 1:
        figures.share_axes([figure for figure, _, _ in parts if figure is not None])
    return [(figure and sized(figure, len(panes)), words, note) for figure, words, note in parts]


Drawn = tuple[go.Figure | None, str, str]
"""A figure, its description for screen readers, and its caption."""


def _spectrum(pane: Pane, _: list[Pane], log: bool) -> Drawn:
    layers = range(pane.view.depth + 1)
    curves = {n: curve for n in layers if (curve := pane.view.array(n, pane.pooling, "ev")) is not None}
    n, d = pane.entry.n, pane.entry.d
    described = f"first {len(curves[pane.layer])} of {d} components"
    described += f", layer {pane.layer} over the others" if len(curves) > 1 else ""
    note = f"Reads high with so few points: n/d = {n / d:.2g}." if n < 5 * d else ""
    figure = figures.spectrum(curves, pane.layer, pane.pooling, d, log=log)
    return figure, f"Explained variance of the {described}", note


def _sigma(pane: Pane, panes: list[Pane], _: bool) -> Drawn:
    sigma = pane.array("sigma")
    if sigma is None:
        return None, "", ""
    others = [values for other in panes if other is not pane and (values := other.array("sigma")) is not None]
    spread = f"{sigma.min():.3g} to {sigma.max():.3g}"
    alt_text = f"Histogram of the standard deviations of {len(sigma)} dimensions, {spread}"
    return figures.sigma_histogram(sigma, pane.pooling, others), alt_text, ""


def _mean(pane: Pane, _: list[Pane], __: bool) -> Drawn:
    mean, rogue = pane.array("mean"), pane.rogue
    if mean is None:
        return None, "", ""
    caption = f"rogue dimensions by mean: {', '.join(map(str, rogue))}" if rogue else "no rogue dimension by mean"
    figure = figures.mean_activation(mean, rogue, pane.pooling)
    return figure, f"Mean activation of {len(mean)} dimensions; {caption}", caption[0].upper() + caption[1:] + "."


def _cosine(pane: Pane, _: list[Pane], __: bool) -> Drawn:
    counts = pane.array("cosine")
    if counts is None:
        return None, "", ""
    pairs = int(counts.sum())
    most, seed = pane.view.facts["cosine_points"], pane.view.facts["request"]["seed"]
    sample = f" of {most:,} points drawn at random with seed {seed}" if pane.entry.n > most else ""
    figure = figures.cosine_histogram(counts, pane.entry.number("mean_cosine"), pane.pooling)
    count_text = f"{pairs:,} pair{'' if pairs == 1 else 's'}"
    return figure, f"Histogram of the cosines of {count_text} of points", f"{count_text}{sample}."


_FIGURES: dict[str, tuple[Callable[[Pane, list[Pane], bool], Drawn], explanations.Explanation]] = {
    "spectrum": (_spectrum, explanations.SPECTRUM),
    "mean_activation": (_mean, figures.MEAN_ACTIVATION),
    "sigma_histogram": (_sigma, figures.SIGMA_HISTOGRAM),
    "cosine_histogram": (_cosine, figures.COSINE_HISTOGRAM),
}
"""Name → function of the pane, all panes and whether k has a log axis; and the figure's explanation."""
_FURTHER = ("mean_activation", "sigma_histogram", "cosine_histogram")


def correlations(panes: list[Pane]) -> None:
    """The clustered |ρ| of every view, each in its own order."""
    with grid.cell("correlation", explanations.MATRIX.title, explanations.MATRIX):
        for pane, column in zip(panes, st.columns(len(panes), gap="medium"), strict=True):
            with column:
                _matrix(pane)


def _matrix(pane: Pane) -> None:
    average = wording.number(pane.entry.number("abs_correlation"), 3)
    sampled = pane.view.points_in_matrix(pane.layer, pane.pooling)
    sample = "" if sampled == pane.entry.n else f" (the matrix uses a random sample of {sampled:,} of these points)"
    view = f"View {pane.number}: " if pane.views > 1 else ""
    cloud = f"{pane.cloud_words}{sample}"
    cloud_matrix(
        pane.place,
        key=pane.prefix + "correlation",
        name=cloud_file(pane, "correlation"),
        about=f"{pane.about}{sample}",
        words=f"{view}Absolute correlation of {pane.entry.d} dimensions, {cloud}, mean {average} off the diagonal",
        mean=average,
        compact=not grid.is_large("correlation"),
    )
    note = f"{view}{cloud}. Mean |ρ| off the diagonal, of all points: {average}."
    st.caption(wording.plain(note[0].upper() + note[1:]))


# ---------------------------------------------------------------------------------------------------- output matrix

_CONVENTIONS = {"definition": "as defined", "published": "as published"}


def has_output(panes: list[Pane]) -> bool:
    """Whether any pane has an output matrix: the user's own vectors have none."""
    return not all(pane.of_vectors for pane in panes)


def output_matrix(panes: list[Pane]) -> None:
    """One block per model; views of the same model share it."""
    explanations.show(figures.OUTPUT_MATRIX)
    models: dict[str, list[Pane]] = {}
    for pane in (pane for pane in panes if not pane.of_vectors):
        models.setdefault(str(pane.view.facts["model_fingerprint"]), []).append(pane)
    for views, column in zip(models.values(), st.columns(len(models), gap="medium"), strict=True):
        with column:
            _block(views[0], [pane.number for pane in views])


def _block(pane: Pane, view_numbers: list[int]) -> None:
    output: dict[str, Any] = pane.view.facts["output"]
    if pane.views > 1:
        model = pane.form.request.model if pane.form.request else ""
        st.markdown(f"**{view_names(view_numbers)}**: {wording.plain(model)}")
    if "reason" in output:
        reason = output["reason"]
        st.caption(wording.plain(f"{reason[0].upper()}{reason[1:]}."))
        return
    description = f"{output['what']}: N = {wording.number(output['rows'])} rows of d = {output['d']}"
    st.markdown(wording.plain(f"{description[0].upper()}{description[1:]} numbers."))
    lines = output_table(output)
    st.markdown(tables.as_markdown(lines))
    norms = output["norms"]
    lengths = (
        f"Row length ‖w‖: mean {wording.number(norms['mean'])}, from {wording.number(norms['min'])} "
        f"to {wording.number(norms['max'])}. Unit scale: every row divided by their root mean square length."
    )
    if output["rows"] < output["d"]:
        lengths += " With fewer rows than dimensions, the published convention also depends on the eigenvalue solver."
    st.caption(wording.plain(lengths))
    name = f"{file_name(pane)}-output-matrix" + (f"-view{pane.number}" if pane.number > 1 else "")
    downloads.buttons(name, lines)


def output_table(output: dict[str, Any]) -> pd.DataFrame:
    """One row per convention: I1 and I2 of the matrix as it is and at unit scale; missing if undefined."""
    pairs = {(pair["convention"], pair["scale_free"]): pair for pair in output["pairs"]}
    of_weights = [metric for metric in measures.of_runs() if metric.slug in output["pairs"][0]]
    columns = {metric.heading: (metric.slug, False) for metric in of_weights}
    columns |= {f"{metric.heading}, unit scale": (metric.slug, True) for metric in of_weights}
    lines = [
        (name, *(pairs[convention, scale_free][slug] for slug, scale_free in columns.values()))
        for convention, name in _CONVENTIONS.items()
    ]
    return pd.DataFrame(lines, columns=["Convention", *columns]).astype(object).where(lambda frame: frame.notna(), None)

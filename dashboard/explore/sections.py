"""The sections of Explore about the chosen layer and pooling: the profile, the figures and the output matrix."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from dashboard import downloads, explanations, measures, wording
from dashboard.components.cloud_matrix import cloud_matrix
from dashboard.components.figure import Prepared, draw, prepared
from dashboard.explore import figures, numbers
from dashboard.explore.form import PREFIX, ChosenCloud, Filled, cloud_file, file_name
from dashboard.steady import steady
from isoviz import metrics
from isoviz.exploring import clustering, own, shrinkage
from isoviz.exploring.results import ViewResult

_made_once = functools.partial(
    st.cache_data, show_spinner=False, max_entries=64, hash_funcs={ChosenCloud: lambda one: (*one.place, one.views)}
)
"""Of figures: making them with Plotly took two thirds of a rerun, and the same clouds have the same figures."""


def _prepared(figure: go.Figure, views: int) -> Prepared:
    if views > 1:
        figures.compact(figure)
    return prepared(figure)


def plot(one: ChosenCloud, name: str, figure: Prepared, words: str, *, about: str = "") -> None:
    if one.views > 1:
        words = f"View {one.number}: {words}"
    draw(
        figure,
        key=one.prefix + name,
        words=words,
        name=cloud_file(one, name.replace("_", "-")),
        about=about or one.about,
    )


# --------------------------------------------------------------------------------------------------- layer by layer

MORE = {"Length of the mean vector": "mean_norm"}
"""What else each cloud has a number of: title → column."""
_FORMER_TITLES = {"Mean |ρ| of two dimensions": "abs_correlation"}


@steady
def profile(views: list[ViewResult], all_filled: list[Filled]) -> list[ChosenCloud]:
    """One measure over all layers; returns the views with the layer and pooling chosen for the figures below."""
    of_layers = any(view.depth for view in views)
    st.subheader("Layer by layer" if of_layers else "Measures", anchor=False)
    titles = _titles()
    former = _FORMER_TITLES.get(st.query_params.get(PREFIX + "measure", ""))
    if former is not None:  # links of before stay good
        del st.query_params[PREFIX + "measure"]
        st.session_state[PREFIX + "measure"] = metrics.get(former).number_title
    title = str(st.selectbox("Measure", list(titles), key=PREFIX + "measure", bind="query-params", width=420))
    measure = titles[title]
    columns = st.columns(len(views), gap="medium")
    chosen = []
    for number, (view, filled, column) in enumerate(zip(views, all_filled, columns, strict=True), start=1):
        with column:
            _which_view(number, len(views))
            with st.container(horizontal=True):  # however many views there are: see `dashboard.steady`
                pooling = _pooling_field(view, filled.prefix)
                layer = _layer_field(view, filled.prefix, pooling)
        chosen.append(ChosenCloud(number, len(views), filled, view, layer, pooling))
    for one, figure, column in zip(chosen, _profiles(chosen, measure), columns, strict=True):
        with column:
            reading = numbers.value(one.entry, measure)
            size = f"n = {numbers.points_of(one.entry, measure)}, d = {one.entry.d}"
            if one.of_vectors:
                st.metric(title, wording.number(reading))
                st.caption(wording.plain(f"{one.source} ({size})"))
            else:
                words = (
                    f"{title} over layers 0 to {one.view.depth}, one line for each of {', '.join(one.view.poolings)}"
                )
                plot(one, "profile", figure, words, about=_all_clouds(one, measure))
                st.caption(wording.plain(f"Layer {one.layer}, {one.pooling}: {wording.number(reading)} ({size})"))
            if reading is None or measure != shrinkage.MEASURE:  # the caption below names its source
                for note in numbers.notes_on(one.entry, measure):
                    st.caption(f":material/info: {wording.plain(note)}")
            if measure == shrinkage.MEASURE and not one.of_vectors:
                _all_layers(one)
    _how_to_read(measure)
    return chosen


@_made_once()
def _profiles(chosen: list[ChosenCloud], measure: str) -> list[Prepared]:
    title = next(title for title, slug in _titles().items() if slug == measure)
    drawn = [figures.layer_profile(one.view.entries, measure, title, (one.layer, one.pooling)) for one in chosen]
    if len(chosen) > 1:
        figures.share_axes(drawn)
    return [_prepared(figure, len(chosen)) for figure in drawn]


@steady
def _which_view(number: int, views: int) -> None:
    if views > 1:
        st.markdown(f"**View {number}**")


def _all_clouds(one: ChosenCloud, measure: str) -> str:
    """Of which clouds the profile is, with the points that the measure was taken on."""
    pools = []
    for pooling in one.view.poolings:
        counts = {numbers.points_of(entry, measure) for entry in one.view.entries if entry.pooling == pooling}
        pools.append(f"{pooling}: n = {' or '.join(sorted(counts))}")
    return f"{one.source} · layers 0 to {one.view.depth} · {'; '.join(pools)} · d = {one.entry.d}"


def _all_layers(one: ChosenCloud) -> None:
    """IsoScore* of all layers together, and what its Σ_S and that of each layer are from."""
    together = one.view.together
    words = numbers.of_shrinkage(one.view.facts["shrinkage"])
    if together is not None:
        value = wording.number(together.number(shrinkage.MEASURE))
        which = numbers.of_layers(one.view)
        words = f"{which[0].upper()}{which[1:]}: {value} (n = {wording.number(together.n)}, d = {together.d}). {words}"
    st.caption(wording.plain(words))


def _titles() -> dict[str, str]:
    return {metric.number_title: metric.slug for metric in measures.of_clouds()} | MORE


def measure_of_address() -> str:
    """The measure that the layer profile shows, by its column."""
    titles = _titles()
    return titles.get(str(st.session_state.get(PREFIX + "measure")), measures.of_clouds()[0].slug)


def _pooling_field(view: ViewResult, prefix: str) -> str:
    if view.poolings == [own.POOLING]:
        return own.POOLING
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
            help="cls: the first token of each row. last: its last token (decoder models). mean: the mean of its tokens. "
            "tokens: every token as a point. sentence: the vector that a sentence-transformers model gives, last layer only.",
        )
    )


def _layer_field(view: ViewResult, prefix: str, pooling: str) -> int:
    if not view.depth:
        return 0
    key = prefix + "layer"
    if st.session_state.get(key, 0) > view.depth:  # of a deeper model
        del st.session_state[key]
    last_only = {entry.layer for entry in view.entries if entry.pooling == pooling} == {view.depth} and view.depth > 0
    chosen = int(
        st.slider(
            "Layer",
            0,
            view.depth,
            view.depth,
            key=key,
            bind="query-params",
            disabled=last_only,
            help=f"Only the last layer has pooling {pooling}."
            if last_only
            else "Layer 0 is the output of the embeddings.",
        )
    )
    return view.depth if last_only else chosen


def _how_to_read(measure: str) -> None:
    if measure not in metrics.catalogue():
        explanations.show(figures.MEAN_NORM)
        return
    more = figures.ISOSCORE_STAR.reading if measure == shrinkage.MEASURE else ""
    explanations.show_metric(metrics.get(measure), more)


# ----------------------------------------------------------------------------------------- the figures of one cloud

_AXIS = PREFIX + "ev_axis"


def cloud_figures(chosen: list[ChosenCloud]) -> None:
    """The figures of each view's layer and pooling: by themselves in pairs, several views side by side on the same axes."""
    alone = len(chosen) == 1
    first = chosen[0]
    pooling = figures.POOLING_TITLES.get(first.pooling, first.pooling)
    cloud = first.source if first.of_vectors else f"Layer {first.layer}, {pooling}"
    st.subheader(cloud if alone else "Side by side", anchor=False)
    with st.container(horizontal=True, vertical_alignment="center"):
        with st.container(width="content"):
            if alone:
                st.caption(f"n = {wording.number(first.entry.n)} points, d = {first.entry.d} dimensions")
        _axis_field()
    if alone:
        names = list(_FIGURES)
        for start in range(0, len(names), 2):
            for column, name in zip(st.columns(2, gap="large"), names[start : start + 2], strict=False):
                with column:
                    _row(chosen, name)
    else:
        for name in _FIGURES:
            _row(chosen, name)
    _numbers_behind(chosen)


def _numbers_behind(chosen: list[ChosenCloud]) -> None:
    """The figures above as files."""
    for one, column in zip(chosen, st.columns(len(chosen), gap="medium"), strict=True):
        with column:
            st.caption("Data of these figures:")
            made = functools.partial(numbers.behind, one.view, one.layer, one.pooling)
            downloads.points(cloud_file(one, "figures"), made, key=one.prefix + "figures")


def _row(chosen: list[ChosenCloud], name: str) -> None:
    """One figure of all views, under one heading."""
    _, explanation = _FIGURES[name]
    log = st.session_state.get(_AXIS) == "log axis"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{explanation.title}**")
        explanations.show(explanation)
    parts = zip(chosen, st.columns(len(chosen), gap="medium"), _figures(chosen, name, log), strict=True)
    for one, column, (figure, words, note) in parts:
        with column:
            if figure is None:
                st.caption("Not available for this cloud.")
                continue
            plot(one, name, figure, words)
            if len(chosen) > 1:
                note = f"View {one.number}: {one.cloud_words}. {note}"
            if note:
                st.caption(wording.plain(note))


@_made_once()
def _figures(chosen: list[ChosenCloud], name: str, log: bool) -> list[tuple[Prepared | None, str, str]]:
    """A figure of `_FIGURES` for all views, on the same axes."""
    draw, _ = _FIGURES[name]
    parts = [draw(one, chosen, log) for one in chosen]
    if len(chosen) > 1:
        figures.share_axes([figure for figure, _, _ in parts if figure is not None])
    return [(figure and _prepared(figure, len(chosen)), words, note) for figure, words, note in parts]


def _axis_field() -> None:
    """Whether k has a logarithmic axis."""
    st.segmented_control(
        "Explained variance over k",
        ["linear axis", "log axis"],
        default="linear axis",
        required=True,
        key=_AXIS,
        bind="query-params",
        persist_state="session",
        help="A log axis gives the first few directions as much room as the many after them.",
    )


Drawn = tuple[go.Figure | None, str, str]
"""A figure, its description for screen readers, and its caption."""


def _spectrum(one: ChosenCloud, _: list[ChosenCloud], log: bool) -> Drawn:
    curves = {}
    for number in range(one.view.depth + 1):
        curve = one.view.array(number, one.pooling, "ev")
        if curve is not None:
            curves[number] = curve
    d = one.entry.d
    which = f"first {len(curves[one.layer])} of {d} components, layer {one.layer} over the others"
    figure = figures.spectrum(curves, one.layer, one.pooling, d, log=log)
    few = one.entry.n < 5 * d
    note = f"Reads high with so few points: n/d = {one.entry.n / d:.2g}." if few else ""
    return figure, f"Explained variance of the {which}", note


def _sigma(one: ChosenCloud, chosen: list[ChosenCloud], _: bool) -> Drawn:
    sigma = one.view.array(one.layer, one.pooling, "sigma")
    if sigma is None:
        return None, "", ""
    spread = f"{sigma.min():.3g} to {sigma.max():.3g}"
    words = f"Histogram of the standard deviations of {len(sigma)} dimensions, {spread}"
    others = [other.view.array(other.layer, other.pooling, "sigma") for other in chosen if other is not one]
    beside = [values for values in others if values is not None]
    return figures.sigma_histogram(sigma, one.pooling, beside), words, ""


def _outliers(one: ChosenCloud) -> tuple[int, ...]:
    return one.entry.dimensions.outliers if one.entry.dimensions else ()


def _mean(one: ChosenCloud, chosen: list[ChosenCloud], _: bool) -> Drawn:
    mean = one.view.array(one.layer, one.pooling, "mean")
    if mean is None:
        return None, "", ""
    outliers = _outliers(one)
    named = f"outlier dimensions: {', '.join(map(str, outliers))}" if outliers else "no outlier dimension"
    beside = [
        (means, _outliers(other))
        for other in chosen
        if other is not one and (means := other.view.array(other.layer, other.pooling, "mean")) is not None
    ]
    figure = figures.mean_activation(mean, outliers, one.pooling, beside)
    span, beyond_each = figures.beyond_axis([(mean, outliers), *beside])
    beyond = beyond_each[0]
    if span is not None:
        ends = f"{wording.number(span[0], 3)} to {wording.number(span[1], 3)}"
        why = "to keep the rest readable" if beyond else "to fit the outliers of another view"
        listed = [f"dimension {figures.dimension_words(mean, number, ' at ')}" for number in beyond]
        named += f"; the axis is cut to {ends}, {why}" + (f"; beyond it: {', '.join(listed)}" if beyond else "")
    return figure, f"Mean activation of {len(mean)} dimensions; {named}", named[0].upper() + named[1:] + "."


def _cosine(one: ChosenCloud, _: list[ChosenCloud], __: bool) -> Drawn:
    counts = one.view.array(one.layer, one.pooling, "cosine")
    if counts is None:
        return None, "", ""
    pairs = int(counts.sum())
    most, seed = one.view.facts["cosine_points"], one.view.facts["request"]["seed"]
    drawn = f" of {most:,} points drawn at random with seed {seed}" if one.entry.n > most else ""
    figure = figures.cosine_histogram(counts, one.entry.number("mean_cosine"), one.pooling)
    counted = f"{pairs:,} pair{'' if pairs == 1 else 's'}"
    return figure, f"Histogram of the cosines of {counted} of points", f"{counted}{drawn}."


_FIGURES: dict[str, tuple[Callable[[ChosenCloud, list[ChosenCloud], bool], Drawn], explanations.Explanation]] = {
    "spectrum": (_spectrum, explanations.SPECTRUM),
    "mean_activation": (_mean, figures.MEAN_ACTIVATION),
    "sigma_histogram": (_sigma, figures.SIGMA_HISTOGRAM),
    "cosine_histogram": (_cosine, figures.COSINE_HISTOGRAM),
}
"""The figures of one cloud, in their order on the page; each may need the other views and whether k has a log axis."""


def correlations(chosen: list[ChosenCloud]) -> None:
    """The clustered |ρ| of every view, in its own order or in that of the first."""
    explanations.show(explanations.MATRIX)
    own = True
    if len(chosen) > 1:
        choice = st.segmented_control(
            "Order of the dimensions",
            ["own", "as in view 1"],
            default="own",
            required=True,
            key=PREFIX + "order",
            bind="query-params",
            persist_state="session",
            help="own: each view has its own order. as in view 1: every view uses the order of view 1.",
        )
        own = choice == "own"
    first = chosen[0]
    for one, column in zip(chosen, st.columns(len(chosen), gap="medium"), strict=True):
        with column:
            same = one.entry.d == first.entry.d
            average = wording.number(one.entry.number("abs_correlation"), 3)
            counted, total = clustering.points_in(one.view, one.layer, one.pooling), one.entry.n
            sample = "" if counted == total else f"the matrix uses a random sample of {counted:,} of these points"
            cloud = f"{one.cloud_words} ({sample})" if sample else one.cloud_words
            words = f"Absolute correlation of {one.entry.d} dimensions, {cloud}, mean {average} off the diagonal"
            cloud_matrix(
                one.place,
                order=None if own or one is first or not same else first.place,
                key=one.prefix + "correlation",
                name=cloud_file(one, "correlation"),
                about=f"{one.about}{f' ({sample})' if sample else ''}",
                words=words if one.views == 1 else f"View {one.number}: {words}",
                mean=average,
            )
            name = f"View {one.number}: {one.cloud_words}" if one.views > 1 else one.cloud_words.capitalize()
            note = (
                f". Mean |ρ| off the diagonal: {average}."
                if one.views > 1
                else ". Rows and columns are dimensions, clustered by correlation."
            )
            if not own and not same:
                note += f" Shown in its own order: it has {one.entry.d} dimensions, view 1 has {first.entry.d}."
            if sample:
                note += f" {sample[0].upper()}{sample[1:]}; the mean uses all."
            st.caption(wording.plain(name + note))


# ---------------------------------------------------------------------------------------------------- output matrix

_CONVENTIONS = {"definition": "as defined", "published": "as published"}


def have_output(chosen: list[ChosenCloud]) -> bool:
    """Whether any of these has an output matrix: own vectors have none."""
    return not all(one.of_vectors for one in chosen)


def output_matrix(chosen: list[ChosenCloud]) -> None:
    """One block per model: views of the same model share it."""
    explanations.show(figures.OUTPUT_MATRIX)
    models: dict[str, list[ChosenCloud]] = {}
    for one in (one for one in chosen if not one.of_vectors):
        models.setdefault(str(one.view.facts["model_fingerprint"]), []).append(one)
    for views, column in zip(models.values(), st.columns(len(models), gap="medium"), strict=True):
        with column:
            _block(views[0], [one.number for one in views], alone=len(models) == 1)


def _block(one: ChosenCloud, view_numbers: list[int], *, alone: bool) -> None:
    output: dict[str, Any] = one.view.facts["output"]
    if one.views > 1:
        views = f"View{'s' if len(view_numbers) > 1 else ''} {', '.join(map(str, view_numbers))}"
        st.markdown(f"**{views}**: {wording.plain(_model(one))}")
    if "reason" in output:
        reason = output["reason"]
        st.caption(wording.plain(f"{reason[0].upper()}{reason[1:]}."))
        return
    left, right = st.columns([5, 6], gap="large") if alone else (st.container(), st.container())
    with left:
        what = f"{output['what']}: N = {wording.number(output['rows'])} rows of d = {output['d']}"
        st.markdown(wording.plain(f"{what[0].upper()}{what[1:]} numbers."))
        lines = output_table(output)
        st.markdown(_as_markdown(lines))
        norms = output["norms"]
        lengths = (
            f"Row length ‖w‖: mean {wording.number(norms['mean'])}, from {wording.number(norms['min'])} "
            f"to {wording.number(norms['max'])}. Unit scale: every row divided by their root mean square length."
        )
        if output["rows"] < output["d"]:
            lengths += (
                " With fewer rows than dimensions, the published convention also depends on the eigenvalue solver."
            )
        st.caption(wording.plain(lengths))
        name = f"{file_name(one)}-output-matrix" + (f"-view{one.number}" if one.number > 1 else "")
        downloads.buttons(name, lines, parquet_too=True)
    with right:
        figure = _row_lengths(one, _names(one, output))
        words = f"Lengths of the {output['rows']} rows of the output matrix, mean {wording.number(norms['mean'])}"
        draw(figure, key=one.prefix + "output", words=words, name=name, about=f"{_model(one)} · {what}")


@_made_once()
def _row_lengths(one: ChosenCloud, names: list[str]) -> Prepared:
    return _prepared(figures.row_lengths(one.view.facts["output"], names), one.views)


def _as_markdown(table: pd.DataFrame) -> str:
    """Two lines: a table that sorts would cost a new tab more than all figures."""
    lines = [
        [wording.plain(cell) if isinstance(cell, str) else wording.number(cell) for cell in line]
        for line in table.itertuples(index=False)
    ]
    head = [list(table.columns), ["---", *["---:"] * (len(table.columns) - 1)]]
    return "\n".join("| " + " | ".join(line) + " |" for line in [*head, *lines])


def output_table(output: dict[str, Any]) -> pd.DataFrame:
    """One line per convention: I1 and I2 as the matrix is, and at unit scale; missing where undefined."""
    pairs = {(pair["convention"], pair["scale_free"]): pair for pair in output["pairs"]}
    of_weights = [metric for metric in measures.of_runs() if metric.slug in output["pairs"][0]]
    columns = {metric.heading: (metric.slug, False) for metric in of_weights}
    columns |= {f"{metric.heading}, unit scale": (metric.slug, True) for metric in of_weights}
    lines = [
        (name, *(pairs[convention, scale_free][slug] for slug, scale_free in columns.values()))
        for convention, name in _CONVENTIONS.items()
    ]
    return pd.DataFrame(lines, columns=["Convention", *columns]).astype(object).where(lambda frame: frame.notna(), None)


def _model(one: ChosenCloud) -> str:
    assert one.filled.request is not None
    return one.filled.request.model


def _names(one: ChosenCloud, output: dict[str, Any]) -> list[str]:
    """What the rows stand for, where they are few: the classes of the task, if it has so many."""
    known = own.task_of(str(one.view.facts["request"]["task"])).label_names
    fits = output["what"].startswith("the output layer") and len(known) == output["rows"]
    return list(known) if fits else [str(number) for number in range(len(output["each"] or ()))]

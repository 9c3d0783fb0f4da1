"""Parts of the What-if panel: tiles with changes, a summary in words, the table of read-outs, figures."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from dashboard.components.figure import Prepared, draw, prepared
from dashboard.components.matrix import cloud_matrix
from dashboard.server import arrays
from dashboard.shared import downloads, explanations, exported, map_figure, tables, theme, wording
from dashboard.shared.explanations import Explanation
from dashboard.shared.exported import ExportedSentences, ExportedTable
from dashboard.whatif import sentences as words
from dashboard.whatif.form import PREFIX
from isoviz import metrics
from isoviz.metrics.cloud import draw as sampled
from isoviz.metrics.scores import REPORTED_ZETA
from isoviz.readouts.division import Division
from isoviz.readouts.reading import Annotations, Comparison, ReadOut, applicable
from isoviz.runs.rows import RunRow
from isoviz.vectors import VectorSet
from isoviz.whatif.chains import Step, write
from isoviz.whatif.embeddings import Embeddings
from isoviz.whatif.engine import Answer, Full, WhatIf, instant_metrics, slow_metrics

HEADS = Explanation(
    title="Two heads",
    reading=(
        "The frozen head is the run's own output layer, trained on the original vectors; the refitted head is a "
        "logistic regression (ridge regression for numbers) on the transformed training rows, against one refitted without "
        "transform. If only the frozen "
        "head gets worse, the head no longer fits the vectors. If the refitted head changes, the transform "
        "changed what a linear head can read. Its penalty stays the same, so it also changes when narrow "
        "directions become wide or wide ones narrow, even if no information is lost. If the interval includes 0, "
        "there is no significant difference. It describes one setting; the best of many tried settings is optimistic."
    ),
    formula=r"\Delta = m(y, \hat y_{\text{after}}) - m(y, \hat y_{\text{before}})",
    paper="Efron & Tibshirani 1993, chapter 13.",
)

MAP = Explanation(
    title="Map",
    reading=(
        "Each mark is a validation row, placed along the two directions of largest variance, with the same unit "
        "on both axes. The axis titles give their share of the variance: small for an isotropic cloud."
    ),
    formula=r"z_i = U_2^\top (x_i - \bar x)",
    paper="Pearson 1901.",
)

READ_OUTS = Explanation(
    title="Read-outs",
    reading=(
        "Each read-out is taken from rows that the transform was not fitted on, before and after. Both see the same "
        "resamples, so the interval is of the change itself. An interval that includes 0 shows no difference. "
        "If you try many chains, the best result is optimistic: check it on the held-back rows."
    ),
    formula=r"\Delta^* = m(\text{after}^*) - m(\text{before}^*)",
    paper="Efron & Tibshirani 1993, chapter 13.",
)
_MAIN: Final = 4
_UNITS: Final = r" (on|with) these [^;]+(; another fit .*)?\.$"
"""The end of every verdict, which saved tables keep: the rows are named once, below the figure."""
_NUMBERS: Final = {"Before": 58, "After": 58, "Change": 62, "95 % from": 78, "to": 56}
"""Columns of the table of read-outs."""
BEFORE, AFTER = "#7f8691", theme.PALETTE[0]
PENDING: Final = "pending"
DRAWN: Final = 1_500
"""Most points drawn on a map: a random sample, the same for both maps."""
NO_STEPS: Final = "no transform"

_INPUTS: Final = (
    f"Here ζ = {REPORTED_ZETA:g}, and Σ_S is the covariance of the training rows under the same transforms."
)


@dataclass(frozen=True)
class View:
    """The cloud under a chain, and the containers that one move of a slider redraws.

    Attributes:
        engine: of the cloud.
        run: its run; None for a set of vectors.
        steps: the chain.
        summary, numbers, table: placeholders, updated as results arrive: the effect in sentences, the table of measures, and that of
            read-outs.
        figures, slow, below: containers, filled once: for EV_k, for the pictures that follow the slow numbers, and for exports.
    """

    engine: WhatIf
    run: RunRow | None
    steps: tuple[Step, ...]
    summary: DeltaGenerator
    numbers: DeltaGenerator
    table: DeltaGenerator
    figures: DeltaGenerator
    slow: DeltaGenerator
    below: DeltaGenerator

    @property
    def chain(self) -> str:
        """The chain as text, or `NO_STEPS`."""
        return write(self.steps) if self.steps else NO_STEPS

    @property
    def embeddings(self) -> Embeddings:
        """The run's embeddings."""
        assert isinstance(self.engine.source, Embeddings)
        return self.engine.source

    @property
    def vectors(self) -> VectorSet:
        """The set of vectors."""
        assert isinstance(self.engine.source, Division)
        return self.engine.source.vectors

    @property
    def source(self) -> str:
        """What the numbers are of, for saved files."""
        if self.run is None:
            return self.vectors.name
        config = self.run.config
        return " · ".join(
            (config.model, config.task, "validation", f"run {self.run.name}", f"{self.embeddings.cloud} cloud")
        )

    def file(self, what: str) -> str:
        """File name of a download, without extension."""
        return downloads.file_name("what-if", self.run.id if self.run else self.vectors.name, what.replace("_", "-"))

    def cloud(self, n: int) -> str:
        """Description of the cloud of a number or figure."""
        of_run = f"{words.cloud(self.embeddings.cloud)}, " if self.run else ""
        return f"{of_run}n = {n:,}{' validation rows' if self.run else ''}"


# --------------------------------------------------------------------------------------------------- measures


def main_readouts(annotations: Annotations) -> list[ReadOut]:
    """The most important read-outs, for the most informative annotations of these rows."""
    need = annotations.needs[0]
    return [one for one in applicable(annotations) if one.needs == need][:_MAIN]


def numbers(view: View, start: Answer | None, answer: Answer | None, first: Full | None, full: Full | None) -> None:
    """All measures in one table: before, after and change, or `pending`."""
    before, after = _values(start, first), _values(answer, full)
    reasons = {slug: reason for one in (answer, full) if one is not None for slug, reason in one.reasons.items()}
    shown = [*instant_metrics(), *(slow_metrics() if view.run is not None else [])]
    lines = [
        (metric.title, *_cells(before.get(metric.slug, PENDING), after.get(metric.slug, PENDING))) for metric in shown
    ]
    with view.numbers.container():
        frame = pd.DataFrame(lines, columns=["Measure", "Before", "After", "Change"])
        exported.note(PREFIX + "measures", ExportedTable("Measures, before and after", frame))
        st.markdown(tables.as_markdown(frame))
        for metric in shown:
            if metric.slug in reasons:
                st.caption(wording.plain(f"{metric.title} is undefined: {reasons[metric.slug]}."))
        if answer is None:
            return
        text = f"{view.cloud(answer.n)}, {_dimensions(answer.d if start is None else start.d, answer.d)}"
        text += " · more isotropic is not better by itself" + (f" · IsoScore*: {_INPUTS}" if view.run else "")
        st.caption(wording.plain(text))
        for caveat in [] if start is None else words.caveats(start, answer):
            st.caption(f":material/info: {wording.plain(caveat)}")
    if answer.only_rounding:
        with view.figures:
            st.caption(
                ":material/warning: The rows that the transforms are fitted on no longer vary in any direction. What remains is "
                "rounding error, so these numbers are meaningless."
            )


def _cells(before: float | str | None, after: float | str | None) -> tuple[str, str, str]:
    """A value before and after, with its change."""
    change = ""
    if isinstance(before, float) and isinstance(after, float):
        change = "±0" if abs(after - before) < 5e-7 else words.change(after, before)
    texts = [value if isinstance(value, str) else wording.number(value, 3) for value in (before, after)]
    return texts[0], texts[1], change


def _values(answer: Answer | None, full: Full | None) -> dict[str, float | None]:
    """The known numbers by slug, read-outs first; None where undefined."""
    known = [one for one in (answer, full) if one is not None]
    readouts = {slug: readout.value for one in known for slug, readout in one.readouts.items()}
    return readouts | {slug: value for one in known for slug, value in one.measures.items()}


def _dimensions(before: int, after: int) -> str:
    return f"d = {after}" if before == after else f"d = {before} before, {after} after"


# ------------------------------------------------------------------------------------------------------ words


def lead(start: Answer, answer: Answer, steps: tuple[Step, ...]) -> str:
    """The instant summary of a chain."""
    return f"**{words.isotropy(start, answer)}**" if steps else "No transform yet: add a step or change one."


def summary(view: View, start: Answer, answer: Answer, full: Full) -> None:
    """The effect of the chain in words, with intervals."""
    leading, steps = lead(start, answer, view.steps), view.steps
    if view.run is not None:
        sentences = [words.heads(answer.n, full)] if steps and not answer.only_rounding else []
        view.summary.markdown(" ".join((leading, *sentences)))
    else:
        sentences = _readout_sentences(view, full) if steps else []
        sentences[:1] = [" ".join(filter(None, (words.judged_by(view.engine.annotations), *sentences[:1])))]
        with view.summary.container():
            for sentence in (*map(wording.plain, sentences), leading):
                st.markdown(sentence)
    exported.note(PREFIX + "summary", ExportedSentences("What the chain changes", (leading.strip("*"), *sentences)))


def _readout_sentences(view: View, full: Full) -> list[str]:
    """The main read-out and the neighbours that stay."""
    main = main_readouts(view.engine.annotations)[0]
    if full.crossed and main.needs == "labels":  # for small sets, more precise than thirds
        sentences = [words.crossed(full.crossed[0])]
    else:
        sentences = [words.readout(result) for result in full.comparisons if result.readout.slug == main.slug]
    stay = full.overlap
    if stay is not None and stay.value is not None and stay.low is not None and stay.high is not None:
        ends = f"95 % interval {100 * stay.low:.0f} to {100 * stay.high:.0f} %"
        sentences.append(f"{100 * stay.value:.0f} % of the 10 nearest neighbours stay ({ends}).")
    elif stay is not None and stay.reason:
        sentences.append(f"Which nearest neighbours stay is undefined: {stay.reason}.")
    return sentences


# ------------------------------------------------------------------------------------------------------ read-outs


def table(view: View, start: Answer, answer: Answer, full: Full | None) -> None:
    """All read-outs with intervals and verdicts; the quick values until those are computed."""
    with view.table.container():
        with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
            st.markdown("**Read-outs, before and after**", width="content")
            explanations.show(READ_OUTS if view.run is None else HEADS)
        config: dict[str, Any] = {
            name: st.column_config.NumberColumn(format="%.3f", width=width) for name, width in _NUMBERS.items()
        }
        config |= {
            "Read-out": st.column_config.TextColumn(width=150),
            "Verdict": st.column_config.TextColumn(width=228),
        }
        frame = _shown(view.engine.annotations, start, answer, full)
        exported.note(PREFIX + "readouts", ExportedTable("Read-outs, before and after", frame))
        shown = frame.assign(Verdict=frame["Verdict"].str.replace(_UNITS, "", regex=True))
        height: int | Literal["content"] = "content" if len(frame) <= _MAIN + 1 else 38 + 35 * (_MAIN + 1)
        st.dataframe(shown, hide_index=True, column_config=config, placeholder="–", height=height)
        if full is not None:
            everything = functools.partial(numbers_table, view, start, answer, full)
            downloads.buttons(view.file("numbers"), everything, title="Numbers")


def _shown(annotations: Annotations, start: Answer, answer: Answer, full: Full | None) -> pd.DataFrame:
    compared = {result.readout.slug: result for result in full.comparisons} if full else {}
    before, after = _values(start, None), _values(answer, None)
    lines: list[tuple[Any, ...]] = [
        _line(annotations.title_of(one), compared[one.slug])
        if one.slug in compared
        else (annotations.title_of(one), before.get(one.slug), after.get(one.slug), None, None, None, PENDING)
        for one in applicable(annotations)
    ]
    for crossed in full.crossed if full else ():
        lines.append(_line(f"{crossed.readout.title}, cross-validated over all labelled rows", crossed))
    return pd.DataFrame(lines, columns=["Read-out", *_NUMBERS, "Verdict"])


def _line(title: str, comparison: Comparison) -> tuple[Any, ...]:
    change = comparison.difference
    return (title, comparison.before, comparison.after, change.value, change.low, change.high, comparison.verdict)


def numbers_table(view: View, start: Answer, answer: Answer, full: Full) -> pd.DataFrame:
    """All read-outs, measures and EV_k in full precision, for a file."""
    lines: list[Mapping[str, Any]] = [
        {
            "number": one.readout.slug,
            "measure": view.engine.annotations.title_of(one.readout),
            "before": one.before,
            "after": one.after,
            "difference": one.difference.value,
            "low": one.difference.low,
            "high": one.difference.high,
            "n": one.difference.n,
            "unit": one.readout.unit,
            "rows": rows,
        }
        for rows, comparisons in (("shown", full.comparisons), ("cross-validated", full.crossed))
        for one in comparisons
    ]
    first = view.engine.full(())
    titles = {metric.slug: metric.title for metric in (*instant_metrics(), *slow_metrics())}
    before, after = ({**quick.measures, **slow.measures} for quick, slow in ((start, first), (answer, full)))
    for number, pair in enumerate(
        itertools.zip_longest(*([] if ev is None else ev for ev in (start.ev, answer.ev))), 1
    ):
        name = f"EV_{number}"
        titles[name], (before[name], after[name]) = name, pair
    of_cloud = {"n": answer.n, "unit": "rows", "rows": "shown"}
    lines += [
        {"number": slug, "measure": titles[slug], "before": before[slug], "after": value, **of_cloud}
        for slug, value in after.items()
    ]
    return pd.DataFrame(lines).assign(d_before=start.d, d_after=answer.d, chain=write(view.steps), source=view.source)


# ------------------------------------------------------------------------------------------------------ figures


def spectrum(view: View, start: Answer, answer: Answer) -> None:
    """EV_k before and after."""
    if start.ev is None:
        return
    shape, length = _dimensions(start.d, answer.d), len(start.ev)
    with view.figures:
        draw(
            _spectrum(start.ev, answer.ev, answer.d),
            key=f"{PREFIX}spectrum",
            name=view.file("spectrum"),
            about=f"{view.source} · n = {answer.n:,}, {shape} · {' and '.join(dict.fromkeys([NO_STEPS, view.chain]))}",
            words=f"Explained variance of the first {length} of {answer.d} components without and with the transforms",
            title="Explained variance, before and after",
            caption=f"{view.cloud(answer.n)}, {shape}.",
            explanation=explanations.SPECTRUM,
        )


def correlations(view: View) -> None:
    """|ρ| before and after; both in the order of the dimensions before, if the chain keeps their number."""
    clouds = [view.engine.image(chain) for chain in ((), view.steps)]
    images = [cloud.image(cloud.validation) for cloud in clouds]
    if max(image.shape[1] for image in images) > _MOST_DIMENSIONS:
        view.slow.caption(f"Correlations are shown for up to {_MOST_DIMENSIONS:,} dimensions.")
        return
    order: NDArray[np.int64] | None = None
    with view.slow:
        with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
            st.markdown("**Correlation of dimensions, before and after**", width="content")
            explanations.show(explanations.MATRIX)
        for column, name, image, chain in zip(
            st.columns(2, gap="large"), ("before", "after"), images, (NO_STEPS, view.chain), strict=True
        ):
            with column:
                cells, own, mean = _correlation(f"{view.engine.key}|{view.source}|{chain}", image, order)
                order, d = own if order is None else order, image.shape[1]
                about = f"{view.source} · n = {len(image):,}, d = {d} · {chain}"
                sigma = image.std(axis=0).astype("<f4").tobytes()
                cloud_matrix(
                    {"matrix": cells, "order": own.astype("<i4").tobytes(), "sigma": sigma},
                    key=f"{PREFIX}correlation_{name}",
                    name=view.file(f"correlation_{name}"),
                    about=about,
                    words=f"Absolute correlation of {d} dimensions, {name}: {chain}; mean {mean} off the diagonal",
                    mean=mean,
                    compact=True,
                )
                st.caption(wording.plain(f"{name.capitalize()}: mean |ρ| off the diagonal {mean}."))


_MOST_DIMENSIONS: Final = 1_024
"""The order of more dimensions takes seconds."""


@st.cache_data(show_spinner=False, max_entries=32)
def _correlation(
    key: str, _image: NDArray[Any], _order: NDArray[np.int64] | None
) -> tuple[bytes, NDArray[np.int64], str]:
    """The cells, the order of their dimensions (the given one if it fits), and the mean off the diagonal; `key` names image and order."""
    cells = np.nan_to_num(np.asarray(metrics.abs_correlation(_image)))
    fits = _order is not None and len(_order) == len(cells)
    order = np.asarray(_order if fits else metrics.correlation_order(cells))
    mean = wording.number((cells.sum() - np.trace(cells)) / max(1, len(cells) * (len(cells) - 1)), 3)
    return arrays.in_order(cells, order), order, mean


def maps(view: View, start: Answer, answer: Answer, first: Full, full: Full) -> None:
    """Both maps. The map without transform never changes, so it is not redrawn."""
    embeddings = view.embeddings
    names = list(embeddings.facts["label_names"]) if embeddings.facts["kind"] == "classification" else []
    n = len(embeddings.labels)
    sample = f"{DRAWN:,} of them, drawn at random with seed 0" if n > DRAWN else "all of them"
    with view.slow:
        for column, name, title, shown, d, chain in zip(
            st.columns(2, gap="large"),
            ("map_before", "map_after"),
            ("Map, no transform", "Map, after"),
            (first, full),
            (start.d, answer.d),
            (NO_STEPS, view.chain),
            strict=True,
        ):
            with column:
                figure = _map(shown.map, shown.map_shares, embeddings.labels, names, embeddings.key, embeddings.texts)
                text = f"{title}: {n} validation rows along their two strongest components, by label"
                about = f"{view.source} · n = {n:,}, d = {d} · {chain}" + (f" · {sample}" if n > DRAWN else "")
                file = view.file(name)
                draw(figure, key=f"{PREFIX}{name}", name=file, about=about, words=text, title=title, of_rows=True)
        st.caption(
            wording.plain(f"{view.cloud(n)}, {_dimensions(start.d, answer.d)}; {sample}, coloured by label.")
            + " Signs follow the map without transform."
        )
        explanations.show(MAP)


@st.cache_data(show_spinner=False, max_entries=64)
def _map(
    places: NDArray[Any],
    shares: tuple[float, float],
    labels: NDArray[Any],
    names: list[str],
    content_key: str,
    _texts: list[str],
) -> Prepared:
    """Cached for a cloud under a chain; `content_key` is the embeddings' key, because the texts are not hashed."""
    del content_key
    rows = sampled(len(places), DRAWN)
    values = [names[int(code)] for code in labels[rows]] if names else labels[rows]
    axes = [f"component {number} ({100 * share:.0f} % of the variance)" for number, share in enumerate(shares, 1)]
    texts, colours = [_texts[row] for row in rows], pd.Series(values, name="label")
    figure = map_figure.cloud_map(places[rows], axes, colours, texts, compact=True, webgl=len(rows) > 1_000)
    return prepared(figure.update_layout(height=360, dragmode="zoom"))


@st.cache_data(show_spinner=False, max_entries=64)
def _spectrum(before: NDArray[np.float64], after: NDArray[np.float64] | None, d: int) -> Prepared:
    return prepared(spectrum_figure(before, after, d).update_layout(height=250))


def spectrum_figure(before: NDArray[np.float64], after: NDArray[np.float64] | None, d: int) -> go.Figure:
    """EV_k before and after, and of a perfectly isotropic cloud in the d dimensions of the image."""
    figure = go.Figure()
    longest = max(len(before), 0 if after is None else len(after))
    count = np.arange(1, longest + 1)
    hover = "EV_%{x} = %{y:.4f}"
    isotropic = np.minimum(count / d, 1)
    _add_line(figure, count, isotropic, "isotropic, k/d", colour=BEFORE, dash="dot", width=1.5, hoverinfo="skip")
    _add_line(figure, count[: len(before)], before, "no transform", colour=BEFORE, dash="dash", hovertemplate=hover)
    if after is not None:
        _add_line(figure, count[: len(after)], after, "after", colour=AFTER, hovertemplate=hover)
    return theme.titled(figure, "k", "EV_k", yaxis_range=[0, 1.02])


def _add_line(
    figure: go.Figure,
    x: NDArray[Any],
    y: NDArray[Any],
    name: str,
    *,
    colour: str,
    dash: str = "solid",
    width: float = 2.5,
    **hover: str,
) -> None:
    line = {"color": colour, "dash": dash, "width": width}
    figure.add_scatter(x=x.tolist(), y=y.tolist(), mode="lines", line=line, name=name, **hover)

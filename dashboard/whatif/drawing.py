"""Parts of the What-if panel: tiles with changes, a summary in words, figures, downloads."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from dashboard.components.figure import Prepared, draw, prepared
from dashboard.shared import downloads, explanations, wording
from dashboard.shared.explanations import Explanation
from dashboard.whatif import plots
from dashboard.whatif import sentences as words
from dashboard.whatif.form import PREFIX
from isoviz.metrics.protocol import Metric
from isoviz.metrics.scores import REPORTED_ZETA
from isoviz.runs.rows import RunRow
from isoviz.statistics.paired_bootstrap import Difference
from isoviz.whatif.chains import Step, write
from isoviz.whatif.embeddings import Embeddings
from isoviz.whatif.engine import Answer, Full, instant_metrics, slow_metrics
from isoviz.whatif.vectors import Answer as VectorsAnswer

T = TypeVar("T")

HEADS = Explanation(
    title="Two heads",
    reading=(
        "The frozen head is the run's own output layer, trained on the original vectors; the refitted head is a "
        "logistic regression (ridge regression for numbers) on the transformed training rows. If only the frozen "
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

PENDING = "pending"
NO_STEPS = "no transform"
LONGEST_TITLE = 20
"""Longest title of a tile in characters; longer titles are replaced by the metric's heading."""

Measured = Answer | Full | VectorsAnswer
"""Results that hold metrics by slug, with reasons for undefined ones."""

Shown = tuple[float | str | None, float | None]
"""A value or `PENDING`, and the value without transform."""

_INPUTS = f"Here ζ = {REPORTED_ZETA:g}, and Σ_S is the covariance of the training rows under the same transforms."
_FROZEN = "The run's own output layer, unchanged, reads the transformed vectors."
_REFITTED = (
    "A new linear head, fitted on the transformed training rows, reads the transformed validation rows; before: the same without "
    "transform."
)


@dataclass(frozen=True)
class View:
    """The run and the containers that one move of a slider redraws.

    Attributes:
        embeddings: the run's embeddings.
        run: the run.
        steps: the chain as text, or `NO_STEPS`.
        summary, numbers, detail: placeholders, updated as results arrive: the effect in a sentence, the tiles, and the intervals
            below them.
        figures, below: containers, filled once.
    """

    embeddings: Embeddings
    run: RunRow
    steps: str
    summary: DeltaGenerator
    numbers: DeltaGenerator
    detail: DeltaGenerator
    figures: DeltaGenerator
    below: DeltaGenerator


def numbers(view: View, start: Answer | None, answer: Answer | None, first: Full | None, full: Full | None) -> None:
    """The tiles: each value after the chain with its change, or `pending`."""
    embeddings = view.embeddings
    metric = str(embeddings.facts["primary"])
    with view.numbers.container():
        top = tiles()
        tile(
            top,
            f"{metric}, frozen head",
            *_pair(start, answer, lambda a: a.frozen),
            _undefined(answer, "frozen") or _FROZEN,
        )
        tile(top, f"{metric}, refitted head", *_pair(first, full, lambda f: f.refitted), _REFITTED)
        metric_tiles(instant_metrics(), start, answer)
        metric_tiles(slow_metrics(), first, full)
        if answer is not None:
            n = f"{words.cloud(embeddings.cloud)}, n = {wording.number(answer.n)} validation rows"
            shape_caption(n, answer.d if start is None else start.d, answer)


def shape_caption(cloud: str, before: int, answer: Answer | VectorsAnswer) -> None:
    """The cloud of the tiles and its dimensions, and a warning if the numbers are meaningless."""
    text = f"{cloud}, {_dimensions(before, answer.d)} · below each value: its change, and the value without transform"
    st.caption(wording.plain(text) + " · more isotropic is not better by itself")
    if answer.only_rounding:
        st.caption(
            ":material/warning: The rows that the transforms are fitted on no longer vary in any direction. What remains is "
            "rounding error, so these numbers are meaningless."
        )


def _about(view: View, n: int, d: str, chain: str) -> str:
    """Description of the cloud in a saved picture."""
    config = view.run.config
    parts = [config.model, config.task, "validation", f"run {view.run.name}", f"{view.embeddings.cloud} cloud"]
    return " · ".join([*parts, f"n = {wording.number(n)}, {d}", chain])


def _dimensions(before: int, after: int) -> str:
    return f"d = {after}" if before == after else f"d = {before} before, {after} after"


def tiles() -> DeltaGenerator:
    """A row of tiles. Unlike columns, they wrap into pairs on a narrow screen instead of stacking."""
    return st.container(horizontal=True, gap="small")


def _cloud(embeddings: Embeddings, n: int, before: int, after: int) -> str:
    """Description of a number's or figure's cloud."""
    d = _dimensions(before, after)
    return f"{words.cloud(embeddings.cloud)}, n = {wording.number(n)} validation rows, {d}"


def metric_tiles(metrics_shown: list[Metric], before: Measured | None, after: Measured | None) -> None:
    """Metrics in rows of tiles."""
    for row in in_rows(metrics_shown):
        row_tiles = tiles()
        for metric in row:
            value, start = _pair(before, after, _value_of(metric.slug))
            title = metric.title if len(metric.title) <= LONGEST_TITLE else metric.heading
            tile(row_tiles, title, value, start, _tooltip(metric, after))


def _value_of(slug: str) -> Callable[[Measured], float | None]:
    return lambda measured: measured.measures[slug]


def in_rows(items: list[T]) -> list[list[T]]:
    """Rows of at most three items, of about equal length."""
    rows = -(-len(items) // 3)
    return [items[len(items) * row // rows : len(items) * (row + 1) // rows] for row in range(rows)]


def _pair(before: Any, after: Any, get: Callable[[Any], float | None]) -> Shown:
    """A tile's values from two results, of which the second may be pending."""
    first = None if before is None else get(before)
    return (PENDING, first) if after is None else (get(after), first)


def tile(container: Any, title: str, value: float | str | None, before: float | None, help_text: str) -> None:
    """A value with its change."""
    comparable = isinstance(value, float) and before is not None
    change = value - before if comparable else None  # type: ignore[operator]
    unchanged = change is not None and abs(change) < 5e-7
    container.metric(
        title,
        value if isinstance(value, str) else wording.number(value, 3),
        None if change is None else "±0" if unchanged else words.change(float(value), float(before)),  # type: ignore[arg-type]
        delta_color="off",
        delta_arrow="off" if change is None or unchanged else "up" if change > 0 else "down",
        delta_description=None if before is None else f"from {wording.number(before, 3)}",
        help=wording.plain(help_text) if help_text else None,
        border=True,
    )


def _undefined(measured: Measured | None, slug: str) -> str:
    return f"Undefined: {measured.reasons[slug]}" if measured is not None and slug in measured.reasons else ""


def _tooltip(metric: Metric, measured: Measured | None) -> str:
    return _undefined(measured, metric.slug) or f"{metric.tooltip} {_INPUTS if metric.inputs else ''}".strip()


def lead(start: Answer, answer: Answer, steps: tuple[Step, ...]) -> str:
    """The instant summary of a chain."""
    if answer.only_rounding:
        return "The training rows no longer vary in any direction, so these numbers are meaningless."
    return f"**{words.isotropy(start, answer)}**" if steps else "No transform yet: add a step or change one."


def reading(view: View, start: Answer, answer: Answer, full: Full, steps: tuple[Step, ...]) -> None:
    """The effect of the chain in words, with intervals."""
    heads = words.heads(answer, full) if steps and not answer.only_rounding else ""
    view.summary.markdown(f"{lead(start, answer, steps)} {heads}")
    with view.detail.container():
        _heads_caption(view.embeddings, full)


def _heads_caption(embeddings: Embeddings, full: Full) -> None:
    metric = embeddings.facts["primary"]
    text = [
        f"Change in {metric}: frozen head {words.difference(full.frozen_difference)}",
        f"refitted head, against one refitted without transform: {words.difference(full.refitted_difference)}",
    ]
    st.caption(wording.plain("; ".join(text) + "."))
    explanations.show(HEADS)


def spectrum(view: View, start: Answer, answer: Answer) -> None:
    """EV_k before and after."""
    if start.ev is None:
        return
    with view.figures:
        st.markdown("**Explained variance, before and after**")
        figure = plots.spectrum(start.ev, answer.ev, answer.d)
        text = (
            f"Explained variance of the first {len(start.ev)} of {answer.d} components without and with the transforms"
        )
        about = _about(
            view, answer.n, _dimensions(start.d, answer.d), " and ".join(dict.fromkeys([NO_STEPS, view.steps]))
        )
        draw(figure, key=PREFIX + "spectrum", words=text, name=_file(view, "spectrum"), about=about)
        st.caption(
            wording.plain(
                f"{_cloud(view.embeddings, answer.n, start.d, answer.d)}; the first {len(start.ev)} components."
            )
        )
        explanations.show(explanations.SPECTRUM)


def maps(view: View, start: Answer, answer: Answer, first: Full, full: Full) -> None:
    """Both maps. The map without transform never changes, so it is not redrawn."""
    embeddings = view.embeddings
    names = list(embeddings.facts["label_names"]) if embeddings.facts["kind"] == "classification" else []
    n = len(embeddings.labels)
    most = plots.DRAWN
    sample = f"{most:,} of them, drawn at random with seed 0" if n > most else "all of them"
    with view.figures:
        columns = st.columns(2, gap="large")
        for column, name, title, shown, d, chain in (
            (columns[0], "map_before", "Map, no transform", first, start.d, NO_STEPS),
            (columns[1], "map_after", "Map, after", full, answer.d, view.steps),
        ):
            with column:
                st.markdown(f"**{title}**")
                figure = _map(shown.map, shown.map_shares, embeddings.labels, names, embeddings.key, embeddings.texts)
                text = (
                    f"{title}: {len(embeddings.labels)} validation rows along their two strongest components, by label"
                )
                about = _about(view, n, f"d = {d}", chain) + (f" · {sample}" if n > plots.DRAWN else "")
                draw(figure, key=PREFIX + name, words=text, name=_file(view, name.replace("_", "-")), about=about)
        st.caption(
            wording.plain(f"{_cloud(embeddings, n, start.d, answer.d)}; {sample}, coloured by label.")
            + " Signs follow the map without transform."
        )
        explanations.show(MAP)


@st.cache_data(show_spinner=False, max_entries=64)
def _map(
    places: NDArray[np.float32],
    shares: tuple[float, float],
    labels: NDArray[Any],
    names: list[str],
    content_key: str,
    _texts: list[str],
) -> Prepared:
    """Cached for a cloud under a chain; `content_key` is the embeddings' key, because the texts are not hashed."""
    del content_key
    return prepared(plots.cloud_map(places, shares, labels, names, _texts))


def downloads_of(view: View, start: Answer, answer: Answer, first: Full, full: Full, steps: tuple[Step, ...]) -> None:
    """Downloads of all numbers and both maps."""
    files = (
        ("Numbers", "numbers", functools.partial(_numbers, view.embeddings, start, answer, first, full, steps)),
        ("Both maps", "map", functools.partial(_points, view.embeddings, start, answer, first, full)),
    )
    with view.below, st.container(horizontal=True, vertical_alignment="center"):
        for title, name, table in files:
            downloads.table_files(_file(view, name), table, title=title)
        st.caption("Each figure's toolbar saves it as PNG or SVG.", width="content")


def _file(view: View, what: str) -> str:
    """File name of a download, without extension."""
    return f"what-if-{view.run.id}-{what}"


def _numbers(
    embeddings: Embeddings, start: Answer, answer: Answer, first: Full, full: Full, steps: tuple[Step, ...]
) -> pd.DataFrame:
    metric = str(embeddings.facts["primary"])
    lines: list[tuple[Any, ...]] = [
        (f"{metric}, frozen head", start.frozen, answer.frozen, *_ends(full.frozen_difference)),
        (f"{metric}, refitted head", first.refitted, full.refitted, *_ends(full.refitted_difference)),
        *(
            (metric.title, start.measures[metric.slug], answer.measures[metric.slug], None, None)
            for metric in instant_metrics()
        ),
        *(
            (metric.title, first.measures[metric.slug], full.measures[metric.slug], None, None)
            for metric in slow_metrics()
        ),
    ]
    curves = [[] if ev is None else ev.tolist() for ev in (start.ev, answer.ev)]
    for number, (before, after) in enumerate(itertools.zip_longest(*curves), start=1):
        lines.append((f"EV_{number}", before, after, None, None))
    table = pd.DataFrame(lines, columns=["measure", "before", "after", "difference_low", "difference_high"])
    table["cloud"], table["split"], table["n"] = embeddings.cloud, "validation", answer.n
    table["d_before"], table["d_after"], table["chain"] = start.d, answer.d, write(steps)
    return table


def _points(embeddings: Embeddings, start: Answer, answer: Answer, first: Full, full: Full) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "row": embeddings.rows,
            "text": embeddings.texts,
            "label": embeddings.labels,
            "predicted_before": start.predicted,
            "predicted_after": answer.predicted,
            "predicted_before_refitted": first.refitted_predicted,
            "predicted_after_refitted": full.refitted_predicted,
            "before_1": first.map[:, 0],
            "before_2": first.map[:, 1],
            "after_1": full.map[:, 0],
            "after_2": full.map[:, 1],
        }
    )


def _ends(interval: Difference | None) -> tuple[float | None, float | None]:
    return (None, None) if interval is None else (interval.low, interval.high)

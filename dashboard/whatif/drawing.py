"""Parts of the What-if panel: tiles with changes, a summary in words, figures, downloads."""

from __future__ import annotations

import functools
import itertools
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
from isoviz.readouts.division import Division
from isoviz.readouts.reading import Annotations, Comparison, ReadOut, applicable
from isoviz.runs.rows import RunRow
from isoviz.vectors import VectorSet
from isoviz.whatif.chains import Step, write
from isoviz.whatif.embeddings import Embeddings
from isoviz.whatif.engine import Answer, Full, WhatIf, instant_metrics, slow_metrics

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
COSINES = Explanation(
    title="Cosines",
    reading=(
        "Solid: cosines of 5,000 random pairs. Dotted: cosines of each row and its nearest neighbour. "
        "Where the curves overlap, neighbours look like random rows. A mean far from 0 does not by itself harm a ranking."
    ),
    formula=r"\cos(x, y) = \frac{x \cdot y}{\|x\| \|y\|}",
    paper="Ethayarajh 2019, arXiv:1909.00512.",
)
_TILES = 4
_NUMBERS = ("Before", "After", "Change", "95 % from", "to")
"""Columns of the table of read-outs."""
PENDING = "pending"
NO_STEPS = "no transform"
LONGEST_TITLE = 20
"""Longest title of a tile in characters; longer titles are replaced by the metric's heading."""

_INPUTS = f"Here ζ = {REPORTED_ZETA:g}, and Σ_S is the covariance of the training rows under the same transforms."


@dataclass(frozen=True)
class View:
    """The cloud under a chain, and the containers that one move of a slider redraws.

    Attributes:
        engine: of the cloud.
        run: its run; None for a set of vectors.
        steps: the chain.
        summary, numbers, detail, table: placeholders, updated as results arrive: the effect in sentences, the tiles, the intervals
            below them, and the table of read-outs.
        figures, below: containers, filled once.
    """

    engine: WhatIf
    run: RunRow | None
    steps: tuple[Step, ...]
    summary: DeltaGenerator
    numbers: DeltaGenerator
    detail: DeltaGenerator
    table: DeltaGenerator
    figures: DeltaGenerator
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


def main_readouts(annotations: Annotations) -> list[ReadOut]:
    """The read-outs with a tile: by cosine, for the most informative annotations of these rows."""
    need = annotations.needs[0]
    readouts = [one for one in applicable(annotations) if one.needs == need and not one.slug.endswith("_dot")]
    return readouts[:_TILES]


def numbers(view: View, start: Answer | None, answer: Answer | None, first: Full | None, full: Full | None) -> None:
    """The tiles: each value after the chain with its change, or `pending`."""
    annotations = view.engine.annotations
    with view.numbers.container():
        for row in in_rows(main_readouts(annotations)):
            place = tiles()
            for readout in row:
                before, after = (_value(readout.slug, *results) for results in ((start, first), (answer, full)))
                help_text = _undefined(answer, readout.slug) or readout.help
                tile(
                    place,
                    annotations.title_of(readout),
                    after,
                    before if isinstance(before, float) else None,
                    help_text,
                )
        metric_tiles(instant_metrics(), start, answer)
        if view.run is not None:
            metric_tiles(slow_metrics(), first, full)
        if answer is not None:
            shape_caption(_cloud(view, answer.n), answer.d if start is None else start.d, answer)


def _value(slug: str, answer: Answer | None, full: Full | None) -> float | str | None:
    """A read-out's value, or `PENDING`."""
    for result in (answer, full):
        if result is not None and slug in result.readouts:
            return result.readouts[slug].value
    return PENDING


def shape_caption(cloud: str, before: int, answer: Answer) -> None:
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
    assert view.run is not None
    config = view.run.config
    parts = [config.model, config.task, "validation", f"run {view.run.name}", f"{view.embeddings.cloud} cloud"]
    return " · ".join([*parts, f"n = {wording.number(n)}, {d}", chain])


def _dimensions(before: int, after: int) -> str:
    return f"d = {after}" if before == after else f"d = {before} before, {after} after"


def tiles() -> DeltaGenerator:
    """A row of tiles. Unlike columns, they wrap into pairs on a narrow screen instead of stacking."""
    return st.container(horizontal=True, gap="small")


def _cloud(view: View, n: int) -> str:
    """Description of the cloud of a number or figure."""
    if view.run is None:
        return f"n = {n:,}"
    return f"{words.cloud(view.embeddings.cloud)}, n = {wording.number(n)} validation rows"


def metric_tiles(metrics_shown: list[Metric], before: Answer | Full | None, after: Answer | Full | None) -> None:
    """Metrics in rows of tiles."""
    for row in in_rows(metrics_shown):
        row_tiles = tiles()
        for metric in row:
            value = PENDING if after is None else after.measures[metric.slug]
            start = None if before is None else before.measures[metric.slug]
            title = metric.title if len(metric.title) <= LONGEST_TITLE else metric.heading
            tile(row_tiles, title, value, start, _tooltip(metric, after))


def in_rows(items: list[T]) -> list[list[T]]:
    """Rows of at most three items, of about equal length."""
    rows = -(-len(items) // 3)
    return [items[len(items) * row // rows : len(items) * (row + 1) // rows] for row in range(rows)]


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


def _undefined(measured: Answer | Full | None, slug: str) -> str:
    return f"Undefined: {measured.reasons[slug]}" if measured is not None and slug in measured.reasons else ""


def _tooltip(metric: Metric, measured: Answer | Full | None) -> str:
    return _undefined(measured, metric.slug) or f"{metric.tooltip} {_INPUTS if metric.inputs else ''}".strip()


def lead(start: Answer, answer: Answer, steps: tuple[Step, ...]) -> str:
    """The instant summary of a chain."""
    if answer.only_rounding:
        return "The training rows no longer vary in any direction, so these numbers are meaningless."
    return f"**{words.isotropy(start, answer)}**" if steps else "No transform yet: add a step or change one."


def summary(view: View, start: Answer, answer: Answer, full: Full) -> None:
    """The effect of the chain in words, with intervals."""
    leading, steps = lead(start, answer, view.steps), view.steps
    if view.run is None:
        sentences = [wording.plain(sentence) for sentence in _readout_sentences(view, full)] if steps else []
        with view.summary.container():
            for sentence in (*sentences, leading):
                st.markdown(sentence)
        return
    view.summary.markdown(f"{leading} {words.heads(answer.n, full) if steps and not answer.only_rounding else ''}")
    with view.detail.container():
        frozen, refitted = (words.difference(full.difference(slug)) for slug in ("frozen", "refitted"))
        text = f"Change in {view.embeddings.facts['primary']}: frozen head {frozen}; refitted head, against one refitted without "
        st.caption(wording.plain(f"{text}transform: {refitted}."))
        explanations.show(HEADS)


def _readout_sentences(view: View, full: Full) -> list[str]:
    """The main read-out and the neighbours that stay."""
    main = main_readouts(view.engine.annotations)[0].slug
    if full.crossed:  # for small sets, more precise than thirds
        sentences = [words.crossed(full.crossed[0])]
    else:
        sentences = [words.readout(result) for result in full.comparisons if result.readout.slug == main]
    stay = full.overlap
    if stay is not None and stay.value is not None and stay.low is not None and stay.high is not None:
        ends = f"95 % interval {100 * stay.low:.0f} to {100 * stay.high:.0f} %"
        sentences.append(f"{100 * stay.value:.0f} % of the 10 nearest neighbours stay ({ends}).")
    return sentences


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
            view, answer.n, _dimensions(start.d, answer.d), " and ".join(dict.fromkeys([NO_STEPS, view.chain]))
        )
        draw(figure, key=PREFIX + "spectrum", words=text, name=_file(view, "spectrum"), about=about)
        st.caption(
            wording.plain(
                f"{_cloud(view, answer.n)}, {_dimensions(start.d, answer.d)}; the first {len(start.ev)} components."
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
            (columns[1], "map_after", "Map, after", full, answer.d, view.chain),
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
            wording.plain(f"{_cloud(view, n)}, {_dimensions(start.d, answer.d)}; {sample}, coloured by label.")
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


def downloads_of(view: View, start: Answer, answer: Answer, first: Full, full: Full) -> None:
    """Downloads of all numbers and both maps of a run."""
    files = (
        ("Numbers", "numbers", functools.partial(_numbers, view, start, answer, first, full)),
        ("Both maps", "map", functools.partial(_points, view.embeddings, start, answer, first, full)),
    )
    with view.below, st.container(horizontal=True, vertical_alignment="center"):
        for title, name, table in files:
            downloads.table_files(_file(view, name), table, title=title)
        st.caption("Each figure's toolbar saves it as PNG or SVG.", width="content")


def _file(view: View, what: str) -> str:
    """File name of a download, without extension."""
    return f"what-if-{view.run.id if view.run else view.vectors.name}-{what}"


def _numbers(view: View, start: Answer, answer: Answer, first: Full, full: Full) -> pd.DataFrame:
    annotations = view.engine.annotations
    lines: list[tuple[Any, ...]] = [
        (annotations.title_of(one.readout), one.before, one.after, one.difference.low, one.difference.high)
        for one in full.comparisons
    ]
    for metrics_shown, before_all, after_all in ((instant_metrics(), start, answer), (slow_metrics(), first, full)):
        lines += [
            (one.title, before_all.measures[one.slug], after_all.measures[one.slug], None, None)
            for one in metrics_shown
        ]
    curves = [[] if ev is None else ev.tolist() for ev in (start.ev, answer.ev)]
    for number, (before, after) in enumerate(itertools.zip_longest(*curves), start=1):
        lines.append((f"EV_{number}", before, after, None, None))
    table = pd.DataFrame(lines, columns=["measure", "before", "after", "difference_low", "difference_high"])
    table["cloud"], table["split"], table["n"] = view.embeddings.cloud, "validation", answer.n
    table["d_before"], table["d_after"], table["chain"] = start.d, answer.d, write(view.steps)
    return table


def _points(embeddings: Embeddings, start: Answer, answer: Answer, first: Full, full: Full) -> pd.DataFrame:
    predicted = {
        f"predicted_{name}": getattr(readouts[slug], "predicted", None)
        for name, readouts, slug in (
            ("before", start.readouts, "frozen"),
            ("after", answer.readouts, "frozen"),
            ("before_refitted", first.readouts, "refitted"),
            ("after_refitted", full.readouts, "refitted"),
        )
    }
    return pd.DataFrame(
        {
            "row": embeddings.rows,
            "text": embeddings.texts,
            "label": embeddings.labels,
            **predicted,
            "before_1": first.map[:, 0],
            "before_2": first.map[:, 1],
            "after_1": full.map[:, 0],
            "after_2": full.map[:, 1],
        }
    )


def table(view: View, start: Answer, answer: Answer, full: Full | None) -> None:
    """All read-outs with intervals and verdicts; the quick values until those are computed."""
    with view.table.container():
        st.markdown("**Read-outs, before and after**")
        config: dict[str, Any] = {name: st.column_config.NumberColumn(format="%.3f", width=70) for name in _NUMBERS}
        config |= {
            "Read-out": st.column_config.TextColumn(width=190),
            "Verdict": st.column_config.TextColumn(width=340),
        }
        st.dataframe(
            _shown(view.engine.annotations, start, answer, full), hide_index=True, width="stretch", column_config=config
        )
        if full is not None:
            name = downloads.file_name("what-if", view.vectors.name, "read-outs")
            downloads.buttons(name, lambda: numbers_table(view, full))
        explanations.show(READ_OUTS)


def _shown(annotations: Annotations, start: Answer, answer: Answer, full: Full | None) -> pd.DataFrame:
    compared = {result.readout.slug: result for result in full.comparisons} if full else {}
    lines: list[tuple[Any, ...]] = []
    for one in applicable(annotations):
        if one.slug in compared:
            lines.append(_line(one.title, compared[one.slug]))
        else:
            values = [of.readouts[one.slug].value if one.slug in of.readouts else None for of in (start, answer)]
            lines.append((one.title, *values, None, None, None, PENDING))
    for crossed in full.crossed if full else ():
        lines.append(_line(f"{crossed.readout.title}, cross-validated over all labelled rows", crossed))
    return pd.DataFrame(lines, columns=["Read-out", *_NUMBERS, "Verdict"])


def _line(title: str, comparison: Comparison) -> tuple[Any, ...]:
    change = comparison.difference
    return (title, comparison.before, comparison.after, change.value, change.low, change.high, comparison.verdict)


def numbers_table(view: View, full: Full) -> pd.DataFrame:
    """All read-outs in full precision, for a file."""
    lines = [
        (
            one.readout.slug,
            one.before,
            one.after,
            one.difference.value,
            one.difference.low,
            one.difference.high,
            one.difference.n,
            one.readout.unit,
            rows,
        )
        for rows, comparisons in (("shown", full.comparisons), ("cross-validated", full.crossed))
        for one in comparisons
    ]
    columns = ["readout", "before", "after", "difference", "low", "high", "n", "unit", "rows"]
    return pd.DataFrame(lines, columns=columns).assign(chain=write(view.steps), vectors=view.vectors.name)


def cosines(view: View, first: Full, full: Full) -> None:
    """Cosines of random pairs and of nearest rows."""
    if first.cosines is None or full.cosines is None:
        return
    with view.figures:
        st.markdown("**Cosines, before and after**")
        draw(
            plots.cosines(first.cosines, full.cosines if view.steps else None),
            key=PREFIX + "cosines",
            words="Cosines of random pairs and of nearest rows, before and after",
            name="what-if-cosines",
            about=f"{view.vectors.name} · {len(full.cosines.nearest):,} rows · {write(view.steps)}",
        )
        explanations.show(COSINES)

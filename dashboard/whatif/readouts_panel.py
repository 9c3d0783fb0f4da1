"""The panel of What-if for vectors: the chain, its effect on isotropy and read-outs, and curves.

As for runs, it is one fragment: a move of a slider redraws only the panel, and slow results are awaited in short steps.
"""

from __future__ import annotations

import functools
import time
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.components.copy_link import copy_link
from dashboard.components.figure import draw as draw_figure
from dashboard.inputs import vectors_form
from dashboard.shared import downloads, explanations, wording
from dashboard.shared.explanations import Explanation
from dashboard.whatif import curves, drawing, export_panel, form, plots
from dashboard.whatif import sentences as words
from dashboard.whatif.drawing import PENDING
from dashboard.whatif.form import PREFIX
from dashboard.whatif.verdict_card import Card
from dashboard.whatif.waiting import PATIENCE, answers, refused_steps, wait_for
from isoviz.readouts.reading import Comparison, ReadOut, applicable
from isoviz.whatif import chains, export, notebook
from isoviz.whatif.chains import Step
from isoviz.whatif.engine import instant_metrics
from isoviz.whatif.scheduler import Rank
from isoviz.whatif.vectors import Answer, Full, VectorsWhatIf, engine_of

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


def draw(key: str) -> None:
    """The fragment."""
    if st.session_state.pop(vectors_form.ANNOTATED, False):
        st.rerun()
    try:
        engine = engine_of(key)
    except KeyError:  # evicted from the cache since the page was drawn
        st.rerun()
    top = st.container()
    left, right = st.columns([2, 3], gap="large")
    with left:
        st.header("Transforms, in this order", anchor=False)
        steps = form.editor(engine.vector_set.d)
    if steps is None:
        right.caption("Fix the step on the left to see its numbers.")
        return
    with top:
        st.header("Does the transform help?", anchor=False)
        card = Card(engine, key, steps)
    with right:
        st.header("Effect of the transforms", anchor=False)
        summary, numbers = st.empty(), st.empty()
    with left:
        copy_link(key=PREFIX + "link")
        with st.popover("As Python", icon=":material/code:"):
            st.caption("The same numbers in a notebook on this machine.")
            st.code(notebook.of_vectors(key, steps), language="python", wrap_lines=True)
    table, below = st.empty(), st.container()
    with refused_steps(left, numbers, summary):
        _follow(engine, key, steps, card, summary, numbers, table, below)


def _follow(
    engine: VectorsWhatIf,
    key: str,
    steps: tuple[Step, ...],
    card: Card,
    summary: DeltaGenerator,
    numbers: DeltaGenerator,
    table: DeltaGenerator,
    below: DeltaGenerator,
) -> None:
    until = time.monotonic() + PATIENCE
    both = answers(engine, steps, key, summary, until)
    if both is None:
        return
    start, answer = both
    first, full = engine.cached_full(()), engine.cached_full(steps)
    card.fill(full)
    _numbers(engine, numbers, start, answer, first, full)
    lead = words.isotropy(start, answer) if steps else "No transform yet: add a step or change one."
    with below:
        curve = curves.controls(engine, steps)
    if full is None:
        _table(table, engine, start, answer, None, steps)
        question = f"{key}|{Rank.FOLLOW.name}|{chains.write(steps)}"
        full_answer = wait_for(
            lambda: engine.stages(steps),
            Rank.FOLLOW,
            question,
            summary,
            until,
            what="intervals and slow read-outs",
            lead=lead,
        )
        if full_answer is None:
            return
        first, full = engine.cached_full(()), full_answer
        card.fill(full)
        _numbers(engine, numbers, start, answer, first, full)
    _table(table, engine, start, answer, full, steps)
    _summary(summary, engine, lead, full, steps)
    if first is not None:
        with below:
            _cosines(engine, first, full, steps)
    if curve is not None:
        curves.draw(engine, key, steps, curve, until)
    with below:
        matrix = functools.partial(export.of_set, engine, steps, full.comparisons)
        export_panel.draw(
            engine.vector_set.name,
            key,
            steps,
            matrix,
            lambda: export.spec_of_model(export_panel.model_fields(engine.vector_set.facts)),
            None if "model" in engine.vector_set.facts else engine.train,
        )


def main_readouts(engine: VectorsWhatIf) -> list[ReadOut]:
    """The read-outs with a tile: by cosine, for the most informative annotations of these rows."""
    need = engine.annotations.needs[0]
    slugs = [
        readout
        for readout in applicable(engine.annotations)
        if readout.needs == need and not readout.slug.endswith("_dot")
    ]
    return slugs[:_TILES]


def _numbers(
    engine: VectorsWhatIf,
    place: DeltaGenerator,
    start: Answer,
    answer: Answer,
    first: Full | None,
    full: Full | None,
) -> None:
    with place.container():
        for row in drawing.in_rows(main_readouts(engine)):
            place = drawing.tiles()
            for readout in row:
                before, after = (
                    _value(readout.slug, instant, slow) for instant, slow in ((start, first), (answer, full))
                )
                drawing.tile(place, readout.title, after, before if isinstance(before, float) else None, readout.help)
        drawing.metric_tiles(instant_metrics(), start, answer)
        drawing.shape_caption(f"n = {answer.n:,}", start.d, answer)


def _value(slug: str, answer: Answer, full: Full | None) -> float | str | None:
    if slug in answer.readouts:
        return answer.readouts[slug].value
    return PENDING if full is None else full.readouts[slug].value


def _summary(place: DeltaGenerator, engine: VectorsWhatIf, lead: str, full: Full, steps: tuple[Step, ...]) -> None:
    with place.container():
        if not steps:
            st.markdown(wording.plain(lead))
            return
        main = {readout.slug for readout in main_readouts(engine)[:1]}
        crossed = full.crossed[:1]  # for small sets, more precise than thirds
        sentences = [words.crossed(result) for result in crossed]
        sentences += [
            words.readout(result) for result in full.comparisons if result.readout.slug in main and not crossed
        ]
        stay = full.overlap
        if stay.value is not None and stay.low is not None and stay.high is not None:
            ends = f"95 % interval {100 * stay.low:.0f} to {100 * stay.high:.0f} %"
            sentences.append(f"{100 * stay.value:.0f} % of the 10 nearest neighbours stay ({ends}).")
        for sentence in (*sentences, lead):
            st.markdown(wording.plain(sentence))


def _table(
    place: DeltaGenerator,
    engine: VectorsWhatIf,
    start: Answer,
    answer: Answer,
    full: Full | None,
    steps: tuple[Step, ...],
) -> None:
    """All read-outs with intervals and verdicts; the quick values until those are computed."""
    with place.container():
        st.markdown("**Read-outs, before and after**")
        config: dict[str, Any] = {name: st.column_config.NumberColumn(format="%.3f", width=70) for name in _NUMBERS}
        config |= {
            "Read-out": st.column_config.TextColumn(width=190),
            "Verdict": st.column_config.TextColumn(width=340),
        }
        st.dataframe(_shown(engine, start, answer, full), hide_index=True, width="stretch", column_config=config)
        if full is not None:
            name = downloads.file_name("what-if", engine.vector_set.name, "read-outs")
            downloads.buttons(name, lambda: numbers_table(engine, full, steps))
        explanations.show(READ_OUTS)


def _shown(engine: VectorsWhatIf, start: Answer, answer: Answer, full: Full | None) -> pd.DataFrame:
    compared = {result.readout.slug: result for result in full.comparisons} if full else {}
    lines: list[tuple[Any, ...]] = []
    for one in applicable(engine.annotations):
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


def numbers_table(engine: VectorsWhatIf, full: Full, steps: tuple[Step, ...]) -> pd.DataFrame:
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
    return pd.DataFrame(lines, columns=columns).assign(chain=chains.write(steps), vectors=engine.vector_set.name)


def _cosines(engine: VectorsWhatIf, first: Full, full: Full, steps: tuple[Step, ...]) -> None:
    st.markdown("**Cosines, before and after**")
    figure = plots.cosines(first.cosines, full.cosines if steps else None)
    about = f"{engine.vector_set.name} · {len(full.cosines.nearest):,} rows · {chains.write(steps)}"
    draw_figure(
        figure,
        key=PREFIX + "cosines",
        words="Cosines of random pairs and of nearest rows, before and after",
        name="what-if-cosines",
        about=about,
    )
    explanations.show(COSINES)

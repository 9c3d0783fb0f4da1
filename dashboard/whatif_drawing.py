"""What the What-if panel draws: tiles with the change, the reading in words, figures, downloads."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import downloads, explanations, whatif_figures, wording
from dashboard import whatif_words as words
from dashboard.components.figure import draw
from dashboard.whatif_form import PREFIX
from isoviz.metrics.catalogue import METRICS
from isoviz.whatif.chains import Step
from isoviz.whatif.embeddings import Embeddings
from isoviz.whatif.engine import MEASURES, Answer, Full
from isoviz.whatif.heads import Difference
from isoviz.whatif.slower import SLOWER

PENDING = "pending"

Shown = tuple[float | str | None, float | None]
"""A value, or that it is pending; and the value without transform."""

_TITLES = {name: METRICS[name].title for name in (*MEASURES, *SLOWER)} | {
    "twonn": "Intrinsic dimension",
    "rogue_share": "Widest dimension's share",
    "abs_correlation": "Mean |ρ|",
}


@dataclass(frozen=True)
class View:
    """Where what is drawn of one move of a slider goes.

    Attributes:
        found: the run's embeddings.
        numbers, said: placeholders that are written over, first with what is known at once.
        figures, below: containers that are filled once.
    """

    found: Embeddings
    numbers: DeltaGenerator
    said: DeltaGenerator
    figures: DeltaGenerator
    below: DeltaGenerator


def numbers(view: View, start: Answer | None, answer: Answer | None, first: Full | None, full: Full | None) -> None:
    """The tiles: each value after the chain with its change, or that it is pending."""
    found = view.found
    metric = str(found.facts["primary"])
    with view.numbers.container():
        st.subheader("After, against no transform", anchor=False)
        top = st.columns(2)
        _tile(top[0], f"{metric}, frozen head", *_pair(start, answer, lambda a: a.frozen), _why(answer, "frozen"))
        _tile(top[1], f"{metric}, refitted head", *_pair(first, full, lambda f: f.refitted), "")
        rest = [*MEASURES, *SLOWER]
        for row in (rest[:3], rest[3:6], rest[6:]):
            for column, name in zip(st.columns(3), row, strict=True):
                told = full if name in SLOWER else answer
                _tile(column, _TITLES[name], *_values(name, start, answer, first, full), _why(told, name))
        if answer is not None:
            st.caption(
                f"Of the validation rows' {found.cloud} vectors: n = {wording.number(answer.n)}, d = {answer.d}"
                " · small: the change, and the value without transform · more isotropic is not better by itself"
            )


def _values(name: str, start: Answer | None, answer: Answer | None, first: Full | None, full: Full | None) -> Shown:
    if name in SLOWER:
        return _pair(first, full, lambda f: f.measures[name])
    return _pair(start, answer, lambda a: a.measures[name])


def _pair(before: Any, after: Any, get: Callable[[Any], float | None]) -> Shown:
    """What a tile shows of two answers, the second perhaps still to come."""
    first = None if before is None else get(before)
    return (PENDING, first) if after is None else (get(after), first)


def _tile(place: Any, title: str, value: float | str | None, before: float | None, why: str) -> None:
    known = isinstance(value, float) and before is not None
    change = value - before if known else None  # type: ignore[operator]
    still = change is not None and abs(change) < 5e-7
    place.metric(
        title,
        value if isinstance(value, str) else wording.number(value, 3),
        None if change is None else "±0" if still else f"{change:+.3g}",
        delta_color="off",
        delta_arrow="off" if change is None or still else "auto",
        delta_description=None if before is None else f"from {wording.number(before, 3)}",
        help=wording.plain(why) if why else None,
        border=True,
    )


def _why(answer: Answer | Full | None, name: str) -> str:
    if answer is not None and name in answer.reasons:
        return f"Undefined: {answer.reasons[name]}"
    if name not in METRICS:
        return ""
    more = (
        " Here of these vectors, ζ = 0.2, Σ_S from the training rows' under the same transforms."
        if name == "isoscore_star"
        else ""
    )
    return METRICS[name].sees + more


def reading(view: View, start: Answer, answer: Answer, full: Full, steps: tuple[Step, ...]) -> None:
    """What the chain did, in words and with intervals."""
    with view.said.container():
        told = words.heads(answer, full) if steps else "No transform: move something on the left."
        st.markdown(f"**{words.isotropy(start, answer)}** {told}" if steps else told)
        _heads_caption(view.found, full)


def _heads_caption(found: Embeddings, full: Full) -> None:
    metric = found.facts["primary"]
    told = [
        f"Change in {metric}: frozen head {words.difference(full.frozen_difference)}",
        f"refitted head, against one refitted without transform: {words.difference(full.refitted_difference)}",
    ]
    st.caption(wording.plain("; ".join(told) + "."))
    explanations.show("whatif_heads")


def spectrum(view: View, start: Answer, answer: Answer) -> None:
    """EV_k before and after."""
    if start.ev is None:
        return
    with view.figures:
        st.markdown("**Explained variance, before and after**")
        figure = whatif_figures.spectrum(start.ev, answer.ev, answer.d)
        told = (
            f"Explained variance of the first {len(start.ev)} of {answer.d} components without and with the transforms"
        )
        draw(figure, key=PREFIX + "spectrum", words=told)
        explanations.show("spectrum")


def maps(view: View, first: Full, full: Full) -> None:
    """Both maps; the one without transform never changes, so it stays as it is on screen."""
    found = view.found
    names = list(found.facts["label_names"]) if found.facts["kind"] == "classification" else []
    with view.figures:
        columns = st.columns(2, gap="large")
        for column, name, title, shown in (
            (columns[0], "map_before", "Map, no transform", first),
            (columns[1], "map_after", "Map, after", full),
        ):
            with column:
                st.markdown(f"**{title}**")
                figure = whatif_figures.cloud_map(shown.map, shown.map_shares, found.labels, names, found.texts)
                told = f"{title}: {len(found.labels)} validation rows along their two strongest components, by label"
                draw(figure, key=PREFIX + name, words=told)
        n = len(found.labels)
        some = f"{whatif_figures.DRAWN:,} of {n:,} validation rows, drawn at random with seed 0"
        drawn = some if n > whatif_figures.DRAWN else f"all {n:,} validation rows"
        st.caption(f"Coloured by label; {drawn}. Signs follow the map without transform.")
        explanations.show("whatif_map")


def table(view: View, start: Answer, answer: Answer, first: Full, full: Full, run_id: str) -> None:
    """The downloads."""
    found = view.found
    metric = str(found.facts["primary"])
    lines = [
        {
            "measure": f"{metric}, frozen head",
            "before": start.frozen,
            "after": answer.frozen,
            **_ends(full.frozen_difference),
        },
        {
            "measure": f"{metric}, refitted head",
            "before": first.refitted,
            "after": full.refitted,
            **_ends(full.refitted_difference),
        },
    ]
    lines += [
        {"measure": _TITLES[name], "before": start.measures[name], "after": answer.measures[name]} for name in MEASURES
    ]
    lines += [
        {"measure": _TITLES[name], "before": first.measures[name], "after": full.measures[name]} for name in SLOWER
    ]
    for number in range(0 if start.ev is None or answer.ev is None else min(len(start.ev), len(answer.ev), 50)):
        assert start.ev is not None and answer.ev is not None
        lines.append(
            {"measure": f"EV_{number + 1}", "before": float(start.ev[number]), "after": float(answer.ev[number])}
        )
    table = pd.DataFrame(lines, columns=["measure", "before", "after", "difference_low", "difference_high"])
    table["n"], table["d_before"], table["d_after"] = answer.n, start.d, answer.d
    points = pd.DataFrame(
        {
            "text": found.texts,
            "label": found.labels,
            "predicted_before": start.predicted,
            "predicted_after": answer.predicted if answer.predicted is not None else None,
            "before_1": first.map[:, 0],
            "before_2": first.map[:, 1],
            "after_1": full.map[:, 0],
            "after_2": full.map[:, 1],
        }
    )
    with view.below, st.container(horizontal=True, vertical_alignment="center"):
        for label, name, frame in (("Numbers (CSV)", "numbers", table), ("Both maps (CSV)", "map", points)):
            st.download_button(
                label,
                functools.partial(downloads.csv, frame),
                f"what-if-{run_id}-{name}.csv",
                "text/csv",
                key=f"{PREFIX}get_{name}",
                icon=":material/download:",
                on_click="ignore",
            )
        st.caption("A figure's camera button saves it as SVG.", width="content")


def _ends(found: Difference | None) -> dict[str, float | None]:
    if found is None:
        return {}
    return {"difference_low": found.low, "difference_high": found.high}

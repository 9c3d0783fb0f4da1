"""All numbers of the views: one table for the screen, CSV, Parquet and LaTeX."""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from dashboard import downloads, wording
from dashboard.explore.form import PREFIX, ChosenCloud, alike, file_name
from dashboard.steady import steady
from dashboard.tables import ISOTROPY, decimals
from isoviz import metrics
from isoviz.exploring.results import ViewResult
from isoviz.metrics.measuring import notes_of
from isoviz.metrics.record import CloudRecord

METRICS: tuple[str, ...] = ISOTROPY
"""Every number that a record of a cloud holds, in the order in which they are shown."""


def _headings() -> dict[str, str]:
    headings = {"layer": "Layer", "pooling": "Pooling", "n": "n", "d": "d"}
    for slug in METRICS:
        headings[slug] = metrics.get(slug).heading
        if metrics.get(slug).interval is not None:
            headings |= {"low": "95 % from", "high": "95 % to"}
    return headings | {
        "mean_norm": "‖mean‖",
        "sigma_min": "σ min",
        "sigma_median": "σ median",
        "sigma_max": "σ max",
        "outliers": "Outlier dimensions",
        "notes": "Notes",
    }


COLUMNS: dict[str, str] = _headings()
"""Column → heading on screen."""

HELP: dict[str, str] = {
    "n": "Points of the cloud. Some metrics are taken on fewer: see Notes.",
    "d": "Dimensions of the cloud.",
    **{slug: metrics.get(slug).tooltip for slug in METRICS},
    "low": "Lower end of the 95 % interval of the unbiased score, by leaving out one row at a time.",
    "high": "Upper end of the 95 % interval of the unbiased score, by leaving out one row at a time.",
    "mean_norm": "Length of the mean vector: how far the cloud lies from the origin.",
    "sigma_min": "Smallest standard deviation of a dimension.",
    "sigma_median": "Median standard deviation of the dimensions.",
    "sigma_max": "Largest standard deviation of a dimension.",
    "outliers": "Dimensions whose mean is more than three standard deviations from the average of all means.",
}
"""Column → what its heading means, where that is no plain word."""

_LATEX = ("layer", "pooling", "n", *METRICS)
_LATEX_NAMES = {metric.heading: metric.latex for metric in metrics.catalogue().values() if metric.latex}
_SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"} | {
    sign: f"\\{sign}" for sign in "&%$#_{}"
}
_SYMBOLS = {"Σ_S": r"$\Sigma_S$", "ζ": r"$\zeta$"}
"""That a caption may hold beside text, and LaTeX has by another name."""


def frame(entries: Iterable[CloudRecord]) -> pd.DataFrame:
    """One line per entry, the columns of `COLUMNS`; what is undefined is missing, its reason in `notes`. The entry of all
    layers together has no layer."""
    return pd.DataFrame([_line(entry) for entry in entries], columns=list(COLUMNS)).astype({"layer": "Int64"})


def of_shrinkage(shrinkage: Mapping[str, Any]) -> str:
    """ζ and Σ_S of a view's IsoScore*, or why there is none, as a sentence.

    Args:
        shrinkage: `shrinkage` of the view's facts.
    """
    words = shrinkage.get("words")
    return f"IsoScore*: {words}." if words else f"There is no IsoScore*: {shrinkage['reason']}."


def of_layers(view: ViewResult) -> str:
    """What the entry of all layers together is of."""
    first, last = min(1, view.depth), view.depth
    which = f"layer {last}" if first == last else f"layers {first} to {last}"
    return f"every token of {which} as one cloud (cloud layers)"


def value(entry: CloudRecord, measure: str) -> float | None:
    """A number of an entry by its column, None where undefined."""
    if measure == "mean_norm":
        return entry.dimensions.mean_norm if entry.dimensions else None
    return entry.number(measure)


def points_of(entry: CloudRecord, measure: str) -> str:
    """On how many points a measure was taken, and of how many where those are not all: `5,184`, `500 of 5,184`."""
    taken, total = entry.points_of(measure), wording.number(entry.n)
    return total if taken == entry.n else f"{wording.number(taken)} of {total}"


def notes_on(entry: CloudRecord, measure: str) -> list[str]:
    """What the notes of an entry say of one measure, in plain words; all of them where it is undefined and none names it."""
    notes = notes_of(entry)
    found = [note for note in notes if re.search(rf"\b{measure}\b", note)]
    if value(entry, measure) is None and not found:
        found = notes
    return [in_words(note) for note in found]


def in_words(note: str) -> str:
    """A note with the titles of metrics in the place of their slugs."""
    known = metrics.catalogue()
    return re.sub(r"\b[a-z_0-9]+\b", lambda word: _lowered(known[word[0]].title) if word[0] in known else word[0], note)


def _lowered(title: str) -> str:
    """As within a sentence: a name such as IsoScore keeps its capitals."""
    first, *_ = title.split()
    return title[0].lower() + title[1:] if first[1:].islower() else title


def behind(view: ViewResult, layer: int, pooling: str) -> pd.DataFrame:
    """The numbers behind the figures of a cloud, one per line: `figure`, `layer`, `pooling`, `at` and `value`.

    `ev`: the share of the variance in the first `at` directions, of every layer. `sigma` and `mean`: of dimension `at`.
    `cosine`: how many of the pairs that were counted lie in the bin whose lower edge is `at`.
    """
    parts = []
    for name in ("ev", "sigma", "mean", "cosine"):
        for number in range(view.depth + 1) if name == "ev" else (layer,):
            values = view.array(number, pooling, name)
            if values is None:
                continue
            count = len(values)
            at = np.arange(count) + (name == "ev") if name != "cosine" else np.linspace(-1, 1, count + 1)[:-1].round(6)
            parts.append(
                pd.DataFrame({"figure": name, "layer": number, "pooling": pooling, "at": at, "value": values}).astype(
                    {"at": float, "value": float}
                )
            )
    return pd.concat(parts, ignore_index=True)


def latex(table: pd.DataFrame, caption: str) -> str:
    """A booktabs table of the main measures, three decimals."""
    chosen = pd.DataFrame(
        {
            _LATEX_NAMES.get(COLUMNS[name], COLUMNS[name]): table[name]
            if name in ("pooling", "n")
            else ["--" if pd.isna(number) else str(number) for number in table[name]]
            if name == "layer"
            else [decimals(number) for number in table[name]]
            for name in _LATEX
        }
    )
    text: str = chosen.to_latex(
        index=False, escape=False, caption=_escaped(caption), column_format="rl" + "r" * (len(_LATEX) - 2)
    )
    return text.replace("−", "$-$")


def _escaped(text: str) -> str:
    for symbol, command in _SYMBOLS.items():
        if symbol in text:
            return command.join(_escaped(part) for part in text.split(symbol))
    return "".join(_SPECIAL.get(sign, sign) for sign in text)


def _line(entry: CloudRecord) -> dict[str, Any]:
    low, high = entry.interval("isoscore_unbiased") or (None, None)
    of_dimensions = entry.dimensions
    sigma = of_dimensions.sigma if of_dimensions else (None, None, None)
    return {
        **{name: getattr(entry, name) for name in ("layer", "pooling", "n", "d")},
        **{slug: entry.number(slug) for slug in METRICS},
        "low": low,
        "high": high,
        "mean_norm": value(entry, "mean_norm"),
        **dict(zip(("sigma_min", "sigma_median", "sigma_max"), sigma, strict=True)),
        "outliers": " ".join(map(str, of_dimensions.outliers if of_dimensions else ())),
        "notes": "; ".join(notes_of(entry)),
    }


# ------------------------------------------------------------------------------------------------------ on the page

TABLES_AFTER = 1.0
"""Seconds that the first table of a session follows the figures."""
_SEEN = PREFIX + "tables_seen"


@steady
def section(chosen: list[ChosenCloud]) -> None:
    """Every measure of every layer and pooling, with n, d and notes; downloads."""
    st.subheader("All numbers", anchor=False)
    _figures_first(chosen)
    by_view = {id(one.filled): one for one in chosen}
    for (_, filled), named in alike([(one.view, one.filled) for one in chosen]):
        one = by_view[id(filled)]
        assert one.filled.request is not None
        request = one.filled.request
        together = one.view.together
        table = frame([*one.view.entries, *([together] if together else [])])
        about = (
            f"{request.model} on {request.task} ({request.split}, {one.view.facts['rows']} rows), by layer and pooling."
        )
        notes = [of_shrinkage(one.view.facts["shrinkage"])]
        if together:
            notes.insert(0, f"The line without a layer: {of_layers(one.view)}.")
        caption = " ".join([about, *notes])
        if len(chosen) > 1:
            st.markdown(f"**{named}**: {wording.plain(about)}")
        st.dataframe(
            table.rename(columns=COLUMNS),
            key=one.prefix + "numbers",
            hide_index=True,
            column_config=_columns(table),
            placeholder="–",
            alt=f"Every measure of {len(table)} clouds, one line per layer and pooling",
        )
        st.caption(wording.plain(" ".join(notes)))
        # the number keeps the keys apart when two views are of the same thing
        name = file_name(one) if one.number == 1 else f"{file_name(one)}-view{one.number}"
        downloads.buttons(name, table, functools.partial(latex, table, caption), parquet_too=True)


def _figures_first(chosen: list[ChosenCloud]) -> None:
    """In a new tab, let the browser draw what it has got before it loads a megabyte of scripts for its first table."""
    first = not st.session_state.get(_SEEN)
    st.session_state[_SEEN] = True
    if first and not any(
        one.view.pending for one in chosen
    ):  # else somebody waited for it here, and the tab is not new
        time.sleep(TABLES_AFTER)


def _columns(table: pd.DataFrame) -> dict[str, Any]:
    words, told = COLUMNS, HELP
    small = ("sigma_min", "sigma_median", "sigma_max")
    formats = {slug: f"%.{metrics.get(slug).decimals + 1}f" for slug in METRICS}
    formats |= {"low": "%.4f", "high": "%.4f", "mean_norm": "%.2f"} | dict.fromkeys(small, "%.3g")
    return {
        **{words[name]: st.column_config.Column(help=told[name]) for name in told},
        **{
            words[name]: st.column_config.NumberColumn(format=how, help=told.get(name)) for name, how in formats.items()
        },
        words["notes"]: st.column_config.TextColumn(width="large"),
    }

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

from dashboard import downloads, measures, wording
from dashboard.explore.form import PREFIX, ChosenCloud, alike, file_name
from dashboard.tables import decimals
from isoviz import metrics
from isoviz.exploring.results import ViewResult
from isoviz.metrics.measuring import notes_of
from isoviz.metrics.record import CloudRecord

_AROUND = {"layer": "Layer", "pooling": "Pooling", "n": "n", "d": "d"}
_OF_DIMENSIONS = {
    "mean_norm": "‖mean‖",
    "sigma_min": "σ min",
    "sigma_median": "σ median",
    "sigma_max": "σ max",
    "outliers": "Outlier dimensions",
    "notes": "Notes",
}
_HELP = {
    "n": "Points of the cloud. Some metrics use fewer: see Notes.",
    "d": "Dimensions of the cloud.",
    "mean_norm": "Length of the mean vector: how far the cloud lies from the origin.",
    "sigma_min": "Smallest standard deviation of a dimension.",
    "sigma_median": "Median standard deviation of the dimensions.",
    "sigma_max": "Largest standard deviation of a dimension.",
    "outliers": "Dimensions whose mean is more than three standard deviations from the average of all means.",
}


def headings() -> dict[str, str]:
    """Column → heading on screen. A metric with an interval has columns for its ends."""
    of_metrics: dict[str, str] = {}
    for metric in measures.of_clouds():
        of_metrics[metric.slug] = metric.heading
        if metric.interval is not None:
            of_metrics |= {f"{metric.slug}_low": "95 % from", f"{metric.slug}_high": "95 % to"}
    return {**_AROUND, **of_metrics, **_OF_DIMENSIONS}


def frame(entries: Iterable[CloudRecord]) -> pd.DataFrame:
    """One line per entry, the columns of `headings`; what is undefined is missing, its reason in `notes`. The entry of all
    layers together has no layer."""
    return pd.DataFrame([_line(entry) for entry in entries], columns=list(headings())).astype({"layer": "Int64"})


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
    about = [note for note in notes if re.search(rf"\b{measure}\b", note)]
    if value(entry, measure) is None and not about:
        about = notes
    return [in_words(note) for note in about]


def in_words(note: str) -> str:
    """A note with metric slugs replaced by titles."""
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
    """A booktabs table of all metrics, one decimal more than in a mean over seeds."""
    columns: dict[str, Iterable[str]] = {
        "Layer": ["--" if pd.isna(layer) else str(layer) for layer in table["layer"]],
        "Pooling": table["pooling"],
        "n": table["n"].astype(str),
    }
    for metric in measures.of_clouds():
        numbers = table[metric.slug].astype(float)
        columns[downloads.latex_heading(metric)] = [decimals(number, metric.decimals) for number in numbers]
    return downloads.latex_table(columns, caption, "rl" + "r" * (len(columns) - 2))


def _line(entry: CloudRecord) -> dict[str, Any]:
    of_dimensions = entry.dimensions
    sigma = of_dimensions.sigma if of_dimensions else (None, None, None)
    line: dict[str, Any] = {name: getattr(entry, name) for name in _AROUND}
    for metric in measures.of_clouds():
        line[metric.slug] = entry.number(metric.slug)
        if metric.interval is not None:
            ends = entry.interval(metric.slug) or (None, None)
            line |= {f"{metric.slug}_low": ends[0], f"{metric.slug}_high": ends[1]}
    return line | {
        "mean_norm": value(entry, "mean_norm"),
        **dict(zip(("sigma_min", "sigma_median", "sigma_max"), sigma, strict=True)),
        "outliers": " ".join(map(str, of_dimensions.outliers if of_dimensions else ())),
        "notes": "; ".join(in_words(note) for note in notes_of(entry)),
    }


# ------------------------------------------------------------------------------------------------------ on the page

TABLES_AFTER = 1.0
"""Seconds that the first table of a session follows the figures."""
_SEEN = PREFIX + "tables_seen"


def section(chosen: list[ChosenCloud]) -> None:
    """Every measure of every layer and pooling, with n, d and notes; downloads."""
    _figures_first(chosen)
    by_view = {id(one.filled): one for one in chosen}
    for (_, filled), named in alike([(one.view, one.filled) for one in chosen]):
        one = by_view[id(filled)]
        assert one.filled.request is not None
        request = one.filled.request
        together = one.view.together
        table = frame([*one.view.entries, *([together] if together else [])])
        random = ", random weights," if one.view.random_weights else ""
        if one.filled.taken is None:
            about = (
                f"{request.model}{random} on {request.task} ({request.split}, {one.view.facts['rows']} rows), by layer and "
                "pooling."
            )
        else:
            about = f"{one.source} ({one.view.facts['rows']} rows)."
        notes = [of_shrinkage(one.view.facts["shrinkage"])]
        if together:
            notes.insert(0, f"The row without a layer: {of_layers(one.view)}.")
        caption = " ".join([about, *notes])
        if len(chosen) > 1:
            st.markdown(f"**{named}**: {wording.plain(about)}")
        st.dataframe(
            table.rename(columns=headings()),
            key=one.prefix + "numbers",
            hide_index=True,
            column_config=_columns(),
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
    waited_for = any(one.view.pending for one in chosen)  # then the tab is not new
    if first and not waited_for:
        time.sleep(TABLES_AFTER)


def _columns() -> dict[str, Any]:
    words = headings()
    number = st.column_config.NumberColumn
    config: dict[str, Any] = {words[name]: st.column_config.Column(help=text) for name, text in _HELP.items()}
    for metric in measures.of_clouds():
        how = f"%.{metric.decimals + 1}f"
        config[metric.heading] = number(help=metric.tooltip, format=how)
        if metric.interval is not None:
            for end, name in (("low", "Lower"), ("high", "Upper")):
                text = f"{name} end of the 95 % interval of {metric.title}, by leaving out one row at a time."
                config[words[f"{metric.slug}_{end}"]] = number(help=text, format=how)
    config |= {
        words[name]: number(format="%.3g", help=_HELP[name]) for name in ("sigma_min", "sigma_median", "sigma_max")
    }
    config[words["mean_norm"]] = number(format="%.2f", help=_HELP["mean_norm"])
    return config | {words["notes"]: st.column_config.TextColumn(width="large")}

"""All measures of the views as one table, for the screen, CSV, Parquet and LaTeX."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from dashboard.explore.form import Pane, distinct, file_name
from dashboard.shared import downloads, exported, measures, wording
from dashboard.shared.exported import ExportedTable
from isoviz import metrics, reference
from isoviz.exploring.results import ViewResult
from isoviz.metrics.measuring import notes_of
from isoviz.metrics.record import CloudRecord

_AROUND = {"layer": "Layer", "pooling": "Pooling", "n": "n", "d": "d"}
_OF_DIMENSIONS = {
    "mean_norm": "‖mean‖",
    "sigma_min": "σ min",
    "sigma_median": "σ median",
    "sigma_max": "σ max",
    "outliers": "Rogue dimensions by mean",
    "notes": "Notes",
}
_HELP = {name: reference.glossary()[name].text for name in ("n", "d", *_OF_DIMENSIONS) if name != "notes"}


def headings() -> dict[str, str]:
    """Column → heading on screen. A metric with an interval has columns for its bounds."""
    of_metrics: dict[str, str] = {}
    for metric in measures.of_clouds():
        of_metrics[metric.slug] = metric.heading
        if metric.interval is not None:
            of_metrics |= {f"{metric.slug}_low": "95 % from", f"{metric.slug}_high": "95 % to"}
    return {**_AROUND, **of_metrics, **_OF_DIMENSIONS}


def frame(entries: Iterable[CloudRecord]) -> pd.DataFrame:
    """One row per entry with the columns of `headings`. Undefined values are missing, with the reason in `notes`. The entry of
    all layers together has no layer."""
    return pd.DataFrame([_line(entry) for entry in entries], columns=list(headings())).astype({"layer": "Int64"})


def of_shrinkage(shrinkage: Mapping[str, Any]) -> str:
    """A sentence on ζ and Σ_S of a view's IsoScore*, or on why it has none.

    Args:
        shrinkage: `shrinkage` of the view's facts.
    """
    words = shrinkage.get("words")
    return f"IsoScore*: {words}." if words else f"No IsoScore*: {shrinkage['reason']}."


def of_layers(view: ViewResult) -> str:
    """The cloud of the entry of all layers together."""
    first, last = min(1, view.depth), view.depth
    layers = f"layer {last}" if first == last else f"layers {first} to {last}"
    return f"every token of {layers} as one cloud (cloud layers)"


def value(entry: CloudRecord, measure: str) -> float | None:
    """A value of an entry by its column; None if undefined."""
    if measure == "mean_norm":
        return entry.dimensions.mean_norm if entry.dimensions else None
    return entry.number(measure)


def points_of(entry: CloudRecord, measure: str) -> str:
    """Number of points measured, and of how many if not all: `5,184`, `500 of 5,184`."""
    measured, total = entry.points_of(measure), wording.number(entry.n)
    return total if measured == entry.n else f"{wording.number(measured)} of {total}"


def notes_on(entry: CloudRecord, measure: str) -> list[str]:
    """An entry's notes on a measure, with titles instead of slugs. All notes if it is undefined and no note names it."""
    notes = notes_of(entry)
    about = [note for note in notes if re.search(rf"\b{measure}\b", note)]
    if value(entry, measure) is None and not about:
        metric = metrics.catalogue().get(measure)
        about = notes
        if metric is not None and metric.kinds == {"tokens"} and entry.pooling != "tokens":
            about = [f"{measure} is a measure of pooling tokens"]
    return [in_words(note) for note in about]


def in_words(note: str) -> str:
    """A note with metric slugs replaced by titles."""
    catalogue = metrics.catalogue()

    def titled(word: re.Match[str]) -> str:
        title = catalogue[word[0]].title if word[0] in catalogue else word[0]
        return title[0].lower() + title[1:] if title.split()[0][1:].islower() else title  # IsoScore keeps its capitals

    return re.sub(r"\b[a-z_0-9]+\b", titled, note)


def figure_data(view: ViewResult, layer: int, pooling: str) -> pd.DataFrame:
    """The data of a cloud's figures, one value per row: `figure`, `layer`, `pooling`, `at` and `value`.

    `ev`: the share of the variance in the first `at` directions, of every layer. `sigma` and `mean`: of dimension `at`.
    `cosine`: number of counted pairs in the bin with lower edge `at`.
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
    """A booktabs table of all metrics."""
    names = {"layer": "Layer", "pooling": "Pooling", "n": "n"} | {one.slug: one.heading for one in measures.of_clouds()}
    return downloads.latex(table[list(names)].rename(columns=names), caption)


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


# ------------------------------------------------------------------------------------------------------ section


def section(panes: list[Pane], *, shown: bool = True) -> None:
    """Every measure of every layer and pooling, with n, d and notes; downloads."""
    by_view = {id(pane.form): pane for pane in panes}
    for (_, form), title in distinct([(pane.view, pane.form) for pane in panes]):
        pane = by_view[id(form)]
        assert pane.form.request is not None
        request = pane.form.request
        together = pane.view.together
        table = frame([*pane.view.entries, *([together] if together else [])])
        random = ", random weights," if pane.view.random_weights else ""
        if pane.form.own_set is None:
            about = (
                f"{request.model}{random} on {request.task} ({request.split}, {pane.view.facts['rows']} rows), by layer and "
                "pooling."
            )
        else:
            about = f"{pane.source} ({pane.view.facts['rows']} rows)."
        notes = [of_shrinkage(pane.view.facts["shrinkage"])]
        if together:
            notes.insert(0, f"The row without a layer: {of_layers(pane.view)}.")
        caption = " ".join([about, *notes])
        named = table.rename(columns=headings())
        exported.note(
            pane.prefix + "numbers",
            ExportedTable(f"Every measure{f': {title}' if len(panes) > 1 else ''}", named, (about, *notes)),
        )
        if not shown:
            continue
        if len(panes) > 1:
            st.markdown(f"**{title}**: {wording.plain(about)}")
        st.dataframe(
            named,
            key=pane.prefix + "numbers",
            hide_index=True,
            column_config=_columns(),
            placeholder="–",
            alt=f"All measures of {len(table)} clouds, one row per layer and pooling",
        )
        st.caption(wording.plain(" ".join(notes)))
        # the number keeps widget keys unique if two views are identical
        name = file_name(pane) if pane.number == 1 else f"{file_name(pane)}-view{pane.number}"
        downloads.buttons(name, table, latex=functools.partial(latex, table, caption))


def _columns() -> dict[str, Any]:
    titles = headings()
    number = st.column_config.NumberColumn
    config: dict[str, Any] = {titles[name]: st.column_config.Column(help=text) for name, text in _HELP.items()}
    for metric in measures.of_clouds():
        number_format = f"%.{metric.decimals + 1}f"
        config[metric.heading] = number(help=metric.tooltip, format=number_format)
        if metric.interval is not None:
            for end, name in (("low", "Lower"), ("high", "Upper")):
                text = f"{name} end of the 95 % interval of {metric.title}, by leaving out one row at a time."
                config[titles[f"{metric.slug}_{end}"]] = number(help=text, format=number_format)
    config |= {
        titles[name]: number(format="%.3g", help=_HELP[name]) for name in ("sigma_min", "sigma_median", "sigma_max")
    }
    config[titles["mean_norm"]] = number(format="%.2f", help=_HELP["mean_norm"])
    return config | {titles["notes"]: st.column_config.TextColumn(width="large")}

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
from dashboard.tables import decimals
from isoviz.exploring.results import ViewResult

COLUMNS: dict[str, str] = {
    "layer": "Layer",
    "pooling": "Pooling",
    "n": "n",
    "d": "d",
    "isoscore": "IsoScore",
    "isoscore_unbiased": "unbiased",
    "low": "95 % from",
    "high": "95 % to",
    "isoscore_star": "IsoScore*",
    "ev_1": "EV₁",
    "mean_cosine": "Mean cosine",
    "participation_ratio": "PR",
    "effective_rank": "Effective rank",
    "twonn": "TwoNN",
    "mean_norm": "‖mean‖",
    "abs_correlation": "Mean |ρ|",
    "sigma_min": "σ min",
    "sigma_median": "σ median",
    "sigma_max": "σ max",
    "outliers": "Outlier dimensions",
    "notes": "Notes",
}
"""Column → heading on screen."""

HELP: dict[str, str] = {
    "n": "Points of the cloud. TwoNN and the unbiased score may be taken on fewer: see Notes.",
    "d": "Dimensions of the cloud.",
    "isoscore_unbiased": "IsoScore corrected for few points; of tokens, on one token of each row.",
    "low": "Lower end of the 95 % interval of the unbiased score, by leaving out one row at a time.",
    "high": "Upper end of the 95 % interval of the unbiased score, by leaving out one row at a time.",
    "isoscore_star": "Of tokens alone, because its Σ_S is that of training tokens.",
    "ev_1": "Share of the variance along the strongest direction.",
    "participation_ratio": "Participation ratio: how many directions share the variance, were they to share it evenly.",
    "twonn": "Intrinsic dimension by the two nearest neighbours of each point.",
    "mean_norm": "Length of the mean vector: how far the cloud lies from the origin.",
    "abs_correlation": "Mean absolute correlation of two different dimensions.",
    "sigma_min": "Smallest standard deviation of a dimension.",
    "sigma_median": "Median standard deviation of the dimensions.",
    "sigma_max": "Largest standard deviation of a dimension.",
    "outliers": "Dimensions whose mean is more than three standard deviations from the average of all means.",
}
"""Column → what its heading means, where that is no plain word."""

_WORDS = {
    "isoscore": "IsoScore",
    "isoscore_unbiased": "the unbiased IsoScore",
    "isoscore_unbiased_interval": "the interval of the unbiased IsoScore",
    "isoscore_star": "IsoScore*",
    "participation_ratio": "participation ratio",
    "effective_rank": "effective rank",
    "ev": "EV",
    "mean_cosine": "the average cosine",
    "twonn": "TwoNN",
}
"""Measures as notes name them → in plain words."""

_LATEX = ("layer", "pooling", "n", "isoscore", "isoscore_unbiased", "isoscore_star", "ev_1", "mean_cosine",
          "participation_ratio", "effective_rank", "twonn")  # fmt: skip
_LATEX_NAMES = {"EV₁": "$EV_1$"}
_SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"} | {
    sign: f"\\{sign}" for sign in "&%$#_{}"
}
_SYMBOLS = {"Σ_S": r"$\Sigma_S$", "ζ": r"$\zeta$"}
"""That a caption may hold beside text, and LaTeX has by another name."""


def frame(entries: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
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


def of_layers(together: Mapping[str, Any]) -> str:
    """What the entry of all layers together is of."""
    first, last = together["layers"]
    which = f"layer {last}" if first == last else f"layers {first} to {last}"
    return f"every token of {which} as one cloud (cloud layers)"


def value(entry: Mapping[str, Any], measure: str) -> float | None:
    """A measure of an entry by its column, None where undefined."""
    if measure == "ev_1":
        return entry["ev"][0] if entry["ev"] else None
    number: float | None = entry[measure]
    return number


def points_of(entry: Mapping[str, Any], measure: str) -> str:
    """On how many points a measure was taken, and of how many where those are not all: `5,184`, `500 of 5,184`."""
    taken = entry.get({"isoscore_unbiased": "unbiased_points", "twonn": "twonn_points"}.get(measure, "n"))
    total = wording.number(entry["n"])
    return total if taken in (None, entry["n"]) else f"{wording.number(taken)} of {total}"


def notes_on(entry: Mapping[str, Any], measure: str) -> list[str]:
    """What the notes of an entry say of one measure, in plain words; all of them where it is undefined and none names it."""
    name = {"ev_1": "ev"}.get(measure, measure)
    notes: list[str] = entry["warnings"]
    about = [note for note in notes if re.search(rf"\b{name}\b", note.partition("; only ")[0])]
    if value(entry, measure) is None and not about:
        about = notes
    return [re.sub(r"\b[a-z_]+\b", lambda word: _WORDS.get(word[0], word[0]), note) for note in about]


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
    text: str = chosen.to_latex(index=False, escape=False, caption=_escaped(caption), column_format="rl" + "r" * 9)
    return text.replace("−", "$-$")


def _escaped(text: str) -> str:
    for symbol, command in _SYMBOLS.items():
        if symbol in text:
            return command.join(_escaped(part) for part in text.split(symbol))
    return "".join(_SPECIAL.get(sign, sign) for sign in text)


def _line(entry: Mapping[str, Any]) -> dict[str, Any]:
    low, high = entry["isoscore_unbiased_interval"] or (None, None)
    sigma = entry["sigma"] or {}
    same = ("layer", "pooling", "n", "d", "isoscore", "isoscore_unbiased", "mean_cosine", "participation_ratio")
    return {
        **{name: entry[name] for name in same},
        **{name: entry[name] for name in ("isoscore_star", "effective_rank", "twonn", "mean_norm", "abs_correlation")},
        "low": low,
        "high": high,
        "ev_1": value(entry, "ev_1"),
        **{f"sigma_{name}": sigma.get(name) for name in ("min", "median", "max")},
        "outliers": " ".join(str(number) for number in entry["outlier_dimensions"]),
        "notes": "; ".join(entry["warnings"]),
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
            notes.insert(0, f"The line without a layer: {of_layers(together)}.")
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
    fine = ("isoscore", "isoscore_star", "isoscore_unbiased", "low", "high", "ev_1", "mean_cosine", "abs_correlation")
    coarse = ("participation_ratio", "effective_rank", "twonn", "mean_norm")
    small = ("sigma_min", "sigma_median", "sigma_max")
    formats = dict.fromkeys(fine, "%.4f") | dict.fromkeys(coarse, "%.2f") | dict.fromkeys(small, "%.3g")
    return {
        **{words[name]: st.column_config.Column(help=told[name]) for name in told},
        **{
            words[name]: st.column_config.NumberColumn(format=how, help=told.get(name)) for name, how in formats.items()
        },
        words["notes"]: st.column_config.TextColumn(width="large"),
    }

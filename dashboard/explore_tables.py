"""The entries of a view → one table, for the screen, CSV and LaTeX. No Streamlit here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from dashboard.tables import decimals

COLUMNS: dict[str, str] = {
    "layer": "Layer",
    "pooling": "Pooling",
    "n": "n",
    "d": "d",
    "isoscore": "IsoScore",
    "isoscore_unbiased": "unbiased",
    "low": "95 % from",
    "high": "95 % to",
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

_LATEX = ("layer", "pooling", "n", "isoscore", "isoscore_unbiased", "ev_1", "mean_cosine", "participation_ratio",
          "effective_rank", "twonn")  # fmt: skip
_LATEX_NAMES = {"EV₁": "$EV_1$"}
_SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"} | {
    sign: f"\\{sign}" for sign in "&%$#_{}"
}


def frame(entries: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """One line per layer × pooling, the columns of `COLUMNS`; what is undefined is missing, its reason in `notes`."""
    return pd.DataFrame([_line(entry) for entry in entries], columns=list(COLUMNS))


def value(entry: Mapping[str, Any], measure: str) -> float | None:
    """A measure of an entry by its column, None where undefined."""
    if measure == "ev_1":
        return entry["ev"][0] if entry["ev"] else None
    found: float | None = entry[measure]
    return found


def latex(table: pd.DataFrame, caption: str) -> str:
    """A booktabs table of the main measures, three decimals."""
    shown = pd.DataFrame(
        {
            _LATEX_NAMES.get(COLUMNS[name], COLUMNS[name]): table[name]
            if name in ("layer", "pooling", "n")
            else [decimals(number) for number in table[name]]
            for name in _LATEX
        }
    )
    text: str = shown.to_latex(index=False, escape=False, caption=_escaped(caption), column_format="rl" + "r" * 8)
    return text.replace("−", "$-$")


def _escaped(text: str) -> str:
    return "".join(_SPECIAL.get(sign, sign) for sign in text)


def _line(entry: Mapping[str, Any]) -> dict[str, Any]:
    low, high = entry["isoscore_unbiased_interval"] or (None, None)
    sigma = entry["sigma"] or {}
    same = ("layer", "pooling", "n", "d", "isoscore", "isoscore_unbiased", "mean_cosine", "participation_ratio")
    return {
        **{name: entry[name] for name in same},
        **{name: entry[name] for name in ("effective_rank", "twonn", "mean_norm", "abs_correlation")},
        "low": low,
        "high": high,
        "ev_1": value(entry, "ev_1"),
        **{f"sigma_{name}": sigma.get(name) for name in ("min", "median", "max")},
        "outliers": " ".join(str(number) for number in entry["outlier_dimensions"]),
        "notes": "; ".join(entry["warnings"]),
    }

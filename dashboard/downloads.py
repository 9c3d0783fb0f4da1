"""Tables as files: CSV and Parquet with every number, LaTeX for the paper."""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Callable

import pandas as pd
import streamlit as st

from dashboard.tables import decimals

_LATEX = {
    "±": r"$\pm$",
    "−": "$-$",
    "λ": r"$\lambda$",
    "ζ": r"$\zeta$",
    "β": r"$\beta$",
    "α": r"$\alpha$",
    "ε": r"$\epsilon$",
}


def file_name(*parts: str) -> str:
    """A file's name without its ending, of parts that may hold what a name should not: `glue/cola` becomes `glue-cola`."""
    return "-".join(filter(None, (re.sub(r"[^\w.+]+", "-", part).strip("-.") for part in parts)))


_PARQUET = "application/vnd.apache.parquet"


def csv(frame: pd.DataFrame) -> bytes:
    """UTF-8 with a mark that spreadsheet programs look for; text that a spreadsheet would run as a formula is quoted."""
    safe = frame.map(
        lambda value: f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value
    )
    return safe.to_csv(index=False).encode("utf-8-sig")


def latex(summary: pd.DataFrame, metric: str, caption: str) -> str:
    """A booktabs table of `tables.summary`: mean ± s of the metric and of each isotropy measure, n seeds."""
    table = pd.DataFrame(
        {
            "Model": summary["model"],
            "Method": [
                f"{title} {variant}".strip()
                for title, variant in zip(summary["title"], summary["variant"], strict=True)
            ],
            metric: _spread(summary, "mean", "sd"),
            "n": summary["n"],
            "IsoScore": _spread(summary, "isoscore", "isoscore_sd"),
            "IsoScore*": _spread(summary, "isoscore_star", "isoscore_star_sd"),
            "unbiased": _spread(summary, "isoscore_unbiased", "isoscore_unbiased_sd"),
            "EV1": _spread(summary, "ev_1", "ev_1_sd"),
        }
    )
    text: str = table.to_latex(index=False, escape=True, caption=_escaped(caption), column_format="ll" + "r" * 6)
    for sign, command in _LATEX.items():
        text = text.replace(sign, command)
    return text


def _spread(summary: pd.DataFrame, mean: str, sd: str) -> list[str]:
    return [
        decimals(a) if b is None or pd.isna(b) else f"{decimals(a)} ± {decimals(b)}"
        for a, b in zip(summary[mean], summary[sd], strict=True)
    ]


def _escaped(text: str) -> str:
    for sign in "&%$#_{}":
        text = text.replace(sign, f"\\{sign}")
    return text


def buttons(
    name: str, table: pd.DataFrame, latex_text: Callable[[], str] | None = None, *, parquet_too: bool = False
) -> None:
    """Download buttons for a table, side by side; each file is made when it is asked for."""
    files = [("CSV", f"{name}.csv", "text/csv", lambda: csv(table))]
    if parquet_too:
        files.append(("Parquet", f"{name}.parquet", _PARQUET, lambda: parquet(table)))
    if latex_text is not None:
        files.append(("LaTeX", f"{name}.tex", "application/x-tex", lambda: latex_text().encode()))
    with st.container(horizontal=True):
        for label, file, mime, make in files:
            st.download_button(
                label, make, file, mime, key=f"get_{file}", icon=":material/download:", on_click="ignore"
            )


def parquet(frame: pd.DataFrame) -> bytes:
    """Every number and text as it is, with its type."""
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    return buffer.getvalue()


def _made(write: Callable[[pd.DataFrame], bytes], table: Callable[[], pd.DataFrame]) -> bytes:
    return write(table())


def points(name: str, table: Callable[[], pd.DataFrame], *, key: str) -> None:
    """Download buttons for a table that is long: CSV and Parquet, side by side."""
    with st.container(horizontal=True):
        both(name, table, key=key)


def both(name: str, table: Callable[[], pd.DataFrame], *, key: str, title: str | None = None) -> None:
    """Buttons for CSV and Parquet, made when one is pressed; with a `title`, beside those of other tables."""
    kinds = (("CSV", "csv", "text/csv", csv), ("Parquet", "parquet", _PARQUET, parquet))
    for kind, ending, mime, write in kinds:
        st.download_button(
            f"{title} ({kind})" if title else kind,
            functools.partial(_made, write, table),
            f"{name}.{ending}",
            mime,
            key=f"{key}_{ending}",
            icon=":material/download:",
            on_click="ignore",
        )

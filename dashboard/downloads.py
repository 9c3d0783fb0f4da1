"""Tables as files: CSV and Parquet with every number, LaTeX for the paper."""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import pandas as pd
import streamlit as st

from dashboard.tables import decimals
from isoviz.metrics.protocol import Metric

_LATEX = {sign: f"\\{sign}" for sign in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "Σ_S": r"$\Sigma_S$",
    "±": r"$\pm$",
    "−": "$-$",
    "₁": "$_1$",
    "₂": "$_2$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "ε": r"$\epsilon$",
    "ζ": r"$\zeta$",
    "λ": r"$\lambda$",
    "ρ": r"$\rho$",
    "σ": r"$\sigma$",
}
"""Text → LaTeX."""
_LATEX_SIGNS = re.compile("|".join(map(re.escape, sorted(_LATEX, key=len, reverse=True))))


def file_name(*parts: str) -> str:
    """A file's name without its ending, of parts that may hold what a name should not: `glue/cola` becomes `glue-cola`."""
    return "-".join(filter(None, (re.sub(r"[^\w.+]+", "-", part).strip("-.") for part in parts)))


_PARQUET = "application/vnd.apache.parquet"


_FORMULA = re.compile(r"[\s\x00-\x1f\ufeff\u200b]*[=+\-@＝＋－＠]|[\t\r\n]")
"""How text begins that a spreadsheet runs as a formula, after whatever it trims first; full-width signs count too."""


def csv(frame: pd.DataFrame) -> bytes:
    """UTF-8 with a mark that spreadsheet programs look for; text that a spreadsheet would run as a formula is quoted, headings too."""
    safe = frame.map(_unexecuted).rename(columns=_unexecuted)
    return safe.to_csv(index=False).encode("utf-8-sig", "backslashreplace")


def _unexecuted(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def latex(summary: pd.DataFrame, metric: str, isotropy: Sequence[Metric], caption: str) -> str:
    """A booktabs table of `tables.summary`: mean ± s of the task metric and of these measures of isotropy, n seeds."""
    parts = zip(summary["title"], summary["variant"], summary["settings"], strict=True)
    columns: dict[str, Iterable[str]] = {
        "Model": summary["model"],
        "Method": [" ".join(filter(None, words)) for words in parts],
        latex_text(metric): _spread(summary, "mean"),
        "n": summary["n"].astype(str),
    }
    columns |= {latex_heading(one): _spread(summary, one.slug, one.decimals) for one in isotropy}
    numbers = "r" * (len(columns) - 2)
    if summary["remarks"].any():
        columns["Remarks"] = summary["remarks"]
    return latex_table(columns, caption, f"ll{numbers}" + "l" * ("Remarks" in columns))


def latex_table(columns: Mapping[str, Iterable[str]], caption: str, column_format: str) -> str:
    """A booktabs table. The headings are LaTeX already, the cells are text."""
    table = pd.DataFrame({heading: [latex_text(cell) for cell in cells] for heading, cells in columns.items()})
    text: str = table.to_latex(index=False, escape=False, caption=latex_text(caption), column_format=column_format)
    return text


def latex_heading(metric: Metric) -> str:
    """A metric at the head of a column."""
    return metric.latex or latex_text(metric.heading)


def latex_text(text: str) -> str:
    """Text as it must be written in LaTeX."""
    return _LATEX_SIGNS.sub(lambda sign: _LATEX[sign[0]], text)


def _spread(summary: pd.DataFrame, column: str, places: int = 3) -> list[str]:
    return [
        decimals(mean, places) if sd is None or pd.isna(sd) else f"{decimals(mean, places)} ± {decimals(sd, places)}"
        for mean, sd in zip(summary[column], summary["sd" if column == "mean" else f"{column}_sd"], strict=True)
    ]


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

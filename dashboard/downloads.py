"""Tables as files: CSV and Parquet with all numbers, LaTeX for papers."""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import pandas as pd
import streamlit as st

from isoviz.metrics.protocol import Metric

_LATEX = {sign: f"\\{sign}" for sign in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "Σ_S": r"$\Sigma_S$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "†": r"$\dagger$",
    "< ": "$<$ ",
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
    """A file name without extension, from parts with any characters: `glue/cola` becomes `glue-cola`."""
    return "-".join(filter(None, (re.sub(r"[^\w.+]+", "-", part).strip("-.") for part in parts)))


_PARQUET = "application/vnd.apache.parquet"


_FORMULA = re.compile(r"[\s\x00-\x1f\ufeff\u200b]*[=+\-@＝＋－＠]|[\t\r\n]")
"""Matches text that a spreadsheet would run as a formula, including leading characters that it trims and full-width signs."""


def csv(frame: pd.DataFrame) -> bytes:
    """UTF-8 with a byte order mark for spreadsheets. Text that a spreadsheet would run as a formula is quoted, headings too."""
    safe = frame.map(_unexecuted).rename(columns=_unexecuted)
    return safe.to_csv(index=False).encode("utf-8-sig", "backslashreplace")


def _unexecuted(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def latex_table(
    columns: Mapping[str, Iterable[str]],
    caption: str,
    column_format: str,
    *,
    label: str = "",
    last: int = 0,
    notes: Sequence[str] = (),
) -> str:
    """A `table` environment that needs only the package booktabs. Headings are LaTeX; all other content is escaped.

    Args:
        label: label for references.
        last: number of last rows below a separate rule.
        notes: lines below the table.
    """
    rows = [" & ".join(map(latex_text, cells)) for cells in zip(*columns.values(), strict=True)]
    first = len(rows) - last
    lines = [
        r"% Needs \usepackage{booktabs}.",
        r"\begin{table}[t]",
        r"\centering",
        rf"\caption{{{latex_text(caption)}}}",
        *([rf"\label{{{label}}}"] if label else []),
        rf"\begin{{tabular}}{{{column_format}}}",
        r"\toprule",
        rf"{' & '.join(columns)} \\",
        r"\midrule",
        *(rf"{row} \\" for row in rows[:first]),
        *([r"\midrule"] if last and first else []),
        *(rf"{row} \\" for row in rows[first:]),
        r"\bottomrule",
        r"\end{tabular}",
        *([r"\par\smallskip"] if notes else []),
        *(rf"\footnotesize {latex_text(note)}\par" for note in notes),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def latex_heading(metric: Metric) -> str:
    """A metric as a column heading."""
    return metric.latex or latex_text(metric.heading)


def latex_text(text: str) -> str:
    """Text escaped for LaTeX."""
    return _LATEX_SIGNS.sub(lambda sign: _LATEX[sign[0]], text)


def buttons(
    name: str,
    table: pd.DataFrame,
    latex_text: Callable[[], str] | None = None,
    *,
    parquet_too: bool = False,
    markdown: Callable[[], str] | None = None,
    json: Callable[[], str] | None = None,
) -> None:
    """Download buttons for a table, side by side. Each file is made on download."""
    files = [("CSV", f"{name}.csv", "text/csv", lambda: csv(table))]
    if parquet_too:
        files.append(("Parquet", f"{name}.parquet", _PARQUET, lambda: parquet(table)))
    if latex_text is not None:
        files.append(("LaTeX", f"{name}.tex", "application/x-tex", lambda: latex_text().encode()))
    if markdown is not None:
        files.append(("Markdown", f"{name}.md", "text/markdown", lambda: markdown().encode()))
    if json is not None:
        files.append(("JSON", f"{name}.json", "application/json", lambda: json().encode()))
    with st.container(horizontal=True):
        for label, file, mime, make in files:
            st.download_button(
                label, make, file, mime, key=f"get_{file}", icon=":material/download:", on_click="ignore"
            )


def parquet(frame: pd.DataFrame) -> bytes:
    """A Parquet file with all values and types."""
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    return buffer.getvalue()


def _made(write: Callable[[pd.DataFrame], bytes], table: Callable[[], pd.DataFrame]) -> bytes:
    return write(table())


def points(name: str, table: Callable[[], pd.DataFrame], *, key: str) -> None:
    """Download buttons for a long table: CSV and Parquet, side by side."""
    with st.container(horizontal=True):
        csv_and_parquet(name, table, key=key)


def csv_and_parquet(name: str, table: Callable[[], pd.DataFrame], *, key: str, title: str | None = None) -> None:
    """Buttons for CSV and Parquet, made on download; `title` distinguishes several tables."""
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

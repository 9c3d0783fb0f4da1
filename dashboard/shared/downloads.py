"""Tables as files: CSV and Parquet with all numbers, LaTeX for papers."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import pandas as pd
import streamlit as st

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


Table = pd.DataFrame | Callable[[], pd.DataFrame]
_MIME = {
    "csv": "text/csv",
    "html": "text/html",
    "json": "application/json",
    "npy": "application/octet-stream",
    "parquet": "application/vnd.apache.parquet",
    "tex": "application/x-tex",
    "zip": "application/zip",
}
"""Ending of a file's name → its type."""

_FORMULA = re.compile("(^|[;\\t\\r\\n])(?=[\\s\\0\u00ad\u200b-\u200d\u2060\u3164\ufe0f\ufeff]*[=+@＝＋－＠﹢-])")
"""Where a spreadsheet would begin a formula: at the start of a cell, or of what semicolons or tabs in a text make one. Signs that
cannot be seen may come first."""
_NUMBER = re.compile(r"\s*[+-]\d+(?:[.,]\d+)*(?:e[+-]?\d+)?\s*%?\s*", re.IGNORECASE)


def csv(frame: pd.DataFrame) -> bytes:
    """UTF-8 with a byte order mark for spreadsheets. Text that a spreadsheet would run as a formula is quoted, headings too."""
    safe = frame.map(_unexecuted).rename(columns=_unexecuted)
    return safe.to_csv(index=False).encode("utf-8-sig", "backslashreplace")


def _unexecuted(value: object) -> object:
    plain = not isinstance(value, str) or _NUMBER.fullmatch(value)
    return value if plain else _FORMULA.sub(r"\1'", str(value))


def latex(frame: pd.DataFrame, caption: str, notes: Sequence[str] = ()) -> str:
    """A `table` environment that needs only the package booktabs; all text is escaped. Numbers have four digits, missing cells are empty.

    Args:
        notes: lines below the table.
    """

    def line(cells: Iterable[Any]) -> str:
        texts = ("" if pd.isna(cell) else f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in cells)
        return rf"{' & '.join(map(latex_text, texts))} \\"

    sides = "".join("r" if pd.api.types.is_numeric_dtype(frame[name]) else "l" for name in frame)
    lines = [
        r"% Needs \usepackage{booktabs}.",
        r"\begin{table}[t]",
        r"\centering",
        rf"\caption{{{latex_text(caption)}}}",
        rf"\begin{{tabular}}{{{sides}}}",
        r"\toprule",
        line(map(str, frame)),
        r"\midrule",
        *map(line, frame.itertuples(index=False)),
        r"\bottomrule",
        r"\end{tabular}",
        *([r"\par\smallskip"] if notes else []),
        *(rf"\footnotesize {latex_text(note)}\par" for note in notes),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def latex_text(text: str) -> str:
    """Text escaped for LaTeX."""
    return _LATEX_SIGNS.sub(lambda sign: _LATEX[sign[0]], text)


Content = Callable[[], bytes | str]
OFFERED: Final = "offered_files"
"""Session key: what makes the files that the page offers, by the key of their buttons. Only `dashboard.export.at_address` sets it."""


def button(label: str, make: Content, file: str, *, icon: str = "download", **options: Any) -> None:
    """A download button; the file is made on download, and its name's ending says what it is."""
    mime = _MIME[file.rpartition(".")[2]]
    if OFFERED in st.session_state:
        st.session_state[OFFERED][options["key"]] = make
    st.download_button(label, make, file, mime, icon=f":material/{icon}:", on_click="ignore", **options)


def buttons(
    name: str,
    table: Table,
    *,
    key: str = "get_",
    title: str = "",
    with_parquet: bool = True,
    latex: Callable[[], str] | None = None,
    json: Callable[[], str] | None = None,
) -> None:
    """Download buttons for a table in the formats given, side by side.

    Args:
        name: file name without extension.
        table: the table, or what makes it on download.
        key: prefix of the buttons' keys, if a page offers a file of this name twice.
        title: distinguishes several tables of a page.
        with_parquet: Parquet needs columns of one type each.
    """

    def frame() -> pd.DataFrame:
        return table() if callable(table) else table

    formats: tuple[tuple[str, str, Callable[[], bytes | str] | None], ...] = (
        ("CSV", "csv", lambda: csv(frame())),
        ("Parquet", "parquet", (lambda: parquet(frame())) if with_parquet else None),
        ("LaTeX", "tex", latex),
        ("JSON", "json", json),
    )
    with st.container(horizontal=True):
        for kind, ending, make in formats:
            if make is not None:
                button(f"{title} ({kind})" if title else kind, make, f"{name}.{ending}", key=f"{key}{name}.{ending}")


def parquet(frame: pd.DataFrame) -> bytes:
    """A Parquet file with all values and types."""
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    return buffer.getvalue()

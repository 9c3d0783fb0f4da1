"""A study's tables, and its published and measured numbers, as data frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pandas as pd

from isoviz.studies.result import Published, Table

NUMBERS: Final = ("Printed", "Measured", "Difference")
DIFFERS: Final = "Differs from the paper"
"""Columns of `comparison`; the last one only if a number differs."""


def as_frame(table: Table) -> pd.DataFrame:
    """A table's rows; columns that mix words and numbers are text."""
    lines = table.lines()
    columns = {}
    for index, name in enumerate(table.header):
        cells = [row[index] for row in table.rows]
        is_text = [isinstance(cell, str) for cell in cells]
        columns[name] = [line[index] for line in lines] if any(is_text) and not all(is_text) else cells
    return pd.DataFrame(columns, columns=table.header)


def comparison(numbers: Sequence[Published]) -> pd.DataFrame | None:
    """Each published number, ours and the difference; None without published numbers."""
    if not numbers:
        return None
    lines = [
        {
            "What": number.what,
            "Printed": number.published,
            "Measured": number.reproduced,
            "Difference": None if number.reproduced is None else number.reproduced - number.published,
            "In the paper": number.where,
            DIFFERS: number.differs,
        }
        for number in numbers
    ]
    frame = pd.DataFrame(lines)
    return frame if frame[DIFFERS].any() else frame.drop(columns=DIFFERS)

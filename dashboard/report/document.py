"""Blocks of a report, for all file formats. No Streamlit here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import pandas as pd
import plotly.graph_objects as go

from isoviz.formatting import decimals, number


@dataclass(frozen=True)
class Heading:
    """Heading of a section."""

    text: str


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of plain text; warnings are highlighted."""

    text: str
    kind: Literal["plain", "note", "warning"] = "plain"


@dataclass(frozen=True)
class Points:
    """A list of sentences."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Numbers:
    """A table. Text is unchanged, numbers are formatted by `rows_of`, missing cells are empty.

    Attributes:
        places: heading → decimals of its numbers.
    """

    title: str
    frame: pd.DataFrame
    notes: tuple[str, ...] = ()
    places: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Picture:
    """A figure with alternative text."""

    title: str
    figure: go.Figure
    words: str


@dataclass(frozen=True)
class Code:
    """Text to copy: a command, BibTeX."""

    title: str
    text: str


Block: TypeAlias = Heading | Paragraph | Points | Numbers | Picture | Code


@dataclass(frozen=True)
class Document:
    """A report.

    Attributes:
        title: title, also used in the file's name.
        about: one line on content, date and version.
        blocks: the content.
    """

    title: str
    about: str
    blocks: tuple[Block, ...] = field(default=())

    @property
    def pictures(self) -> list[Picture]:
        """All figures, in order."""
        return [block for block in self.blocks if isinstance(block, Picture)]


def rows_of(table: Numbers) -> list[list[str]]:
    """A table's cells as text: empty if missing, counts in full, other numbers with four digits or the column's `places`."""
    places = [table.places.get(str(name)) for name in table.frame.columns]
    lines = table.frame.to_numpy(dtype=object)
    return [[_cell(value, digits) for value, digits in zip(line, places, strict=True)] for line in lines]


def _cell(value: object, places: int | None) -> str:
    if value is None or (isinstance(value, float) and value != value) or value is pd.NA:
        return ""
    if isinstance(value, float):
        return number(value) if places is None else decimals(value, places)
    return str(value)

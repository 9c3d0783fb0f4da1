"""The parts of a report, for every file format. No Streamlit here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import pandas as pd
import plotly.graph_objects as go


@dataclass(frozen=True)
class Heading:
    """Of a part of the report."""

    text: str


@dataclass(frozen=True)
class Words:
    """A paragraph of plain text; a warning stands out."""

    text: str
    kind: Literal["plain", "note", "warning"] = "plain"


@dataclass(frozen=True)
class Points:
    """Sentences, one below the other."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Numbers:
    """A table. Text is shown as it is, numbers as `rows_of` says, missing cells are empty.

    Attributes:
        places: heading → decimals of its numbers.
    """

    title: str
    frame: pd.DataFrame
    notes: tuple[str, ...] = ()
    places: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Picture:
    """A figure, and what it shows in a sentence, for those who do not see it."""

    title: str
    figure: go.Figure
    words: str


@dataclass(frozen=True)
class Code:
    """Something to copy: a command, BibTeX."""

    title: str
    text: str


Block: TypeAlias = Heading | Words | Points | Numbers | Picture | Code


@dataclass(frozen=True)
class Document:
    """A report.

    Attributes:
        title: at its top, and in its file's name.
        about: one line: what it is of, when, made by what.
        blocks: its content, in order.
    """

    title: str
    about: str
    blocks: tuple[Block, ...] = field(default=())

    @property
    def pictures(self) -> list[Picture]:
        """All figures, in order."""
        return [block for block in self.blocks if isinstance(block, Picture)]


def rows_of(table: Numbers) -> list[list[str]]:
    """A table's cells as text: nothing for what is missing, four digits of other numbers than counts unless its column has `places`."""
    places = [table.places.get(str(name)) for name in table.frame.columns]
    lines = table.frame.to_numpy(dtype=object)
    return [[_cell(value, digits) for value, digits in zip(line, places, strict=True)] for line in lines]


def _cell(value: object, places: int | None) -> str:
    if value is None or (isinstance(value, float) and value != value) or value is pd.NA:
        return ""
    if isinstance(value, float):
        return (f"{value:.4g}" if places is None else f"{value:z.{places}f}").replace("-", "−")
    return str(value)

"""Blocks of a report, for all file formats. No Streamlit here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

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
    """A table. Text is unchanged, missing cells are empty.

    Attributes:
        places: heading → decimals of its numbers.
    """

    title: str
    frame: pd.DataFrame
    notes: tuple[str, ...] = ()
    places: Mapping[str, int] = field(default_factory=dict)

    @property
    def header(self) -> list[str]:
        return [str(name) for name in self.frame.columns]

    def cells(self) -> list[list[tuple[str, bool]]]:
        """Each cell as text, and whether it is a number: counts in full, others with four digits or the column's `places`."""
        places = [self.places.get(name) for name in self.header]
        lines = self.frame.to_numpy(dtype=object)
        return [[_cell(value, digits) for value, digits in zip(line, places, strict=True)] for line in lines]


def _cell(value: object, places: int | None) -> tuple[str, bool]:
    is_number = isinstance(value, (int, float))
    if value is None or value is pd.NA or value != value:
        return "", is_number
    if isinstance(value, float):
        return number(value) if places is None else decimals(value, places), True
    return str(value), is_number


@dataclass(frozen=True)
class Picture:
    """A figure with alternative text."""

    title: str
    figure: go.Figure
    words: str

    @property
    def height(self) -> int:
        """In pixels."""
        return int(self.figure.layout.height or 420)

    def spec(self) -> dict[str, Any]:
        """For plotly.js, which adds its own template."""
        spec: dict[str, Any] = self.figure.to_plotly_json()
        spec["layout"].pop("template", None)
        return spec


@dataclass(frozen=True)
class Matrix:
    """A clustered |ρ|, drawn by the app's component, with what that needs."""

    title: str
    inside: Mapping[str, str]


@dataclass(frozen=True)
class Code:
    """Text to copy: a command, BibTeX."""

    title: str
    text: str


Block: TypeAlias = Heading | Paragraph | Points | Numbers | Picture | Matrix | Code


@dataclass(frozen=True)
class Document:
    """A report.

    Attributes:
        title: title, also used in the file's name.
        about: one line on content, date and version.
        blocks: the content.
        inside: what the file tells the app in which it is opened: `address`, which restores the page; with its vectors also what
            `isoviz.vectors.embedded` returns, and `transforms`, which the page's own engine begins with.
    """

    title: str
    about: str
    blocks: tuple[Block, ...] = ()
    inside: Mapping[str, Any] = field(default_factory=dict)

    @property
    def pictures(self) -> list[Picture]:
        """All figures, in order."""
        return [block for block in self.blocks if isinstance(block, Picture)]

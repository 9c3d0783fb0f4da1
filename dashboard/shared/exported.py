"""What the current page shows, noted as it is drawn, so that a visitor can export it as one file (`dashboard/export`).

A fragment that runs again replaces its own entries, which have the same keys; `dashboard/app.py` begins anew with each visit of a page.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import streamlit as st

from dashboard.shared.downloads import Table
from dashboard.shared.explanations import Explanation
from isoviz.vectors.sets import VectorSet

_KEY: Final = "shown_on_this_page"


@dataclass(frozen=True)
class ExportedFigure:
    """A figure as plotly's JSON, with its alternative text.

    Attributes:
        of_rows: its marks are rows, and show their texts.
    """

    title: str
    spec: str
    words: str
    notes: tuple[str, ...] = ()
    explanation: Explanation | None = None
    of_rows: bool = False


@dataclass(frozen=True)
class ExportedMatrix:
    """A clustered |ρ| in words; `make` gives what its component needs where there is no server."""

    words: str
    make: Callable[[], Mapping[str, str]]


@dataclass(frozen=True)
class ExportedVectors:
    """The vectors that the page is about, for a file that contains them.

    Attributes:
        transforms: those of the page, as a page without a server has them; None if it lacks one.
    """

    vectors: VectorSet
    transforms: list[dict[str, Any]] | None = field(default_factory=list)


@dataclass(frozen=True)
class ExportedTable:
    """A table, or what makes it. Text is unchanged, missing cells are empty.

    Attributes:
        places: heading → decimals of its numbers; others have four digits.
        private: it shows texts of rows, which a file has only on request.
    """

    title: str
    table: Table
    notes: tuple[str, ...] = ()
    places: Mapping[str, int] = field(default_factory=dict)
    private: bool = False


@dataclass(frozen=True)
class ExportedSentences:
    """A list of sentences."""

    title: str
    lines: tuple[str, ...]


Entry: TypeAlias = ExportedFigure | ExportedMatrix | ExportedTable | ExportedSentences | ExportedVectors


def begin() -> None:
    """Forget the last page."""
    st.session_state[_KEY] = {}


def note(key: str, entry: Entry) -> None:
    """Add what is drawn under this key, or replace it."""
    entries: dict[str, Any] = st.session_state.get(_KEY, {})
    entries[key] = entry


def entries() -> Collection[Entry]:
    """What is on the page, in the order in which it was first drawn; it grows until the page is complete."""
    found: dict[str, Entry] = st.session_state.get(_KEY, {})
    return found.values()

"""What the current page shows, noted as it is drawn, so that a visitor can save it as one file (`dashboard/report/saved_page.py`).

A fragment that runs again replaces its own entries, which have the same keys; `dashboard/app.py` begins anew with each visit of a page.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

import streamlit as st

from dashboard.shared.downloads import Table
from dashboard.shared.explanations import Explanation

_KEY: Final = "shown_on_this_page"


@dataclass(frozen=True)
class ShownFigure:
    """A figure as plotly's JSON, with its alternative text."""

    title: str
    spec: str
    words: str
    notes: tuple[str, ...] = ()
    explanation: Explanation | None = None


@dataclass(frozen=True)
class ShownTable:
    """A table, or what makes it."""

    title: str
    table: Table
    notes: tuple[str, ...] = ()


def begin() -> None:
    """Forget the last page."""
    st.session_state[_KEY] = {}


def note(key: str, entry: ShownFigure | ShownTable) -> None:
    """Add what is drawn under this key, or replace it."""
    entries: dict[str, Any] = st.session_state.get(_KEY, {})
    entries[key] = entry


def entries() -> Collection[ShownFigure | ShownTable]:
    """What is on the page, in the order in which it was first drawn; it grows until the page is complete."""
    found: dict[str, ShownFigure | ShownTable] = st.session_state.get(_KEY, {})
    return found.values()

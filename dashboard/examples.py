"""The examples on screen: one switch shows or hides them for a visitor, in the address as `?examples=false`."""

from __future__ import annotations

from typing import Final

import streamlit as st

from isoviz.runs import examples
from isoviz.runs.rows import RunRow

KEY: Final = "examples"
"""Of the switch, and the query parameter."""
BADGE: Final = ":gray-badge[example]"


def shown() -> bool:
    """Whether this visitor sees the examples."""
    return bool(st.session_state.get(KEY, True))


def switch() -> None:
    """In the sidebar of every page; nothing where there are no examples."""
    if examples.opened() is None:
        return
    st.sidebar.toggle(
        "Show examples",
        value=True,
        key=KEY,
        bind="query-params",
        help="Recorded runs that ship with IsoViz. Your own runs always come first, and lists never mix the two.",
    )


def hide_button(key: str) -> None:
    """The same switch where the examples are; one press."""
    st.button(
        "Hide examples", key=key, type="tertiary", icon=":material/visibility_off:", on_click=_hide, help="The sidebar brings them back."
    )


def _hide() -> None:
    st.session_state[KEY] = False


def badge(run: RunRow) -> str:
    """What marks an example beside its status; empty for any other run."""
    return f" {BADGE}" if examples.is_example(run.id) else ""


def where_recorded() -> str:
    """`Recorded 2026-11-22 with IsoViz 0.1.0 on 2 cores, …`."""
    shipped = examples.opened()
    if shipped is None:
        return ""
    about = shipped.about
    return f"Recorded {about['recorded']} with IsoViz {about['isoviz']} on {about['processor']}."

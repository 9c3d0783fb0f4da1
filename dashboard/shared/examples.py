"""The bundled examples: a switch shows or hides them, stored in the address as `?examples=false`."""

from __future__ import annotations

from typing import Final

import streamlit as st

from dashboard.streamlit_private import session_id
from isoviz.demo import EXAMPLE
from isoviz.exploring import results
from isoviz.exploring.request import ViewRequest
from isoviz.runs import examples
from isoviz.runs.rows import RunRow

KEY: Final = "examples"
"""Key of the switch, and its query parameter."""
BADGE: Final = ":gray-badge[example]"


def shown() -> bool:
    """Whether this visitor sees the examples."""
    # reports written by the command line have no session
    return session_id() is None or bool(st.session_state.get(KEY, True))


def switch() -> None:
    """Switch in every page's sidebar, if there are examples."""
    if examples.opened() is None:
        return
    st.sidebar.toggle(
        "Show examples",
        value=True,
        key=KEY,
        bind="query-params",
        help="Recorded runs that ship with IsoViz. Your own runs always come first, and lists never mix the two.",
    )


def view_of(request: ViewRequest) -> str | None:
    """The key of the example view for a request, if there is one and examples are shown."""
    if not shown() or examples.opened() is None:
        return None
    view = results.find(EXAMPLE + "view")
    return EXAMPLE + "view" if view is not None and ViewRequest(**view.facts["request"]) == request else None


def badge(run: RunRow) -> str:
    """Badge of an example; empty for other runs."""
    return f" {BADGE}" if examples.is_example(run.id) else ""


def where_recorded() -> str:
    """`Recorded 2026-11-22 with IsoViz 0.1.0 on 2 cores, …`."""
    shipped = examples.opened()
    if shipped is None:
        return ""
    about = shipped.about
    return f"Recorded {about['recorded']} with IsoViz {about['isoviz']} on {about['processor']}."

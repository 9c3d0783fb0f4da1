"""The playground on a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from dashboard.components import bundle
from dashboard.components.playground import source

_mount = st.components.v2.component(
    "isoviz_playground",
    html='<div class="ivp-root"></div>',
    css=source.styles() + ".ivp-root { --ivp-top: 3.5rem; }",  # below the bar at the top of a page
    js=source.script() + bundle("playground/mounted.js"),
)


def playground(*, key: str, state: Mapping[str, Any] | None = None, linked: bool = True) -> None:
    """Mount it; everything is computed in the browser, without a rerun.

    Args:
        state: any part of a state (state.js) to start from.
        linked: whether the address holds its state, and starts it; one playground of a page at most.
    """
    _mount(key=key, data={"words": source.words(), "state": dict(state or {}), "linked": linked})

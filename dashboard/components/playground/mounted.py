"""The playground on a page."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from dashboard.components import bundle
from dashboard.components.playground import responses, source

_mount = st.components.v2.component(
    "isoviz_playground",
    html='<div class="ivp-root"></div>',
    css=source.styles() + ".ivp-root { --ivp-top: 3.5rem; }",  # below the bar at the top of a page
    js=source.script() + bundle("playground/mounted.js"),
)


def playground(*, key: str, state: Mapping[str, Any] | None = None, measures: Sequence[str] | None = None) -> None:
    """Mount the playground, which computes everything in the browser without reruns.

    Args:
        state: initial state, complete or partial (state.js).
        measures: slugs of the measures to show until the visitor asks for all; None for all.
    """
    _mount(key=key, data={"words": source.words(), "state": dict(state or {}), "measures": measures})


def responses_table() -> None:
    """Mount "Which measure sees what"; its links move the page's playground."""
    _mount_responses()(key="responses")


@functools.cache
def _mount_responses() -> Any:
    return st.components.v2.component("isoviz_responses", html=responses.table(), css=responses.styles())

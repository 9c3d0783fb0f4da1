"""The playground on a page."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st

from dashboard.components import bundle
from dashboard.components.playground import responses, source

_mount = st.components.v2.component(
    "isoviz_playground",
    html='<div class="ivp-root"></div>',
    css=source.styles() + ".ivp-root { --ivp-top: 3.5rem; }",  # below the bar at the top of a page
    js=source.script() + bundle("playground/mounted.js"),
)
_mount_descent = st.components.v2.component(
    "isoviz_descent",
    html='<div class="ivp-root"></div>',
    css=source.styles(),
    js=bundle("look.js", *(f"playground/{name}.js" for name in ("cloud_view", "penalties", "descent"))),
)
DESCENTS = {"istar": "I-STAR's penalty with ζ = 0", "cosreg": "CosReg's penalty"}
"""Methods whose penalty alone moves a cloud → name of the penalty. Other methods train a map or act on the output layer."""


def playground(
    *, key: str, state: Mapping[str, Any] | None = None, measures: Sequence[str] | None = None, linked: bool = True
) -> None:
    """Mount the playground, which computes everything in the browser without reruns.

    Args:
        state: initial state, complete or partial (state.js).
        measures: slugs of the measures to show until the visitor asks for all; None for all.
        linked: whether the address holds the state; for at most one playground per page.
    """
    _mount(key=key, data={"words": source.words(), "state": dict(state or {}), "measures": measures, "linked": linked})


def responses_table() -> None:
    """Mount "Which measure sees what"; its links move the page's playground."""
    _mount_responses()(key="responses")


@functools.cache
def _mount_responses() -> Any:
    return st.components.v2.component("isoviz_responses", html=responses.table(), css=responses.styles())


def small_cloud() -> np.ndarray:
    """300 points in 3 dimensions, stretched and away from the origin."""
    points = np.random.default_rng(0).normal(size=(300, 3)) * (2.0, 0.9, 0.4) + (1.5, 1.0, 0.5)
    return points.round(4)


def descent(slug: str, *, key: str) -> None:
    """Mount a small cloud moved by gradient steps on the penalty of a method in `DESCENTS`."""
    points = small_cloud()
    _mount_descent(key=key, data={"slug": slug, "points": points.ravel().tolist(), "d": points.shape[1]})

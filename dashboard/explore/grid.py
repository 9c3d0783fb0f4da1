"""The grid of Explore's four pictures, each of which enlarges in place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal

import streamlit as st

from dashboard.explore.form import PREFIX
from dashboard.shared import explanations
from dashboard.shared.explanations import Explanation

Height = int | Literal["content"]
LARGE: Final = PREFIX + "large"
"""Query parameter: name of the enlarged picture."""
_HEIGHTS: Final = (236, 480)
"""Heights of a picture in pixels: in the grid, so that two rows fit on a screen 900 pixels high, and enlarged."""


def is_large(name: str) -> bool:
    """Whether this picture is enlarged."""
    return st.query_params.get(LARGE) == name


def height(name: str) -> int:
    """Height of a picture in pixels."""
    return _HEIGHTS[is_large(name)]


@contextmanager
def cell(name: str, title: str, explanation: Explanation | None = None) -> Iterator[None]:
    """A picture's place in the grid, with its title and the button that enlarges it. `app.css` hides `details` of small pictures."""
    large = is_large(name)
    with st.container(key=f"{PREFIX}{'large' if large else 'cell'}_{name}", gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
            st.markdown(f"**{title}**", width="content")
            st.button(
                "Smaller" if large else "Enlarge",
                key=f"{PREFIX}enlarge_{name}",
                icon=":material/close_fullscreen:" if large else ":material/open_in_full:",
                type="tertiary",
                help=None if large else f"{title}, larger and with its settings",
                on_click=_enlarge,
                args=("" if large else name,),
            )
            if explanation is not None:
                explanations.show(explanation)
        yield


@contextmanager
def details(name: str) -> Iterator[None]:
    """What only the enlarged picture shows; its fields keep their values while they are hidden."""
    height: Height = "content" if is_large(name.partition("_")[0]) else 1  # hides them until the styles are there
    with st.container(key=f"{PREFIX}details_{name}", height=height, border=False):
        yield


def _enlarge(name: str) -> None:
    st.query_params.pop(LARGE, None)
    if name:
        st.query_params[LARGE] = name

"""Parts of a page with a fixed position, and parts that refresh while something runs.

An element that appears or disappears shifts all elements after it. Streamlit's frontend then recreates the shifted fields, and if
the old field is removed after the new one appears, as on a busy machine, the field no longer writes its value into the address. A
separate container keeps such a shift inside the part.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import streamlit as st

P = ParamSpec("P")
R = TypeVar("R")

TICK = 2.0
"""Seconds between refreshes of what runs and waits."""


def stable(draw: Callable[P, R]) -> Callable[P, R]:
    """Decorator: draw a part of a page in a separate container."""

    @functools.wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> R:
        with st.container():
            return draw(*args, **kwargs)

    return drawn


def while_busy(busy: Callable[[], bool], draw: Callable[[], None]) -> None:
    """Draw a part of a page, again every few seconds while `busy`, and the whole page once it no longer is."""
    was_busy = busy()

    def drawn() -> None:
        if was_busy and not busy():
            st.rerun()
        draw()

    st.fragment(drawn, run_every=TICK if was_busy else None)()

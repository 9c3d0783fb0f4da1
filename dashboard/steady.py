"""Parts of a page with a fixed position.

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


def steady(draw: Callable[P, R]) -> Callable[P, R]:
    """Decorator: draw a part of a page in a separate container."""

    @functools.wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> R:
        with st.container():
            return draw(*args, **kwargs)

    return drawn

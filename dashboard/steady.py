"""Parts of a page that keep their place on it.

What stands after something that comes and goes moves by one when it does. For Streamlit's browser side that is another element:
a field that moves is made anew, and where the old one goes later than the new one comes, as on a busy machine, the field no longer
writes what is chosen into the address. In a container of its own a part moves nothing but itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import streamlit as st

P = ParamSpec("P")
R = TypeVar("R")


def steady(draw: Callable[P, R]) -> Callable[P, R]:
    """Draw a part of a page in a container of its own, whatever it draws, or nothing."""

    @functools.wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> R:
        with st.container():
            return draw(*args, **kwargs)

    return drawn

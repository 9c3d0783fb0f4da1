"""Waiting for what the scheduler computes, in short steps, so that a visitor's next move ends the waiting."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from concurrent.futures import wait
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.whatif.form import PREFIX
from isoviz.errors import IsoVizError
from isoviz.whatif.images import NotReadyError
from isoviz.whatif.scheduler import SCHEDULER, Rank

LOOK = 0.1
"""Seconds between chances for a visitor's next move to end the waiting for this one; a result ends it at once."""

UNNOTICED = 0.25
"""Seconds before the page says that something is pending."""

PATIENCE = 60.0
"""Seconds for which a visit waits for what follows; after that it says how to look again."""

VIEWER = PREFIX + "viewer"
"""Whose question it is, for the scheduler."""


def wait_for(
    work: Callable[[], Any],
    rank: Rank,
    key: str,
    place: DeltaGenerator,
    until: float,
    *,
    what: str | Callable[[], str],
    lead: str = "",
) -> Any:
    """What the scheduler computes; None if it takes too long. Each look lets a visitor's next move through.

    Args:
        key: of the question; those who ask with the same key share one answer.
        place: a placeholder that says what is pending.
        what: is pending; a function says how far it is.
        lead: what is known already, in Markdown; it stays.
    """
    viewer = st.session_state.setdefault(VIEWER, secrets.token_hex(8))
    began = time.monotonic()
    future = SCHEDULER.ask(viewer, key, work, rank)
    drawn = ""
    while not future.done():
        wait([future], LOOK)
        _ = st.session_state[VIEWER]  # here Streamlit ends this run if the visitor has moved something
        if future.cancelled():  # this visitor's other tab asked for something else
            future = SCHEDULER.ask(viewer, key, work, rank)
        seconds = time.monotonic() - began
        if future.done() or seconds < UNNOTICED:
            continue
        text = f"pending: {what if isinstance(what, str) else what()}"
        text += f" · {seconds:.0f} s" if seconds >= 1 else ""
        if text != drawn:
            place.markdown(f"{lead} :gray[:material/hourglass_top: {text}]")
            drawn = text
        if time.monotonic() > until:
            with place.container():
                st.markdown(lead)
                look_again(st.container())
            return None
    error = future.exception()
    if isinstance(error, (IsoVizError, NotReadyError)):
        raise error
    if error is not None:
        raise RuntimeError(f"{type(error).__name__} while computing") from error
    return future.result()


def look_again(place: DeltaGenerator) -> None:
    """Say that it goes on, and offer to look."""
    place.caption("Still computing. Check again in a while.")
    place.button("Look again", key=PREFIX + "look_again", icon=":material/refresh:")

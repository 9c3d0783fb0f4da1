"""Waiting for the scheduler and for an IsoLayer in short steps, so that the visitor's next move interrupts the wait."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.shared import job_progress, resources
from dashboard.streamlit_private import StopException, session_id, session_is_open
from dashboard.whatif.form import PREFIX
from isoviz.errors import IsoVizError
from isoviz.whatif import chains
from isoviz.whatif.chains import Step
from isoviz.whatif.engine import LAYER, Answer, WhatIf
from isoviz.whatif.images import NotReadyError
from isoviz.whatif.request import LayerRequest
from isoviz.whatif.scheduler import SCHEDULER, Rank

LOOK = 0.1
"""Seconds between points at which the visitor's next move can interrupt; a result ends the wait immediately."""

UNNOTICED = 0.25
"""Seconds before the page shows `pending`."""

_WAITED = PREFIX + "layer_waited"
"""Session key: request of the layer that this visitor waits for."""
VIEWER = PREFIX + "viewer"
"""Session key: this viewer's id for the scheduler."""


def wait_for(
    work: Callable[[], Any],
    rank: Rank,
    key: str,
    place: DeltaGenerator,
    *,
    what: str | Callable[[], str],
    lead: str = "",
) -> Any:
    """The scheduler's result. The visitor's next move can interrupt the wait.

    Args:
        key: key of the question; viewers with the same key share one result.
        place: placeholder for the pending message.
        what: the pending result, or a function that returns its progress.
        lead: Markdown shown before the pending message.
    """
    viewer = st.session_state.setdefault(VIEWER, secrets.token_hex(8))
    session = session_id() or ""
    began = time.monotonic()
    future = SCHEDULER.submit(viewer, key, work, rank, is_here=lambda: session_is_open(session))
    drawn = ""
    while not future.done():
        wait([future], LOOK)
        _ = st.session_state[VIEWER]  # Streamlit interrupts this run here if the visitor has moved something
        if future.cancelled():  # the tab is closed, or asks again once it is connected again
            raise StopException
        seconds = time.monotonic() - began
        if future.done() or seconds < UNNOTICED:
            continue
        text = f"Computing {what if isinstance(what, str) else what()}"
        text += f" · {seconds:.0f} s" if seconds >= 1 else ""
        if text != drawn:
            place.markdown(f"{lead} :gray[:material/hourglass_top: {text}]")
            drawn = text
    error = future.exception()
    if isinstance(error, (IsoVizError, NotReadyError)):
        raise error
    if error is not None:
        raise RuntimeError(f"{type(error).__name__} while computing") from error
    return future.result()


def answers(
    engine: WhatIf,
    steps: Sequence[Step],
    key: str,
    place: DeltaGenerator,
    prepare: Callable[[NotReadyError], bool],
) -> tuple[Answer, Answer] | None:
    """The instant numbers without and with a chain; None if an image cannot be built yet.

    Args:
        key: key of the vectors.
        place: as for `wait_for`.
        prepare: called if an image must be built first; False gives up.
    """
    start, answer = engine.cached_answer(()), engine.cached_answer(steps)
    if start is not None and answer is not None:
        return start, answer
    rank = Rank.MOVE

    def compute() -> tuple[Answer, Answer]:
        build = rank is Rank.BUILD
        return engine.answer((), build=build), engine.answer(steps, build=build)

    while True:
        try:
            question = f"{key}|{rank.name}|{chains.write(steps)}"
            both: tuple[Answer, Answer] | None = wait_for(compute, rank, question, place, what="the numbers")
            return both
        except NotReadyError as error:
            if not prepare(error):
                return None
            rank = Rank.BUILD


def train_layer(request: LayerRequest | None, place: DeltaGenerator) -> bool:
    """Train the IsoLayer that an image needs, if any. False until it is trained: `place` shows its progress, or why it ended."""
    release_previous(request)
    if request is None:
        return True
    with place.container():
        state = job_progress.ask(LAYER, request.as_json(), key=request.key)
        return not job_progress.follow(LAYER, state, "IsoLayer", key=PREFIX + "layer", retry=True)


def release_previous(request: LayerRequest | None) -> None:
    """Release the layer that this visitor no longer waits for: its training stops, and restarts if another visitor waits for it."""
    previous: LayerRequest | None = st.session_state.get(_WAITED)
    if previous is not None and previous != request:
        resources.service().release(LAYER, previous.key)
    st.session_state[_WAITED] = request

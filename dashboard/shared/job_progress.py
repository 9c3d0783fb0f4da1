"""Progress and errors of background jobs, with buttons to stop and retry."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from dashboard.shared import actions, forms, resources, wording
from dashboard.shared.logs import read_tail
from isoviz.errors import AccessError, InputError
from isoviz.jobs import queue
from isoviz.jobs.kinds import JobKind
from isoviz.jobs.queue import JobState

TICK = 0.5
"""Seconds between redraws of the progress while a job runs."""
LOOK = 0.04
"""Seconds between checks of the jobs: looking is much cheaper than a redraw."""


@dataclass(frozen=True)
class WatchedJob:
    """A job that a page waits for.

    Attributes:
        name: title, if a page waits for several jobs; else empty.
        look: returns its state.
        stop: stops it.
        news: returns whether the page has new partial results to show.
    """

    name: str
    look: Callable[[], JobState]
    stop: Callable[[], None]
    news: Callable[[], bool] = lambda: False


def ask(kind: JobKind, request: Mapping[str, Any], inputs: Mapping[str, NDArray[Any]] | None = None) -> JobState:
    """Start a job that needs no button, or return its state; if the visitor may not start it, a state with the reason
    (see `refused`)."""
    try:
        return resources.service().ask_job(kind, request, inputs)
    except AccessError as error:
        return JobState("none", message=str(error), advice=error.advice or "")


def refused(state: JobState) -> bool:
    """Show why a job was not started for this visitor; False if it was not refused."""
    if state.status != "none" or not state.message:
        return False
    st.caption(f":material/block: {wording.plain(f'Not computed yet. {state.message}. {state.advice}')}")
    return True


def watch(
    jobs: Sequence[WatchedJob], *, key: str, patience: float = 0.0, before: Callable[[], None] | None = None
) -> None:
    """Draw the progress of running jobs; reruns the page when a job has partial results or has ended.

    Args:
        key: key of the button that stops all jobs.
        patience: seconds of frequent checks after each redraw of the progress.
        before: called before the rerun.
    """
    st.fragment(_watch, run_every=TICK)(jobs, key, patience, before)


def _watch(jobs: Sequence[WatchedJob], key: str, patience: float, before: Callable[[], None] | None) -> None:
    for job, state in zip(jobs, _states(jobs, before), strict=True):
        name = f"{job.name}: " if job.name else ""
        fraction = state.progress.fraction
        share = f"{100 * fraction:.0f} % · " if state.status == "running" else ""
        st.progress(fraction, text=wording.plain(f"{name}{share}{step(state)} · {wording.duration(state.seconds)}"))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if actions.button("Stop all" if len(jobs) > 1 else "Stop", key=key, icon=":material/stop_circle:"):
            for job in jobs:
                actions.attempt(job.stop)
            _rerun(before)
        st.caption("Continues if you leave this page. The link brings you back to it.")
    until = time.monotonic() + patience
    while time.monotonic() < until:
        time.sleep(LOOK)
        _states(jobs, before)


def step(state: JobState) -> str:
    """Current step of a running job, or what a waiting job waits for."""
    if state.status == "running":
        return state.progress.text
    return f"waiting for {state.ahead} other{'' if state.ahead == 1 else 's'} to finish" if state.ahead else "starting"


def trouble(state: JobState, *, place: DeltaGenerator | None = None) -> None:
    """Show why a job has no result, in `place` or here, with its log if that may help."""
    with place or st.container():
        advice = f" {state.advice}" if state.advice else ""
        forms.show_error(forms.sentence(InputError(state.message, field=state.field)) + advice)
    text = None if state.log is None else read_tail(state.log)
    if text and (state.status == "lost" or state.field is None):
        with st.expander("Log", icon=":material/terminal:"):
            st.code(text, language=None, wrap_lines=True, height=240)


def in_place(kind: JobKind, state: JobState, title: str, *, key: str) -> None:
    """In place of a result that is not there yet: progress, why there is none, or a button to retry; `key` is the button's key."""
    if state.status == "done" or refused(state):
        return
    if state.in_trouble:
        trouble(state)
        retry_button(kind, [state.key], key=key)
        return
    st.progress(state.progress.fraction, text=wording.plain(f"{title}: {step(state)}"))


def retry_button(kind: JobKind, keys: Collection[str], *, key: str) -> None:
    """The button that retries jobs without a result.

    Args:
        keys: keys of the jobs.
        key: key of the button.
    """

    def retry() -> None:
        for failed in keys:
            actions.attempt(resources.service().retry_job, kind, failed)

    actions.button("Retry", key=key, icon=":material/refresh:", on_click=retry)


def _states(jobs: Sequence[WatchedJob], before: Callable[[], None] | None) -> list[JobState]:
    states = [job.look() for job in jobs]
    if any(not state.under_way or job.news() for job, state in zip(jobs, states, strict=True)):
        _rerun(before)
    if any(state.status == "waiting" for state in states):
        queue.dispatch()  # without a running app, nothing else dispatches jobs
    return states


def _rerun(before: Callable[[], None] | None) -> None:
    if before is not None:
        before()
    st.rerun()

"""How far jobs in the background are, why one has no result, and the buttons that stop and retry: the same on every page."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from dashboard import actions, forms, resources, wording
from dashboard.logs import read_tail
from isoviz.errors import AccessError, InputError
from isoviz.jobs import scheduling
from isoviz.jobs.kinds import JobKind
from isoviz.jobs.queue import JobState

TICK = 0.5
"""Seconds between two drawings of the progress. Nothing is drawn while no job runs."""
LOOK = 0.04
"""Seconds between looks at the jobs: a look at a file costs far less than drawing the progress again."""


@dataclass(frozen=True)
class Waited:
    """A job that a page waits for.

    Attributes:
        name: what it is for, where a page waits for several; else empty.
        look: how it stands.
        stop: ends it.
        news: whether the page has something new to show, though the job runs.
    """

    name: str
    look: Callable[[], JobState]
    stop: Callable[[], None]
    news: Callable[[], bool] = lambda: False


def ask(kind: JobKind, request: Mapping[str, Any], inputs: Mapping[str, NDArray[Any]] | None = None) -> JobState:
    """Ask for a job that begins without a button, or look how it stands; where this visitor may not have it started, a state
    that says why (see `refused`)."""
    try:
        return resources.service().ask_job(kind, request, inputs)
    except AccessError as error:
        return JobState("none", message=str(error), advice=error.advice or "")


def refused(state: JobState) -> bool:
    """Say why a job is not computed for this visitor, if that is so."""
    if state.status != "none" or not state.message:
        return False
    st.caption(f":material/block: {wording.plain(f'Not computed yet. {state.message}. {state.advice}')}")
    return True


def watch(jobs: Sequence[Waited], *, key: str, patience: float = 0.0, before: Callable[[], None] | None = None) -> None:
    """Draw the progress of jobs that run; the whole page is drawn anew when one of them has news or has ended.

    Args:
        key: of the button that ends all of them.
        patience: seconds for which news is looked for each time that the progress was drawn, closer than it is drawn.
        before: called before the page is drawn anew.
    """
    st.fragment(_watch, run_every=TICK)(jobs, key, patience, before)


def _watch(jobs: Sequence[Waited], key: str, patience: float, before: Callable[[], None] | None) -> None:
    for job, state in zip(jobs, _states(jobs, before), strict=True):
        name = f"{job.name}: " if job.name else ""
        fraction = state.progress.fraction
        share = f"{100 * fraction:.0f} % · " if state.status == "running" else ""
        st.progress(fraction, text=wording.plain(f"{name}{share}{step(state)} · {wording.duration(state.seconds)}"))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if actions.button("Stop all" if len(jobs) > 1 else "Stop", key=key, icon=":material/stop_circle:"):
            for job in jobs:
                actions.attempt(job.stop)
            _again(before)
        st.caption("Continues if you leave this page. The link brings you back to it.")
    until = time.monotonic() + patience
    while time.monotonic() < until:
        time.sleep(LOOK)
        _states(jobs, before)


def step(state: JobState) -> str:
    """What a job that is on its way is doing, or waiting for."""
    if state.status == "running":
        return state.progress.text
    return f"waiting for {state.ahead} other{'' if state.ahead == 1 else 's'} to finish" if state.ahead else "starting"


def trouble(state: JobState, *, place: DeltaGenerator | None = None) -> None:
    """Why a job has no result, in `place` or here; below, its log where that may say more."""
    with place or st.container():
        advice = f" {state.advice}" if state.advice else ""
        forms.error_beside(forms.sentence(InputError(state.message, field=state.field)) + advice)
    text = None if state.log is None else read_tail(state.log)
    if text and (state.status == "lost" or state.field is None):
        with st.expander("Log", icon=":material/terminal:"):
            st.code(text, language=None, wrap_lines=True, height=240)


def retry_button(kind: JobKind, keys: Collection[str], *, key: str) -> None:
    """The button that asks again for jobs that have no result.

    Args:
        keys: of the jobs.
        key: of the button.
    """

    def retry() -> None:
        for failed in keys:
            actions.attempt(resources.service().retry_job, kind, failed)

    actions.button("Retry", key=key, icon=":material/refresh:", on_click=retry)


def _states(jobs: Sequence[Waited], before: Callable[[], None] | None) -> list[JobState]:
    states = [job.look() for job in jobs]
    if any(not state.under_way or job.news() for job, state in zip(jobs, states, strict=True)):
        _again(before)
    if any(state.status == "waiting" for state in states):
        scheduling.dispatch()  # where no app serves, no one else does
    return states


def _again(before: Callable[[], None] | None) -> None:
    if before is not None:
        before()
    st.rerun()

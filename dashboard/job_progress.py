"""How far jobs in the background are, and the one button that ends them: the same wherever a page waits for some."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st

from dashboard import wording
from isoviz.exploring.jobs import State

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
    look: Callable[[], State]
    stop: Callable[[], None]
    news: Callable[[], bool] = lambda: False


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
        told = state.progress
        name = f"{job.name}: " if job.name else ""
        words = f"{name}{100 * told.fraction:.0f} % · {told.text} · {wording.duration(state.seconds)}"
        st.progress(told.fraction, text=wording.plain(words))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if st.button("Stop all" if len(jobs) > 1 else "Stop", key=key, icon=":material/stop_circle:"):
            for job in jobs:
                job.stop()
            _again(before)
        st.caption("Goes on if you leave this page; its address shows it again.")
    until = time.monotonic() + patience
    while time.monotonic() < until:
        time.sleep(LOOK)
        _states(jobs, before)


def _states(jobs: Sequence[Waited], before: Callable[[], None] | None) -> list[State]:
    states = [job.look() for job in jobs]
    if any(state.kind != "running" or job.news() for job, state in zip(jobs, states, strict=True)):
        _again(before)
    return states


def _again(before: Callable[[], None] | None) -> None:
    if before is not None:
        before()
    st.rerun()

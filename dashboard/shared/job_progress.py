"""Progress, errors and logs of background work, with buttons to stop and retry."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from dashboard.shared import actions, downloads, forms, resources, stable, wording
from isoviz.errors import AccessError, InputError
from isoviz.jobs import queue
from isoviz.jobs.kinds import JobKind
from isoviz.jobs.queue import JobState
from isoviz.runs.execution import LOG
from isoviz.runs.rows import RunRow

TICK = 0.5
"""Seconds between redraws of the progress while a job runs."""
_LOOK_SECONDS = 0.1
"""The same while a page waits for the first results."""


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


def ask(
    kind: JobKind, request: Mapping[str, Any], inputs: Mapping[str, NDArray[Any]] | None = None, key: str = ""
) -> JobState:
    """Start a job that needs no button, or return its state; if the visitor has stopped it or may not start it, a state
    with the reason (see `refused`).

    Args:
        key: the job's key, if it is not of its request's content.
    """
    key = key or queue.content_key(kind, request, inputs)
    state = queue.look(kind, key)
    if state.status != "none":
        _stopped().discard((kind.name, key))  # another visitor has started it again
    elif (kind.name, key) in _stopped():
        return JobState("none", key, message="You stopped it")
    if state.under_way or state.status == "done":
        return state
    try:
        return resources.service().start_job(kind, key, request, inputs, retry=False)
    except AccessError as error:
        return JobState("none", message=str(error), advice=error.advice or "")


def refused(state: JobState) -> bool:
    """Show why a job was not started for this visitor; False if it was not refused."""
    if state.status != "none" or not state.message:
        return False
    st.caption(f":material/block: {wording.plain(f'Not computed yet. {state.message}. {state.advice}'.strip())}")
    return True


def _stopped() -> set[tuple[str, str]]:
    """Kinds and keys of the jobs that this visitor has stopped and `ask` does not start again."""
    stopped: set[tuple[str, str]] = st.session_state.setdefault("stopped_jobs", set())
    return stopped


def follow(kind: JobKind, state: JobState, name: str = "", *, key: str, retry: bool = False) -> bool:
    """Draw the progress of a job, or why it has no result; False if it is done, or was never requested.

    Args:
        name: title of the progress.
        key: key of the button that stops the job.
        retry: offer a button that retries a job without a result.
    """

    def stop() -> None:
        resources.service().stop_job(kind, state.key)
        _stopped().add((kind.name, state.key))

    if state.under_way:
        look = functools.partial(queue.look, kind, state.key)
        watch([WatchedJob(name, look, stop)], key=key)
        return True
    if state.in_trouble:
        trouble(state)
        if retry:
            retry_button(kind, state.key, key=key + "_again")
        return True
    if not refused(state):
        return False
    if (kind.name, state.key) in _stopped():
        start = functools.partial(_stopped().discard, (kind.name, state.key))
        st.button("Start again", key=key + "_start", icon=":material/refresh:", on_click=start)
    return True


def watch(jobs: Sequence[WatchedJob], *, key: str, before: Callable[[], None] | None = None) -> None:
    """Draw the progress of running jobs; reruns the page when a job has partial results or has ended.

    Args:
        key: key of the button that stops all jobs.
        before: called before the rerun.
    """
    st.fragment(_watch, run_every=TICK)(jobs, key, before)


def await_news(
    jobs: Sequence[WatchedJob], seconds: float, place: DeltaGenerator, *, before: Callable[[], None] | None = None
) -> None:
    """Wait until all jobs have partial results, at most `seconds`; reruns the page when one ends. A page that draws quick results in
    the same run shows them sooner than one that is run again for them.

    Args:
        place: an empty element for the progress, which the page has in every run.
        before: called before the rerun.
    """
    end, drawn = time.monotonic() + seconds, (-1.0, "")
    while not all(job.news() for job in jobs) and time.monotonic() < end:
        states = [job.look() for job in jobs]
        if not all(state.under_way for state in states):
            _rerun(before)
        now = states[0].progress.fraction, wording.plain(step(states[0]).capitalize())
        if now != drawn:  # each drawing costs the browser a moment
            place.progress(now[0], text=now[1])
        drawn = now
        _ = "stopped_jobs" in st.session_state  # here Streamlit interrupts this run for the visitor's next move
        time.sleep(_LOOK_SECONDS)
    place.empty()


def _watch(jobs: Sequence[WatchedJob], key: str, before: Callable[[], None] | None) -> None:
    states = [job.look() for job in jobs]
    if any(not state.under_way or job.news() for job, state in zip(jobs, states, strict=True)):
        _rerun(before)
    if any(state.status == "waiting" for state in states):
        queue.dispatch()  # without a running app, nothing else dispatches jobs
    for job, state in zip(jobs, states, strict=True):
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


def offer_file(
    kind: JobKind,
    request: Mapping[str, Any],
    inputs: Mapping[str, NDArray[Any]] | None = None,
    *,
    label: str,
    build: str,
    file: str,
    key: str,
    about: Callable[[Mapping[str, Any]], str] = lambda facts: "",
) -> None:
    """A zip archive built in the background: the button that starts its job, then the progress, then the download button.

    Args:
        kind, request, inputs: the job; its result holds the archive's bytes in the array `archive`.
        label, build: labels of the download button and of the button that starts the job.
        key: prefix of the buttons' keys.
        about: facts of the result → help of the download button.
    """
    state = queue.look(kind, queue.content_key(kind, request, inputs))
    result = state.result
    if state.status == "done" and result is not None:
        help_text = about(result.facts) or None
        downloads.button(label, lambda: result.arrays["archive"].tobytes(), file, key=key, help=help_text)
    elif not follow(kind, state, label, key=key + "_stop", retry=True) and (
        actions.button(build, key=key + "_build", icon=":material/deployed_code:")
        and actions.perform(resources.service().start_job, kind, state.key, request, inputs)
    ):
        st.rerun()


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
        retry_button(kind, state.key, key=key)
        return
    st.progress(state.progress.fraction, text=wording.plain(f"{title}: {step(state)}"))


def retry_button(kind: JobKind, job: str, *, key: str) -> None:
    """The button that retries a job without a result."""
    actions.button(
        "Retry",
        key=key,
        icon=":material/refresh:",
        on_click=actions.attempt,
        args=(resources.service().retry_job, kind, job),
    )


def _rerun(before: Callable[[], None] | None) -> None:
    if before is not None:
        before()
    st.rerun()


# ------------------------------------------------------------------------------------------------------ logs

LOG_BYTES = 20_000
"""Bytes shown of a log."""


def log_panel(run: RunRow) -> None:
    """An expander with the end of a run's log, read only while open."""
    with st.expander("Log", icon=":material/terminal:", key="log", on_change="rerun") as expander:
        if expander.open:
            st.fragment(_tail, run_every=stable.TICK if run.status == "running" else None)(run.id)


def _tail(run_id: str) -> None:
    path = resources.library().folder_of(run_id) / LOG
    text = read_tail(path)
    if text is None:
        st.caption("The log is empty.")
        return
    st.code(text, language=None, wrap_lines=True, height=320)
    st.caption(f"The end of {LOG} in the run's folder, {path.stat().st_size:,} bytes in all.")


def read_tail(path: Path) -> str | None:
    """The last `LOG_BYTES` bytes as text, starting at a line. Progress bars show only their last state."""
    try:
        with path.open("rb") as file:
            length = file.seek(0, os.SEEK_END)
            file.seek(max(0, length - LOG_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return None
    if length > LOG_BYTES:
        text = text[text.find("\n") + 1 :]
    lines = [line.rsplit("\r", 1)[-1] for line in text.replace("\r\n", "\n").split("\n")]
    return "\n".join(lines).strip("\n") or None

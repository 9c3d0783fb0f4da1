"""An archive that is built in the background: the button that starts it, its progress, then the button that downloads it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

import streamlit as st

from dashboard import actions, job_progress, resources
from dashboard.job_progress import Waited
from isoviz.jobs import queue
from isoviz.jobs.kinds import JobKind

ZIP: Final = "application/zip"
ARCHIVE: Final = "archive"
"""The array of a result that holds the bytes of a zip archive."""


def offer(
    kind: JobKind,
    request: Mapping[str, Any],
    inputs: Mapping[str, Any] | None = None,
    *,
    label: str,
    build: str,
    file: str,
    key: str,
    about: Callable[[Mapping[str, Any]], str] = lambda facts: "",
) -> None:
    """Draw whichever button is next.

    Args:
        kind, request, inputs: of the job; its result holds the array `ARCHIVE`.
        label: of the download.
        build: of the button that starts the job.
        file: its name.
        key: of the buttons.
        about: the facts of the result → help of the download.
    """
    job = queue.content_key(kind, request, inputs)
    state = queue.look(kind, job)
    if state.status == "done" and state.result is not None:
        st.download_button(
            label,
            functools.partial(_archive, kind, job),
            file,
            ZIP,
            key=key,
            icon=":material/download:",
            on_click="ignore",
            help=about(state.result.facts) or None,
        )
    elif state.under_way:
        stop = functools.partial(resources.service().stop_job, kind, job)
        job_progress.watch([Waited("Model", functools.partial(queue.look, kind, job), stop)], key=key + "_stop")
    elif state.in_trouble:
        job_progress.trouble(state)
        job_progress.retry_button(kind, [job], key=key + "_again")
    elif actions.button(build, key=key + "_build", icon=":material/deployed_code:") and actions.done(
        resources.service().ask_job, kind, request, inputs
    ):
        st.rerun()


def _archive(kind: JobKind, key: str) -> bytes:
    result = kind.results.find(key)
    return b"" if result is None else result.arrays[ARCHIVE].tobytes()

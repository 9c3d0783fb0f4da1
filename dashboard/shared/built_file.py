"""An archive built in the background: a button that starts the job, its progress, then the download button."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

import streamlit as st

from dashboard.shared import actions, downloads, job_progress, resources
from dashboard.shared.job_progress import WatchedJob
from isoviz.jobs import queue
from isoviz.jobs.kinds import JobKind

ARCHIVE: Final = "archive"
"""Name of the result array that holds a zip archive's bytes."""


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
    """Draw the build button, the progress or the download button.

    Args:
        kind, request, inputs: the job; its result holds the array `ARCHIVE`.
        label: label of the download button.
        build: label of the button that starts the job.
        file: name of the file.
        key: prefix of the buttons' keys.
        about: facts of the result → help of the download button.
    """
    job = queue.content_key(kind, request, inputs)
    state = queue.look(kind, job)
    if state.status == "done" and state.result is not None:
        make = functools.partial(_archive, kind, job)
        downloads.button(label, make, file, key=key, help=about(state.result.facts) or None)
    elif state.under_way:
        stop = functools.partial(resources.service().stop_job, kind, job)
        job_progress.watch([WatchedJob("Model", functools.partial(queue.look, kind, job), stop)], key=key + "_stop")
    elif state.in_trouble:
        job_progress.trouble(state)
        job_progress.retry_button(kind, [job], key=key + "_again")
    elif actions.button(build, key=key + "_build", icon=":material/deployed_code:") and actions.perform(
        resources.service().ask_job, kind, request, inputs
    ):
        st.rerun()


def _archive(kind: JobKind, key: str) -> bytes:
    result = kind.results.find(key)
    return b"" if result is None else result.arrays[ARCHIVE].tobytes()

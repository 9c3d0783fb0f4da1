"""Jobs without a process of their own: in any state, done in this process, or held up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from isoviz.jobs import answering, guarded, queue
from isoviz.jobs.kinds import Job, JobKind, Recent, Report
from isoviz.jobs.queue import JobState, Status


def put_job(
    kind: JobKind,
    key: str,
    status: Status,
    *,
    request: Mapping[str, Any] | None = None,
    inputs: Mapping[str, NDArray[Any]] | None = None,
    **state: Any,
) -> queue._Entry:
    """A job in some state, whatever there was before."""
    entry = queue._Entry(kind, request or {}, inputs, None, JobState(status, key, **state))
    queue._entries[queue._place(kind, key)] = entry
    return entry


def fail_job(kind: JobKind, key: str, message: str, field: str | None = None, advice: str = "") -> queue._Entry:
    """A job that has failed."""
    return put_job(kind, key, "failed", message=message, field=field, advice=advice)


def work_here(
    kind: JobKind,
    key: str,
    request: Mapping[str, Any],
    inputs: Mapping[str, NDArray[Any]] | None = None,
    memory: Recent | None = None,
) -> JobState:
    """Run a job in this process, as its own process would; returns its state."""
    entry = put_job(kind, key, "running", request=request, inputs=inputs)
    entry.keep_inputs()
    failure = answering.work(Job(kind, key, request, Report(), memory or Recent(kind.remembers)))
    entry.clear()
    del queue._entries[queue._place(kind, key)]
    if failure is not None:
        fail_job(kind, key, failure["message"], failure["field"], failure["advice"])
    return queue.look(kind, key)


def ask(kind: JobKind, request: Mapping[str, Any], inputs: Mapping[str, NDArray[Any]] | None = None) -> JobState:
    """Start a job or return its state, as a page does."""
    return queue.start(kind, queue.content_key(kind, request, inputs), request, inputs, retry=False)


def end_readers() -> None:
    """End the readers that wait for another call."""
    while guarded._idle:
        guarded._idle.pop().end()

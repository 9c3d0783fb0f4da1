"""Background jobs of What-if: the pass over a run's rows, and training an IsoLayer."""

from __future__ import annotations

from typing import Any, Final

from numpy.typing import NDArray

from isoviz.exploring.jobs import PREPARE
from isoviz.jobs import queue
from isoviz.jobs.kinds import ENCODERS, Job, JobKind, Lane
from isoviz.jobs.queue import JobState
from isoviz.whatif.request import STORE, EncodingRequest, Request, request_of


def compute(request: Request, report: Any) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The facts and arrays of a request; raises `IsoVizError` in the user's terms."""
    if isinstance(request, EncodingRequest):
        from isoviz.whatif import encoding

        return encoding.compute(request, report)
    from isoviz.whatif import engine

    return engine.train_layer(request, report)


def _work(job: Job) -> None:
    job.publish(*compute(request_of(job.request), job.report))


ENCODING: Final = JobKind(name="encoding", room=__name__, work=_work, results=STORE, lane=ENCODERS, prepare=PREPARE)
"""Jobs for an `EncodingRequest`."""

LAYER: Final = JobKind(
    name="layer",
    room=__name__,
    work=_work,
    results=STORE,
    lane=Lane("layers", cores=2),
    prepare=PREPARE,
    warm_seconds=60.0,
)
"""Jobs for a `LayerRequest`; the next move of a slider requests another one."""


def kind_of(request: Request) -> JobKind:
    """The kind of job for a request."""
    return ENCODING if isinstance(request, EncodingRequest) else LAYER


def look(request: Request) -> JobState:
    """State of the request's job."""
    return queue.look(kind_of(request), request.key)


def start(request: Request) -> JobState:
    """Start the job unless it is waiting, running or done. Restarts a failed or lost job."""
    return queue.start(kind_of(request), request.key, request.as_json())


def stop(request: Request) -> None:
    """Stop the job with all its processes and remove it, if it exists."""
    queue.stop(kind_of(request), request.key)

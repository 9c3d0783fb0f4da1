"""What What-if has computed in the background: the pass over a run's rows, and IsoLayers trained on the spot."""

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
"""Of an `EncodingRequest`."""

LAYER: Final = JobKind(
    name="layer",
    room=__name__,
    work=_work,
    results=STORE,
    lane=Lane("layers", cores=2),
    prepare=PREPARE,
    warm_seconds=60.0,
)
"""Of a `LayerRequest`; a slider's next move asks for another one."""


def kind_of(request: Request) -> JobKind:
    """The kind of job that a request is for."""
    return ENCODING if isinstance(request, EncodingRequest) else LAYER


def look(request: Request) -> JobState:
    """How the job of this request stands."""
    return queue.look(kind_of(request), request.key)


def start(request: Request) -> JobState:
    """Start the job unless it is on its way or done; a failed or lost one is started anew."""
    return queue.start(kind_of(request), request.key, request.as_json())


def stop(request: Request) -> None:
    """End the job with everything it started, and forget it; nothing if there is none."""
    queue.stop(kind_of(request), request.key)

"""The ruler of a stored set as a background job, for pages."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from isoviz.cosines import Ruler, results
from isoviz.demo import EXAMPLE
from isoviz.errors import InputError
from isoviz.jobs import queue
from isoviz.jobs.kinds import Job, JobKind, Pool
from isoviz.operations.measure import Progress
from isoviz.operations.ruler import Known, of_set


@dataclass(frozen=True)
class SetRequest:
    """The ruler of a stored set.

    Attributes:
        vectors: key of the set.
        known: how related rows are known; None for the set's default.
        related_from, share, precision: see `RulerRequest`.
    """

    vectors: str
    known: Known | None = None
    related_from: float | None = None
    share: float | None = None
    precision: float = 0.9

    def as_json(self) -> dict[str, Any]:
        """JSON form."""
        return asdict(self)


def find(request: SetRequest) -> Ruler | None:
    """The ruler of a stored set, if it was measured before, or ships (`factory/record_examples.py`)."""
    shipped = results.STORE.find(request.vectors) if request.vectors.startswith(EXAMPLE) else None
    if shipped is not None and shipped.facts["request"] == request.as_json():
        return Ruler.model_validate(shipped.facts["ruler"])
    result = results.STORE.find(queue.content_key(RULER, request.as_json()))
    return None if result is None else Ruler.model_validate(result.facts["ruler"])


def facts_of(request: SetRequest, report: Progress = lambda *_: None) -> dict[str, Any]:
    """What the result of a job holds. Raises `InputError` if the set is gone, and like `of_set`."""
    from isoviz import vectors

    try:
        vector_set = vectors.load(request.vectors)
    except KeyError:
        raise InputError(
            "vectors: this set is no longer on this server", field="vectors", advice="Load it again."
        ) from None
    settings: dict[str, Any] = {"share": request.share, "precision": request.precision, "progress": report}
    ruler = of_set(vector_set, request.known, related_from=request.related_from, **settings)
    return {"request": request.as_json(), "ruler": ruler.model_dump(mode="json")}


def _work(job: Job) -> None:
    job.publish(facts_of(SetRequest(**job.request), job.report), {})


RULER: Final = JobKind(
    name="ruler",
    room=__name__,
    work=_work,
    results=results.STORE,
    pool=Pool("rulers", cores=2),
    warm_seconds=60.0,
    memory_field="vectors",
    memory_advice="Take fewer rows, or close other programs that use memory.",
)
"""Jobs for a `SetRequest`."""

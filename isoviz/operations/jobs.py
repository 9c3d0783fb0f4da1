"""The ruler of a stored set, its rows, slices and frontier as background jobs, for pages."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from isoviz.cosines import Ruler, results
from isoviz.demo import EXAMPLE
from isoviz.errors import InputError
from isoviz.jobs import queue
from isoviz.jobs.kinds import Job, JobKind, Pool
from isoviz.operations.measure import Progress
from isoviz.operations.ruler import Known, by_slice, of_set

if TYPE_CHECKING:
    from isoviz.vectors.sets import VectorSet


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
    vector_set = _loaded(request.vectors)
    settings: dict[str, Any] = {"share": request.share, "precision": request.precision, "progress": report}
    ruler = of_set(vector_set, request.known, related_from=request.related_from, **settings)
    return {"request": request.as_json(), "ruler": ruler.model_dump(mode="json")}


def _loaded(key: str) -> VectorSet:
    from isoviz import vectors

    try:
        return vectors.load(key)
    except KeyError:
        raise InputError(
            "vectors: this set is no longer on this server", field="vectors", advice="Load it again."
        ) from None


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


def _of_set(job: Job) -> None:
    from pydantic_core import to_json

    from isoviz.readouts import slices
    from isoviz.readouts.division import annotations_of, label_codes
    from isoviz.readouts.frontier import frontier

    request, vector_set = job.request, _loaded(job.request["vectors"])
    codes, _ = label_codes(vector_set.columns)
    plain = (
        vector_set
        if codes is not None
        else replace(vector_set, columns=vector_set.columns.drop(columns="label", errors="ignore"))
    )
    annotations, arrays, facts = annotations_of(plain), dict[str, Any](), dict[str, Any]()
    job.report(0, 1, "comparing all rows")
    if request["what"] == "rows":
        arrays = vars(slices.rows_of(vector_set.points, annotations)).copy()
        facts = {name: arrays.pop(name) for name in ("n", "queries")}
    elif request["what"] == "frontier":
        facts = {"frontier": frontier(vector_set.points, annotations, progress=job.report)}
    elif request["what"] == "ruler slices":
        ruler = find(SetRequest(request["vectors"])) or of_set(vector_set)
        facts = {"slices": by_slice(vector_set, ruler, request["by"])}
    else:
        of = slices.slicing(vector_set.columns, request["by"])
        facts = {"slices": slices.measured(vector_set.points, annotations, of)}
    job.publish({"request": dict(request), **json.loads(to_json(facts, inf_nan_mode="null"))}, arrays)


OF_SET: Final = JobKind(
    name="of_set",
    room=__name__,
    work=_of_set,
    results=results.STORE,
    pool=RULER.pool,
    warm_seconds=60.0,
    memory_field="vectors",
)
"""`{"vectors": key, "what": "rows", "slices" (with "by"), "ruler slices" (with "by") or "frontier"}`; the results are the
fields of `Rows`, `slices`, or those of a `Frontier`."""

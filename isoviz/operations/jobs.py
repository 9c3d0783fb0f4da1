"""The ruler of a stored set, its rows, slices and frontier, and the comparison of several sets, as background jobs for pages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from isoviz.demo import EXAMPLE
from isoviz.errors import InputError
from isoviz.jobs import queue
from isoviz.jobs.kinds import Job, JobKind, Pool
from isoviz.operations.measure import Progress
from isoviz.operations.ruler import Known, by_slice, of_set
from isoviz.readouts import encoders
from isoviz.readouts.encoders import EncoderComparison
from isoviz.readouts.ruler import Ruler, results
from isoviz.vectors import VectorSet


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


def compare_request(sets: Mapping[str, str], margin: float, by: str | None = None) -> dict[str, Any]:
    """The request of a job that compares stored sets. `sets`: name of the encoder → key. `by`: slices, see `encoders.of_sets`."""
    return {"vectors": list(sets.values()), "names": list(sets), "margin": margin, "by": by}


def find_comparison(request: Mapping[str, Any]) -> EncoderComparison | None:
    """The comparison of stored sets, if it was made before."""
    result = results.STORE.find(queue.content_key(COMPARE, request))
    return None if result is None else EncoderComparison.model_validate(result.facts["comparison"])


def _compare(job: Job) -> None:
    sets = dict(zip(job.request["names"], map(_loaded, job.request["vectors"]), strict=True))
    took = {name: one.facts["milliseconds"] for name, one in sets.items() if "milliseconds" in one.facts}
    found = encoders.of_sets(sets, job.request["margin"], took, job.request["by"])
    content = found.model_dump(mode="json", exclude={"sentences"})
    job.publish({"request": dict(job.request), "comparison": content}, {})


COMPARE: Final = replace(RULER, name="comparison", work=_compare)
"""Jobs for a `compare_request`."""


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
    elif request["what"] == "baseline":
        from isoviz.watch import drift

        searches = drift.searches_of(vector_set) if vector_set.relation == "relevance" else {}
        made = drift.baseline(vector_set.points, ids=vector_set.columns.get("id"), searches=searches)
        facts = {"baseline": made.model_dump(mode="json")}
    elif request["what"] == "ruler slices":
        ruler = find(SetRequest(request["vectors"])) or of_set(vector_set)
        facts = {"slices": by_slice(vector_set, ruler, request["by"])}
    else:
        of = slices.slicing(vector_set.columns, request["by"])
        facts = {"slices": slices.measured(vector_set.points, annotations, of)}
    job.publish({"request": dict(request), **json.loads(to_json(facts, inf_nan_mode="null"))}, arrays)


OF_SET: Final = replace(RULER, name="of_set", work=_of_set)
"""`{"vectors": key, "what": "rows", "slices" (with "by"), "ruler slices" (with "by"), "frontier" or "baseline"}`; the results
are the fields of `Rows`, `slices`, or those of a `Frontier` or `Baseline`."""

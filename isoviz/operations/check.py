"""Vectors compared with a baseline that `isoviz check --save` has written."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel

from isoviz import input_validation
from isoviz.errors import InputError
from isoviz.operations.measure import Progress, noting
from isoviz.operations.operation import STRICT, argument
from isoviz.tables import stores
from isoviz.watch import drift


class CheckRequest(BaseModel):
    """What to compare, and what decides."""

    model_config = STRICT

    vectors: Annotated[str, argument("a file of vectors, or the URL of a database", "FILE")]
    baseline: Annotated[str, argument("compare with this baseline", "FILE")]
    fail_on: Annotated[
        tuple[str, ...] | None,
        argument(f"judge only these, with these tolerances: {', '.join(drift.MEASURES)}", "MEASURE[=TOLERANCE]"),
    ] = None
    column: Annotated[str | None, argument("the vectors in the file, if it has several columns")] = None
    ids: Annotated[str | None, argument("column of ids, by which rows are paired (default: id, if present)")] = None
    same_rows: Annotated[bool, argument("pair rows by number: row k is the same text in both files")] = False
    pairs: Annotated[str | None, argument("a table of query, document, relevance: judge search, too", "FILE")] = None
    queries: Annotated[str | None, argument("the queries' vectors, if they are in a file of their own", "FILE")] = None
    by: Annotated[
        str | None,
        argument("also by slice: a column, or length (quartiles of the length of its texts)", "COLUMN|length"),
    ] = None
    skip_bad_rows: Annotated[bool, argument("leave out rows of the file without a readable vector")] = False


def check(request: CheckRequest, progress: Progress = lambda *_: None) -> drift.Check:
    """The drift of each measure. Raises `InputError` like `isoviz.check`."""
    tolerances = None if request.fail_on is None else dict(map(assignment, request.fail_on))
    before = drift.Baseline.read(request.baseline)
    with stores.reporting(progress):
        how = request.ids, request.skip_bad_rows, request.pairs, request.queries, request.by
        points, names, searches, slicing = drift.read(request.vectors, request.column, *how)
    if request.ids is None and (request.same_rows or not before.common(names or ())):
        names = None  # no ids, or a column 'id' that nobody asked for
    how_judged: dict[str, Any] = {"searches": searches, "slicing": slicing}
    return drift.check(points, before, fail_on=tolerances, ids=names, same_rows=request.same_rows, **how_judged)


def document(request: CheckRequest) -> dict[str, Any]:
    """The check as one document, in a process of its own (`isoviz.jobs.guarded`)."""
    with noting() as notes:
        result = check(request)
    return {**result.model_dump(mode="json"), "ok": result.ok(), "warnings": [*result.notes(), *notes]}


def assignment(text: str, field: str = "fail_on") -> tuple[str, float | None]:
    """NAME or NAME=NUMBER."""
    name, equals, value = text.partition("=")
    try:
        return name, input_validation.number(value) if equals else None
    except ValueError as error:
        raise InputError.at(field, str(error)) from None

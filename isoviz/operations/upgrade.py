"""Old vectors mapped to a new encoder's: what recall of its neighbours survives."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel

from isoviz.errors import InputError
from isoviz.operations.compare import naming_relevance
from isoviz.operations.measure import noting
from isoviz.operations.operation import STRICT, argument
from isoviz.posthoc.export import Effect, Origin, as_numpy
from isoviz.readouts import encoders
from isoviz.readouts.upgrade import Map, Upgrade, upgrade
from isoviz.tables import arrays
from isoviz.vectors import reading


class UpgradeRequest(BaseModel):
    """Two files of vectors of the same rows, and the map between them."""

    model_config = STRICT

    old: Annotated[str, argument("the stored vectors", "FILE")]
    new: Annotated[str, argument("the new encoder's vectors of the same rows, in the same order", "FILE")]
    map: Annotated[Map, argument("procrustes: a rotation and one factor; ridge: least squares")] = "procrustes"
    column: Annotated[str | None, argument("the vectors in the files, if they have several columns")] = None
    new_column: Annotated[str | None, argument("the vectors in --new, if they are called otherwise there")] = None
    queries: Annotated[
        tuple[str, ...],
        argument("the same questions by the old and by the new encoder: recall of what they find", "FILE", nargs=2),
    ] = ()
    relevance: Annotated[
        str | None, argument("a table of query, document and relevance: also nDCG@10 of the questions", "FILE")
    ] = None


def measure(request: UpgradeRequest) -> tuple[Upgrade, dict[str, Any]]:
    """The map, and the document. Raises `InputError` like `isoviz.readouts.upgrade.upgrade`."""
    columns = {"old": request.column, "new": request.new_column or request.column}
    files = {"old": request.old, "new": request.new}
    if len(request.queries) not in (0, 2) or (request.relevance and not request.queries):
        raise InputError.at("queries", "give two files: the questions by the old and by the new encoder")
    asked = dict(zip(files, request.queries, strict=False))
    points = {name: reading.array(file, columns[name], name) for name, file in files.items()}
    questions = {name: reading.array(file, columns[name], "queries") for name, file in asked.items()}
    for name, array in points.items():
        if array.dtype.kind not in "fiu":
            raise InputError(f"{name}: holds {array.dtype}, not numbers", field=name)
        arrays.check_finite(array, name)
    result = upgrade(points["old"], points["new"], request.map, (questions["old"], questions["new"]) if asked else None)
    sizes = {name: {"file": file, "n": len(points[name]), "d": points[name].shape[1]} for name, file in files.items()}
    search = None
    if request.relevance is not None:
        with naming_relevance():
            sets = {
                name: reading.read(
                    file,
                    reading.Columns(points=columns[name]),
                    field=name,
                    questions=asked[name],
                    relations=request.relevance,
                )
                for name, file in reversed(files.items())
            }
        every = np.concatenate([result.crossed, questions["new"]])
        sets["mapped"] = replace(sets["new"], points=every)
        search = encoders.of_sets(sets)
    document = {"map": request.map, **sizes, "recall10": recalls(result)}
    return result, document | ({} if search is None else {"search": search.model_dump(mode="json")})


def document(request: UpgradeRequest) -> dict[str, Any]:
    """The document, in a process of its own (`isoviz.jobs.guarded`)."""
    with noting() as notes:
        result, found = measure(request)
    return {**found, "warnings": [*result.notes, *notes]}


def recalls(result: Upgrade) -> dict[str, dict[str, Any]]:
    """Recall@10 of mapped vectors, of old ones and the gain, with their 95 % intervals and numbers of rows."""
    parts = {name: getattr(result, name) for name in ("mapped", "old", "gain")}
    return {name: {part: getattr(one, part) for part in ("value", "low", "high", "n")} for name, one in parts.items()}


def map_file(result: Upgrade, kind: Map, old: str, new: str, n: int) -> bytes:
    """The map as a zip archive for numpy. `old` and `new` name the vectors, `n` is their number."""
    gain, rows = result.gain, f"{result.gain.n:,} rows that the map was not fitted on"
    name = "recall@10 of the new neighbours, old vectors → mapped"
    effect = Effect(name, result.old.value, result.mapped.value, gain.low, gain.high, rows)
    return as_numpy(result.affine, Origin(f"{kind} from {old} to {new}", old, "", n, "all", effects=(effect,)))

"""Each row of a file of vectors, for programs: hubs, rows that are never found, near-duplicates."""

from __future__ import annotations

import math
from typing import Any

from pydantic import BaseModel, Field

from isoviz.errors import InputError
from isoviz.metrics.each_row import Order
from isoviz.operations.measure import noting
from isoviz.operations.operation import STRICT
from isoviz.readouts import slices
from isoviz.readouts.division import annotations_of
from isoviz.vectors import Columns, reading

_FILE: Any = {"metavar": "FILE"}


class RowsRequest(BaseModel):
    """The vectors, and which of their rows to list."""

    model_config = STRICT

    embeddings: str = Field(
        min_length=1, description="the vectors of rows, or of a search's documents", json_schema_extra=_FILE
    )
    column: str | None = Field(None, min_length=1, description="the vectors in the file, if it has several columns")
    queries: str | None = Field(None, min_length=1, description="the vectors of the questions", json_schema_extra=_FILE)
    relevance: str | None = Field(
        None, min_length=1, description="a table of query, document and relevance", json_schema_extra=_FILE
    )
    order: Order = Field("hubs", description="what is listed: the rows found most often, those never found, or copies")
    limit: int = Field(20, ge=1, le=1_000, description="most rows listed")


def document(request: RowsRequest) -> dict[str, Any]:
    """Sentences on all rows, and the first rows in the order of the request, in a process of its own (`isoviz.jobs.guarded`).

    Raises:
        InputError: the files cannot be read, or `isoviz.rows` refuses the vectors.
    """
    with noting() as notes:
        columns = Columns(points=request.column)
        found = reading.read(
            request.embeddings, columns, questions=request.queries, relations=request.relevance, field="embeddings"
        )
        try:
            rows = slices.rows_of(found.points, annotations_of(found))
        except InputError as error:
            raise InputError.at("embeddings", str(error).removeprefix("points: ")) from None
    listed = rows.order(request.order)[: request.limit]
    named = {str(name): values.tolist() for name, values in found.columns.iloc[rows.row[listed]].items()}
    table = {name: [_plain(value) for value in values.tolist()] for name, values in rows.table(listed).items()} | named
    return {
        "n": rows.n,
        "sentences": list(rows.sentences),
        "rows": [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)],
        "warnings": [*found.notes, *notes],
    }


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value

"""Encoders compared on a search: from files of vectors, from texts that they encode, or from stored sets."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Final

from pydantic import BaseModel, Field, JsonValue

from isoviz.errors import InputError
from isoviz.operations.measure import Progress, group_of, noting
from isoviz.operations.operation import STRICT
from isoviz.readouts import encoders
from isoviz.readouts.encoders import EncoderComparison
from isoviz.tables import arrays, catalogue
from isoviz.vectors import reading

_FILE: Final[dict[str, JsonValue]] = {"metavar": "FILE"}


class CompareRequest(BaseModel):
    """Two to six encoders on the same documents and questions: files of vectors, or models that encode texts."""

    model_config = STRICT

    encoders: tuple[str, ...] = Field(
        description="files with each encoder's vectors of the documents, or of documents and questions in one table; with documents, "
        "models: bundled, local directories or hub ids. The others are compared with the first",
        json_schema_extra={"metavar": "ENCODER"},
    )
    documents: str | None = Field(
        None,
        min_length=1,
        description="texts that the models encode: one per line, a table, or a folder with corpus.jsonl, queries.jsonl and qrels",
        json_schema_extra=_FILE,
    )
    queries: tuple[str, ...] = Field(
        (),
        description="the questions: texts, or each encoder's vectors in the order of the encoders",
        json_schema_extra=_FILE,
    )
    relevance: str | None = Field(
        None,
        min_length=1,
        description="a table of query, document and relevance, by id, or by row number from 1; or an array of row numbers from 0. "
        "Without it, only neighbours are compared",
        json_schema_extra=_FILE,
    )
    margin: float = Field(1.0, gt=0, lt=100, description="points of nDCG@10 (of 100) that may be lost without harm")
    column: str | None = Field(None, min_length=1, description="the vectors in the files, if they have several columns")
    by: str | None = Field(
        None,
        min_length=1,
        description="slices of the questions: a column of their table, or length (quartiles of their texts)",
        json_schema_extra={"metavar": "COLUMN"},
    )

    def check(self) -> None:
        """Raise `InputError` for what does not go together."""
        if not 2 <= len(self.encoders) <= encoders.MOST:
            raise InputError.at("encoders", f"give two to {encoders.MOST} (got {len(self.encoders)})")
        wanted = {0, 1 if self.documents is not None else len(self.encoders)}
        if len(self.queries) not in wanted:
            raise InputError.at("queries", f"give {max(wanted)}: {len(self.queries)} do not go with the encoders")
        if self.queries and self.relevance is None:
            raise InputError.at("relevance", "questions need relevance: a table of query, document and relevance")
        if self.documents is not None and self.column is not None:
            raise InputError.at("column", "only with files of vectors")


def document(request: CompareRequest) -> dict[str, Any]:
    """The comparison as one document, in a process of its own (`isoviz.jobs.guarded`)."""
    with noting() as notes:
        found = measure(request)
    return found.model_dump(mode="json") | {"warnings": list(dict.fromkeys([*found.notes, *notes]))}


def measure(request: CompareRequest, progress: Progress = lambda *_: None) -> EncoderComparison:
    """The comparison of a request. Raises `InputError` if it cannot be carried out; fields are those of the request."""
    request.check()
    with naming_relevance():
        return _measured(request, progress)


@contextlib.contextmanager
def naming_relevance() -> Iterator[None]:
    """Context in which errors of `pairs`, as readers call relevance, name `relevance`."""
    try:
        yield
    except InputError as error:
        if error.field != "pairs":
            raise
        raise InputError(str(error).replace("pairs", "relevance", 1), field="relevance", advice=error.advice) from None


def _measured(request: CompareRequest, progress: Progress) -> EncoderComparison:
    margin, short = request.margin / 100, list(map(catalogue.title, request.encoders))
    if len(set(short)) < len(short):
        short = [f"{place}. {name}" for place, name in enumerate(short, 1)]
    named = dict(zip(short, request.encoders, strict=True))
    questions = dict(zip(named, request.queries, strict=False))
    if request.documents is not None:
        from isoviz.whatif.texts import encoded

        columns = reading.Columns(label=group_of(request.by))
        own, asked = (reading.Columns(), request.queries[0]) if request.queries else (columns, None)
        more: dict[str, Any] = {"questions": asked, "asked": columns, "relations": request.relevance}
        texts = reading.read_texts(request.documents, own, field="documents", **more).without_empty()
        sets = {name: encoded(texts, model, report=progress) for name, model in named.items()}
        return encoders.of_sets(
            sets, margin, {name: one.facts["milliseconds"] for name, one in sets.items()}, request.by
        )
    files = [*request.encoders, *request.queries, *filter(None, [request.relevance])]
    if all(reading.holds(file, "encoders") == "array" for file in files) and (questions or not request.relevance):
        of_questions = {name: reading.array(file, request.column, "queries") for name, file in questions.items()}
        parts = {
            name: (reading.array(file, request.column, "encoders"), of_questions.get(name))
            for name, file in named.items()
        }
        if request.by is not None:
            raise InputError.at("by", "these files are arrays: they have no columns and no texts")
        relevance = None if request.relevance is None else arrays.read(request.relevance, None, "relevance")
        return encoders.compare(parts, relevance, margin=margin)
    columns = reading.Columns(points=request.column, label=group_of(request.by))
    own = reading.Columns(points=request.column) if questions else columns
    more = {"asked": columns, "relations": request.relevance, "field": "encoders"}
    read = {name: reading.read(file, own, questions=questions.get(name), **more) for name, file in named.items()}
    return encoders.of_sets(read, margin, by=request.by)

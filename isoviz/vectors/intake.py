"""Reading a user's vectors and texts for a page: `isoviz.jobs.guarded` calls these functions and gets short summaries."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from isoviz.vectors import reading, sets, tables
from isoviz.vectors.reading import Columns
from isoviz.vectors.sets import Relation, TextSet, VectorSet

Kind = Literal["texts", "vectors", "either"]


@dataclass(frozen=True)
class ImportRequest:
    """A file of vectors or texts to read.

    Attributes:
        kind: `either`: vectors if the file has some, else texts.
        file: a path, or `hub:owner/name:split`.
        columns: see `isoviz.vectors.Columns`.
        beside: a table with texts, labels, groups or ids for the vectors of an array.
        relations: a table of pairs with a score, or of queries, documents and relevance.
        name: title on pages; empty for the file's name.
    """

    kind: Kind = "either"
    file: str = ""
    columns: Columns = field(default_factory=Columns)
    beside: str | None = None
    relations: str | None = None
    name: str = ""


@dataclass(frozen=True)
class SetSummary:
    """Summary of a stored set.

    Attributes:
        kind: what the set holds.
        n, d: rows, and dimensions of vectors (0 for texts).
        columns: those of `isoviz.vectors.sets.COLUMNS` that the set has.
        relation: what its pairs mean, if it has pairs.
        name: title on pages.
    """

    key: str
    kind: Literal["texts", "vectors"]
    n: int
    d: int
    columns: tuple[str, ...]
    relation: Relation | None = None
    name: str = ""


def import_file(request: ImportRequest) -> SetSummary:
    """Read a file and store its content. Raises like `isoviz.vectors.read`."""
    name = request.name or (request.file if request.file.startswith(tables.HUB) else Path(request.file).name)
    content: TextSet | VectorSet
    if request.kind == "texts":
        content = reading.read_texts(request.file, request.columns, relations=request.relations, name=name)
    else:
        read = reading.read if request.kind == "vectors" else reading.read_either
        content = read(request.file, request.columns, beside=request.beside, relations=request.relations, name=name)
    sets.keep(content)
    return summary_of(content)


def summary_of(content: TextSet | VectorSet) -> SetSummary:
    """Summary of a set."""
    columns = tuple(map(str, content.columns))
    if isinstance(content, TextSet):
        return SetSummary(content.key, "texts", content.n, 0, columns, content.relation, content.name)
    return SetSummary(content.key, "vectors", content.n, content.d, columns, content.relation, content.name)


def describe(key: str) -> SetSummary | None:
    """Summary of a stored set, without reading its data; None if it no longer exists."""
    facts = sets.facts_of(key)
    if facts is None:
        return None
    columns = tuple(facts["columns"])
    return SetSummary(key, facts["what"], facts["n"], facts.get("d", 0), columns, facts.get("relation"), facts["name"])

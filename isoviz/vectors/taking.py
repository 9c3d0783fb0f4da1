"""What a page has read of own vectors and texts, as functions that `isoviz.jobs.guarded` can call: small answers, the content kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from isoviz.vectors import reading, sets, tables
from isoviz.vectors.reading import Columns
from isoviz.vectors.sets import Relation, TextSet, VectorSet

Kind = Literal["texts", "vectors", "either"]


@dataclass(frozen=True)
class Order:
    """What to read.

    Attributes:
        kind: `either`: vectors where the file has some, else texts.
        file: a path, or `hub:owner/name:split`.
        columns: see `isoviz.vectors.Columns`.
        beside: a table with texts, labels, groups or ids of an array's vectors.
        relations: a table of pairs with a score, or of queries, documents and relevance.
        name: what pages call it; empty: as the file.
    """

    kind: Kind = "either"
    file: str = ""
    columns: Columns = field(default_factory=Columns)
    beside: str | None = None
    relations: str | None = None
    name: str = ""


@dataclass(frozen=True)
class Taken:
    """What is kept under a key.

    Attributes:
        kind: of what.
        n, d: rows, and dimensions of vectors (0 for texts).
        columns: of `isoviz.vectors.sets.COLUMNS`, those that it has.
        relation: what its pairs mean, if it has some.
        name: what pages call it.
    """

    key: str
    kind: Literal["texts", "vectors"]
    n: int
    d: int
    columns: tuple[str, ...]
    relation: Relation | None = None
    name: str = ""


def take(order: Order) -> Taken:
    """Read a file, keep what it holds, and say what that is; raises as `isoviz.vectors.read`."""
    name = order.name or (order.file if order.file.startswith(tables.HUB) else Path(order.file).name)
    kept: TextSet | VectorSet
    if order.kind == "texts":
        kept = reading.read_texts(order.file, order.columns, relations=order.relations, name=name)
    else:
        read = reading.read if order.kind == "vectors" else reading.read_either
        kept = read(order.file, order.columns, beside=order.beside, relations=order.relations, name=name)
    sets.keep(kept)
    return described(kept)


def described(kept: TextSet | VectorSet) -> Taken:
    """What a set is, in short."""
    columns = tuple(map(str, kept.columns))
    if isinstance(kept, TextSet):
        return Taken(kept.key, "texts", kept.n, 0, columns, kept.relation, kept.name)
    return Taken(kept.key, "vectors", kept.n, kept.d, columns, kept.relation, kept.name)


def describe(key: str) -> Taken | None:
    """What is kept under a key, without reading it; None if it is gone."""
    facts = sets.facts_of(key)
    if facts is None:
        return None
    columns = tuple(facts["columns"])
    return Taken(key, facts["what"], facts["n"], facts.get("d", 0), columns, facts.get("relation"), facts["name"])

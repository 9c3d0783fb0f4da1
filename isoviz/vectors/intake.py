"""Reading a user's vectors and texts for a page: `isoviz.jobs.guarded` calls these functions and gets short summaries."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from isoviz.errors import InputError
from isoviz.tables import stores
from isoviz.vectors import oddities, reading, sets
from isoviz.vectors.oddities import Oddity
from isoviz.vectors.pairs import Relevance
from isoviz.vectors.reading import Columns
from isoviz.vectors.sets import Relation, TextSet, VectorSet

Kind = Literal["texts", "vectors", "either"]


@dataclass(frozen=True)
class ImportRequest:
    """A file of vectors or texts to read.

    Attributes:
        kind: `either`: vectors if the file has some, else texts.
        file: a path, `hub:owner/name:split` or the URL of a store.
        columns: see `isoviz.vectors.Columns`.
        beside: a table with texts, labels, groups or ids for the vectors of an array.
        relations: a table of pairs with a score, or of queries, documents and relevance.
        questions: the questions of a search, if they are in a file of their own.
        asked: columns of `questions`, see `isoviz.vectors.read`.
        linked: columns of `relations`: `query`, `document` or `relevance` → its name.
        name: title on pages; empty for the file's name.
        skip_bad: leave out rows without a readable vector.
        stored: key of stored vectors instead of a file, of which `leave_out` is left out.
    """

    kind: Kind = "either"
    file: str = ""
    columns: Columns = field(default_factory=Columns)
    beside: str | None = None
    relations: str | None = None
    questions: str | None = None
    asked: Columns = field(default_factory=Columns)
    linked: dict[str, str | None] = field(default_factory=dict)
    name: str = ""
    skip_bad: bool = False
    stored: str = ""
    leave_out: Oddity = "copies"


@dataclass(frozen=True)
class SetSummary:
    """Summary of a stored set.

    Attributes:
        kind: what the set holds.
        n, d: rows, and dimensions of vectors (0 for texts).
        columns: those of `isoviz.vectors.sets.COLUMNS` that the set has.
        relation: what its pairs mean, if it has pairs.
        name: title on pages.
        dimensions: the columns of a table that were read as vectors.
        odd: those of them that look like ids, labels or times.
        skipped: a sentence on rows without a readable vector, if some were left out.
        notes: what was left out of the files, in sentences.
        saved_from: the address in the app that a page without a server was saved at, if the set was read from one just now.
        oddities: `isoviz.vectors.oddities.found`, the first `_SHOWN` of each, and how many there are.
        names: role of a file (see `ImportRequest`) → the columns of its table, of a set read just now.
    """

    key: str
    kind: Literal["texts", "vectors"]
    n: int
    d: int
    columns: tuple[str, ...]
    relation: Relation | None = None
    name: str = ""
    dimensions: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()
    skipped: str = ""
    notes: tuple[str, ...] = ()
    saved_from: str = ""
    oddities: dict[str, tuple[list[int], int]] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)


_SHOWN: Final = 20


def import_file(request: ImportRequest) -> SetSummary:
    """Read a file and store its content. Raises like `isoviz.vectors.read`; the error's `choices` are the `names` of a `SetSummary`."""
    files = {"file": request.file, "questions": request.questions, "relations": request.relations}
    names = {role: reading.column_names(file) for role, file in files.items() if file}
    try:
        return replace(_imported(request), names=names)
    except InputError as error:
        error.choices = names
        raise


def _imported(request: ImportRequest) -> SetSummary:
    content = _read(request)
    saved_from = ""
    if isinstance(content, VectorSet):
        odd = {name: (places[:_SHOWN], len(places)) for name, places in oddities.found(content).items()}
        content = replace(content, facts={**content.facts, "oddities": odd})
        saved_from = content.facts.get("saved from", "")
    summary = describe(sets.keep(content))
    assert summary is not None  # stored just now
    return replace(summary, saved_from=saved_from)


def _read(request: ImportRequest) -> TextSet | VectorSet:
    if request.stored:
        try:
            return oddities.without(sets.load(request.stored), request.leave_out)
        except KeyError:
            raise InputError.at("vectors", "these vectors are no longer on this server; upload them again") from None
    file, columns, relations = request.file, request.columns, request.relations
    linked = Relevance(relations, **request.linked) if relations and any(request.linked.values()) else relations
    further: dict[str, Any] = {"relations": linked, "name": request.name or None}
    further |= {"questions": request.questions, "asked": request.asked}
    if columns.points is not None and stores.is_store(file):
        file = stores.with_options(file, column=columns.points)
    if request.kind == "texts":
        return reading.read_texts(file, columns, **further)
    read = reading.read if request.kind == "vectors" else reading.read_either
    return read(file, columns, beside=request.beside, skip_bad=request.skip_bad, **further)


def describe(key: str) -> SetSummary | None:
    """Summary of a stored set, without reading its data; None if it no longer exists."""
    facts = sets.facts_of(key)
    if facts is None:
        return None
    read = facts.get("facts", {})
    return SetSummary(
        key,
        facts["what"],
        facts["n"],
        facts.get("d", 0),
        tuple(map(str, facts["columns"])),
        facts.get("relation"),
        facts["name"],
        tuple(read.get("dimensions", ())),
        tuple(read.get("odd", ())),
        read.get("skipped", ""),
        tuple(facts.get("notes", ())),
        oddities={name: tuple(odd) for name, odd in read.get("oddities", {}).items()},
    )

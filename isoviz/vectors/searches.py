"""A search from its files: documents, questions, and which document is relevant to which question.

Documents and questions become one set, whose column `group` tells them apart, with the relevance as its pairs.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from isoviz.errors import InputError, listed, shortened
from isoviz.tables import catalogue
from isoviz.vectors import pairs
from isoviz.vectors.sets import TextSet, VectorSet

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Content = TypeVar("Content", bound=VectorSet | TextSet)

QUERY, DOCUMENT = "query", "document"
_WORDS: Final = {
    **dict.fromkeys(("query", "queries", "question", "questions", "q"), QUERY),
    **dict.fromkeys(("document", "documents", "doc", "docs", "passage", "passages", "corpus", "d"), DOCUMENT),
}
"""Cells of a column that tells questions from documents."""


def files_in(path: str | Path) -> tuple[str, str, str] | None:
    """Documents, questions and relevance of a folder as BEIR has it; None for what is no such folder.

    Raises:
        InputError: it has documents, but no questions or no relevance.
    """
    folder = Path(path)
    if catalogue.remote(str(path)) is not None or not (folder / "corpus.jsonl").is_file():
        return None
    relevance = pairs.relevance_in(folder)
    if relevance is None or not (folder / "queries.jsonl").is_file():
        lacks = "qrels/test.tsv" if relevance is None else "queries.jsonl"
        raise InputError.at("documents", f"the folder '{shortened(folder.name)}' has corpus.jsonl, but no {lacks}")
    return str(folder / "corpus.jsonl"), str(folder / "queries.jsonl"), str(relevance)


def joined(documents: Content, questions: Content, relevance: str | Path | pairs.Relevance | None) -> Content:
    """One set of documents and questions. Rows without ids are numbered from 1. A question whose id is also a document's gets `q:` before
    it, as all others then do.

    Raises:
        InputError: vectors of different widths, or relevance that is missing or fits no question (fields `queries`, `pairs`).
    """
    import numpy as np
    import pandas as pd

    if relevance is None:
        raise InputError.at("pairs", "questions need relevance: a table of query, document and relevance")
    parts = [one.columns if "id" in one.columns else numbered(one.columns) for one in (documents, questions)]
    prefix = "q:" if parts[1]["id"].isin(parts[0]["id"]).any() else ""
    parts = [parts[0].assign(group=DOCUMENT), parts[1].assign(group=QUERY, id=prefix + parts[1]["id"])]
    columns = pd.concat(parts, ignore_index=True)
    if "text" in columns:
        columns["text"] = columns["text"].fillna("").astype("str")
    rated, relation, notes = pairs.read(relevance, columns, prefix=prefix)
    if relation != "relevance":
        raise InputError.at("pairs", "expected columns query, document, relevance")
    notes = tuple(dict.fromkeys((*documents.notes, *questions.notes, *notes)))
    every = replace(documents, columns=columns, pairs=rated, relation=relation, notes=notes)
    if isinstance(every, VectorSet) and isinstance(documents, VectorSet) and isinstance(questions, VectorSet):
        if documents.d != questions.d:
            raise InputError.at("queries", f"{questions.d} dimensions, where the documents have {documents.d}")
        return replace(every, points=np.concatenate([documents.points, questions.points]))
    return every


def numbered(columns: pd.DataFrame) -> pd.DataFrame:
    """With ids from 1."""
    import pandas as pd

    return columns.assign(id=pd.Series(range(1, len(columns) + 1), index=columns.index, dtype=object).astype(str))


def telling_column(table: pa.Table, taken: Collection[str]) -> str | None:
    """The column that tells questions from documents: one of texts, each of which means one or the other, in any of their usual words."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for name in table.column_names:
        column = table[name]
        if name in taken or not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            continue
        if all(str(cell).lower() in _WORDS for cell in column.slice(0, 20).to_pylist()):
            meant = {_WORDS.get(str(cell).lower()) for cell in pc.unique(column).to_pylist()}
            if meant == {QUERY, DOCUMENT}:
                return name
    return None


def told_apart(columns: pd.DataFrame) -> pd.DataFrame:
    """With `query` and `document` in the column `group`, if all its cells mean one of these."""
    if "group" not in columns:
        return columns
    meant = columns["group"].astype(str).str.lower().map(_WORDS)
    return columns.assign(group=meant) if meant.notna().all() and meant.nunique() == 2 else columns


def unused_note(names: Collection[str], used: Collection[str]) -> tuple[str, ...]:
    """A sentence on columns that nothing reads."""
    free = [name for name in names if name not in used]
    could = "the text, the label (classes, or slices such as areas) or the group (query or document)"
    return (f"Columns that are not used: {listed(free, 100)}. One could be {could}.",) if free else ()

"""Pairs with a score: how similar two texts are, or how relevant a document is to a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from isoviz.errors import InputError, listed, shortened
from isoviz.tables import catalogue, formats
from isoviz.vectors.columns import bad_cell
from isoviz.vectors.sets import Relation

if TYPE_CHECKING:
    import pandas as pd

_NAMES: Final[dict[Relation, tuple[tuple[str, ...], ...]]] = {
    "similarity": (("left", "id1", "first"), ("right", "id2", "second"), ("score", "similarity")),
    "relevance": (
        ("query", "query-id", "query_id", "qid", "question", "question_id"),
        ("document", "corpus-id", "corpus_id", "doc_id", "docid", "document_id", "passage_id"),
        ("relevance", "score", "grade", "label"),
    ),
}
"""Relation → possible names of its three columns."""
_SIDES: Final = {name for left, right, _ in _NAMES.values() for name in (*left, *right)}


@dataclass(frozen=True)
class Relevance:
    """A table of relevance and the names of its columns; None for a usual name."""

    file: str
    query: str | None = None
    document: str | None = None
    relevance: str | None = None


def read(
    path: str | Path | Relevance, columns: pd.DataFrame, field: str = "pairs", prefix: str = ""
) -> tuple[pd.DataFrame, Relation, tuple[str, ...]]:
    """The pairs of a file (`left`, `right`, `score`), their relation, inferred from the column names, and sentences on what was left out.

    Args:
        path: a table with `left`, `right` and `score`, or with `query`, `document` and `relevance`; without the last, all are relevant.
            A folder with `qrels`, or a `Relevance` that names columns, is of the second kind.
        columns: columns of the set that the pairs refer to, with `id`.
        prefix: of the questions' ids in the set.

    Raises:
        InputError: not such a table; the first row of scored pairs that matches no vector; relevance of which no row does.
    """
    given: dict[str, str] = {}
    if isinstance(path, Relevance):
        given = {name: column for name, column in vars(path).items() if column and name != "file"}
        path = path.file
    table = formats.read(relevance_in(path) or path, field, {*_SIDES, *map(str.lower, given.values())})
    for name, column in given.items():
        if column not in table.column_names:
            has = listed(table.column_names, 120)
            raise InputError.at(field, f"the table has no column '{shortened(column)}' for {name} (it has: {has})")
    relation, places = places_of(table.column_names, given)
    if relation is None:
        expected = " or ".join(", ".join(names[0] for names in wanted) for wanted in _NAMES.values())
        raise InputError.at(field, f"expected columns {expected} (got: {listed(table.column_names, 100)})")
    named = list(filter(None, places))
    frame = table.select(named).rename_columns(["left", "right", "score"][: len(named)]).to_pandas()
    frame = frame if "score" in frame else frame.assign(score=1.0)
    if prefix:
        frame["left"] = prefix + as_ids(frame["left"])
    called = dict(zip(frame, places, strict=True))
    frame, notes = _matched(frame, columns, field) if relation == "relevance" and "id" in columns else (frame, ())
    return checked(frame, relation, columns, field, called), relation, notes


def relevance_in(path: str | Path) -> Path | None:
    """The table of relevance in a folder as BEIR has it (Thakur et al. 2021): the first of test, dev, validation and train."""
    files = (Path(path) / "qrels" / f"{split}.tsv" for split in ("test", "dev", "validation", "train"))
    return None if catalogue.remote(str(path)) is not None else next((file for file in files if file.is_file()), None)


def places_of(names: list[str], given: Mapping[str, str]) -> tuple[Relation | None, list[str]]:
    """What a table with these columns holds, and its three columns, the last empty if it has none. None: no pairs.

    Args:
        given: `query`, `document` or `relevance` → its column, if it has no usual name.
    """
    lower = {name.lower(): name for name in reversed(names)}
    for relation, wanted in _NAMES.items():
        found = [given.get(usual[0]) or next((lower[one] for one in usual if one in lower), "") for usual in wanted]
        # relevance may lack the last column: each pair is then a relevant one
        if all(found[:2] if relation == "relevance" else found) and (relation == "relevance" or not given):
            return relation, found
    return None, []


def _matched(frame: pd.DataFrame, columns: pd.DataFrame, field: str) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The rows whose question and document are both in the set, and a sentence on the others."""
    ids, unknown = set(columns["id"]), []
    for side in ("left", "right"):
        cells = as_ids(frame[side])
        unknown.append(frame[side].notna() & ~cells.isin(ids))
    lost = unknown[0] | unknown[1]
    if not lost.any():
        return frame, ()
    names = [*frame.loc[unknown[0], "left"].astype(str).unique(), *frame.loc[unknown[1], "right"].astype(str).unique()]
    shown = ", ".join(f"'{shortened(name, 30)}'" for name in names[:3])
    words = f"{int(lost.sum()):,} of {len(frame):,} rows of relevance left out: {len(names):,} ids are not in the set, such as {shown}"
    if lost.all():
        raise InputError.at(field, words)
    return frame[~lost], (f"{words}.",)


def checked(
    frame: pd.DataFrame, relation: Relation, columns: pd.DataFrame, field: str, called: dict[str, Any]
) -> pd.DataFrame:
    """The pairs with ids as text and scores as numbers. Raises `InputError` for the first invalid row."""
    import pandas as pd

    if "id" not in columns:
        raise InputError.at(field, "pairs refer to ids, but the vectors have no id column")
    if not len(frame):
        raise InputError.at(field, "there are no pairs")
    ids = set(columns["id"])
    frame = frame.reset_index(drop=True)
    for side in ("left", "right"):
        refuse_first(frame[side].isna(), frame[side], called[side], "it is empty", field)
        frame[side] = as_ids(frame[side])
        unknown = ~frame[side].isin(ids)
        refuse_first(unknown, frame[side], called[side], "no vector has the id '{}'", field)
    scores = pd.to_numeric(frame["score"], errors="coerce")
    refuse_first(~np.isfinite(scores), frame["score"], called["score"], "'{}' is not a finite number", field)
    frame["score"] = scores.astype(float)
    repeated = frame.duplicated(["left", "right"])
    refuse_first(repeated, frame["right"], called["right"], "the same pair with '{}' is in an earlier row", field)
    if relation == "similarity":
        if len(frame) < 3:
            raise InputError.at(field, f"a correlation needs at least 3 pairs (got {len(frame)})")
        if frame["score"].nunique() == 1:
            raise InputError.at(field, f"all {len(frame)} pairs have the same score, so nothing correlates")
        return frame
    refuse_first(frame["score"] < 0, frame["score"], called["score"], "a relevance of {} is below 0", field)
    answered, queries = frame.loc[frame["score"] > 0, "left"].nunique(), frame["left"].nunique()
    if answered < 2:
        got = f"{answered} of {queries}"
        raise InputError.at(field, f"an interval needs at least 2 queries with a relevant document (got {got})")
    if in_both := sorted(set(frame["left"]) & set(frame["right"])):
        raise InputError.at(field, f"'{shortened(in_both[0])}' is both a query and a document")
    return frame


def as_ids(values: pd.Series) -> pd.Series:
    """Ids as text: 7 and 7.0 both become '7', because a column with an empty cell holds floats; 07 stays '07'."""
    import pandas as pd

    if pd.api.types.is_float_dtype(values) and (values.dropna() % 1 == 0).all():
        values = values.astype("Int64")
    ids = values.astype(str)
    return ids.str.removesuffix(".0") if ids.str.fullmatch(r"-?\d+\.0").all() else ids


def refuse_first(bad: Any, values: pd.Series, column: str, problem: str, field: str) -> None:
    """Raise `bad_cell` for the first invalid row; {} in `problem` is replaced by its value."""
    rows = np.flatnonzero(np.asarray(bad, dtype=bool))
    if len(rows):
        row = int(rows[0])
        raise bad_cell(row, column, problem.format(shortened(values.iloc[row], 40)), field)

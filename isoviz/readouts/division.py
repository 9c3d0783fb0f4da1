"""Dividing a set: rows that fit a transform, rows shown while you choose it, and rows held back for one honest final number.

Rows are sorted by id and shuffled with seed 0, so that two sets with the same ids are divided in the same way. Rows of zeros are left out,
and so are copies of a row, by its vector or its text; in pairs and queries, copies stay on the same side.

- Labels, or no annotations: a third each.
- Rated pairs: a third each, keeping rows connected by pairs together. If pairs connect nearly all rows, or a third would have
  almost no pairs, the pairs are divided instead, and all vectors fit the transform.
- Search: the documents fit the transform; two thirds of the queries are shown, a third is held back.

Large sets are sampled (`MOST_*`, the first in the shuffle), because each move of a slider reads all rows shown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import InputError
from isoviz.metrics.copies import comparable_rows, first_copies, nonzero_rows, zeros_left_out
from isoviz.metrics.sample import Sample
from isoviz.readouts.labels import NEIGHBOURS, neighbours_for
from isoviz.readouts.pairs import RatedPairs
from isoviz.readouts.reading import Annotations, Labels
from isoviz.readouts.retrieval import Relevance

if TYPE_CHECKING:
    import pandas as pd

    from isoviz.vectors import VectorSet

Part = Literal["shown", "held back"]

FEWEST: Final = 12
"""Fewest rows of a set that can be divided."""
MOST_FIT: Final = 20_000
MOST_ROWS: Final = 5_000
"""Most rows or pairs of a part."""
MOST_QUERIES: Final = 1_000
MOST_DOCUMENTS: Final = 20_000
"""Most documents: those that answer a query of the part, and random others."""
OWN_LABELS: Final = "Every row has a label of its own, so read-outs of labels are undefined."
MOST_CLASSES: Final = 100
"""Most distinct labels; more are probably ratings or names."""
CROSSED: Final = 1_000
"""Most labelled rows for which read-outs are also cross-validated over all rows, because thirds would be too small."""
_MOST_CONNECTED: Final = 0.4
"""Largest share of the rows in one connected component for which rated pairs are divided by rows."""


@dataclass(frozen=True)
class Division:
    """One part of a set.

    Attributes:
        vectors: the set.
        fit: rows that transforms are fitted on.
        rows: rows of the part, in the order of its images.
        annotations: their annotations, by index in `rows`.
        words: a sentence on how many rows fit the transforms and how many are shown.
        rest: a sentence on the rows of the other part; may be "".
        notes: what was left out, and why.
    """

    vectors: VectorSet = field(repr=False)
    fit: NDArray[np.int64]
    rows: NDArray[np.int64]
    annotations: Annotations
    words: str
    rest: str = ""
    notes: tuple[str, ...] = field(default=())

    @cached_property
    def train(self) -> NDArray[Any]:
        """(n, d) points that transforms are fitted on."""
        return _points(self.vectors, self.fit)

    @cached_property
    def validation(self) -> NDArray[Any]:
        """(m, d) points of the part."""
        return _points(self.vectors, self.rows)

    @property
    def groups(self) -> tuple[NDArray[np.int64] | None, NDArray[np.int64] | None]:
        """Label codes of the rows that transforms are fitted on and of the part, −1 without label; None without labels."""
        codes, _ = label_codes(self.vectors.columns)
        return (None, None) if codes is None else (codes[self.fit], codes[self.rows])

    @cached_property
    def crossed(self) -> tuple[NDArray[Any], NDArray[np.int64]] | None:
        """All labelled points and their label codes, if they are so few that no rows need to be held back; else None."""
        codes, _ = label_codes(self.vectors.columns)
        if codes is None or self.annotations.labels is None or int((codes >= 0).sum()) > CROSSED:
            return None
        labelled = np.flatnonzero(codes >= 0)
        labelled = labelled[comparable_rows(_points(self.vectors, labelled), _texts(self.vectors, labelled))[0]]
        return _points(self.vectors, labelled), codes[labelled]


def _points(vectors: VectorSet, rows: NDArray[np.int64]) -> NDArray[Any]:
    return np.asarray(vectors.points[rows] if len(rows) < vectors.n else vectors.points)


def divide(vectors: VectorSet, part: Part = "shown") -> Division:
    """The rows of a part.

    Raises:
        InputError: too few rows, pairs or queries to be divided (field `vectors`).
    """
    if vectors.relation == "relevance" and vectors.pairs is not None:
        return _queries(vectors, part)
    if vectors.relation == "similarity" and vectors.pairs is not None:
        return _pairs(vectors, part)
    if vectors.n < FEWEST:
        raise InputError.at("vectors", f"read-outs need at least {FEWEST} rows, got {vectors.n}", "Add rows.")
    order = _shuffled(vectors.columns, vectors.n)
    kept = nonzero_rows(vectors.points)
    left_out = _sentences(zeros_left_out(vectors.n, len(kept)))
    order = order[np.isin(order, kept)]
    thirds = np.array_split(order, 3)
    some = np.sort(np.concatenate([thirds[0][:MOST_FIT], thirds[1][:MOST_ROWS], thirds[2][:MOST_ROWS]]))
    distinct, copies = comparable_rows(_points(vectors, some), _texts(vectors, some))
    if len(distinct) < len(some):
        thirds = np.array_split(order[np.isin(order, some[distinct])], 3)
    if len(distinct) < FEWEST:
        found = f"read-outs need at least {FEWEST} distinct rows, got {len(distinct)} in {vectors.n:,} rows"
        raise InputError.at("vectors", found, "Add rows.")
    if Sample(_points(vectors, some)).collapsed:
        raise InputError.at("vectors", "all rows are equal, so read-outs are undefined")
    fit = np.sort(thirds[0][:MOST_FIT])
    rows = np.sort(thirds[1 if part == "shown" else 2][:MOST_ROWS])
    sampled = _sampled(len(thirds[1]), len(rows), "rows")
    labels, notes = _labels(vectors.columns, rows)
    rest = len(thirds[2 if part == "shown" else 1])
    return Division(
        vectors,
        fit,
        rows,
        Annotations(labels=labels),
        f"Transforms are fitted on {len(fit):,} rows; the numbers are of {len(rows):,} others.",
        _rest(rest, "rows", part),
        (*left_out, *copies, *sampled, *notes),
    )


def _sentences(*notes: str) -> tuple[str, ...]:
    return tuple(f"{note}." for note in notes if note)


def _texts(vectors: VectorSet, rows: NDArray[np.int64]) -> NDArray[Any] | None:
    return vectors.columns["text"].to_numpy(dtype=object)[rows] if "text" in vectors.columns else None


def _first_copies(vectors: VectorSet, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n,) the first of these rows of which each row is a copy; itself for other rows, and for all if they are very many."""
    first = np.arange(vectors.n)
    if len(rows) <= MOST_FIT + 2 * MOST_ROWS:
        first[rows] = rows[first_copies(_points(vectors, rows), _texts(vectors, rows))]
    return first


def _rest(count: int, unit: str, part: Part) -> str:
    return f"{count:,} {unit} are {'held back' if part == 'shown' else 'those that were shown'}."


def annotations_of(vectors: VectorSet) -> Annotations:
    """Annotations of all rows of a set, undivided, to measure vectors as they are: without rows of zeros, and labels without copies.

    Raises:
        InputError: the labels are not classes (field `labels`).
    """
    codes, why_not = label_codes(vectors.columns)
    labels, notes = None, _sentences(why_not.rstrip("."))
    if codes is None and why_not not in ("", OWN_LABELS):
        raise InputError.at("labels", why_not)
    if codes is not None:
        labelled = np.flatnonzero(codes >= 0)
        rows, notes = comparable_rows(_points(vectors, labelled), _texts(vectors, labelled))
        labels, of_labels = _labels(
            vectors.columns, np.sort(np.concatenate([labelled[rows], np.flatnonzero(codes < 0)]))
        )
        notes += of_labels
        if labels is not None:
            labels = Labels(np.sort(labelled[rows]), labels.codes)
    if vectors.pairs is None:
        return Annotations(labels=labels, notes=notes)
    left, right, score = _ends(vectors)
    if vectors.relation == "similarity":
        return Annotations(pairs=RatedPairs(left, right, score), labels=labels, notes=notes)
    queries, documents = np.unique(left[score > 0]), _documents(vectors, left)
    of_pairs = _graded_pairs(vectors.n, queries, documents, left, right, score)
    return Annotations(queries=Relevance(queries, documents, *of_pairs), labels=labels, notes=notes)


def unanswered(vectors: VectorSet) -> tuple[str, ...]:
    """A sentence on the queries that are left out because no document is relevant to them; empty if there are none."""
    if vectors.pairs is None or vectors.relation != "relevance":
        return ()
    best = vectors.pairs.groupby("left")["score"].max()
    count = int((best <= 0).sum())
    return (f"{count:,} of {len(best):,} queries left out: no document is relevant to them.",) if count else ()


def _ends(vectors: VectorSet) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Rows and score of every pair of rows that are not zero."""
    assert vectors.pairs is not None
    row_of = {row_id: row for row, row_id in enumerate(vectors.columns["id"].to_numpy())}
    left, right = (vectors.pairs[name].map(row_of).to_numpy(np.int64) for name in ("left", "right"))
    kept = np.isin([left, right], nonzero_rows(vectors.points)).all(axis=0)
    return left[kept], right[kept], vectors.pairs["score"].to_numpy(np.float64)[kept]


def _zero_pairs(vectors: VectorSet, kept: int) -> tuple[str, ...]:
    assert vectors.pairs is not None
    count = len(vectors.pairs) - kept
    return _sentences(f"{count:,} {'pair' if count == 1 else 'pairs'} with a row of zeros left out" if count else "")


def _documents(vectors: VectorSet, left: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of the documents that are not zero: those in the group `document`, else all rows that are not queries."""
    groups, rows = vectors.columns.get("group"), nonzero_rows(vectors.points)
    if groups is not None and (groups == "document").any():
        return np.intersect1d(np.flatnonzero(groups == "document"), rows)
    return np.setdiff1d(rows, left)


def _graded_pairs(
    n: int,
    queries: NDArray[np.int64],
    documents: NDArray[np.int64],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    grade: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Pairs of these queries and documents as indices into both, and their grades."""
    of_query, of_document = (np.full(n, -1) for _ in range(2))
    of_query[queries], of_document[documents] = np.arange(len(queries)), np.arange(len(documents))
    selected = (of_query[left] >= 0) & (of_document[right] >= 0)
    return of_query[left[selected]], of_document[right[selected]], grade[selected]


def _sampled(total: int, sampled: int, unit: str) -> tuple[str, ...]:
    return (f"A sample of {sampled:,} of {total:,} {unit} (seed 0).",) if sampled < total else ()


def _queries(vectors: VectorSet, part: Part) -> Division:
    left, right, grade = _ends(vectors)
    answered_queries = np.unique(left[grade > 0])
    documents = _documents(vectors, left)
    if len(answered_queries) < 3:
        raise InputError.at(
            "vectors", f"search needs at least 3 queries with a relevant document, got {len(answered_queries)}"
        )
    rank = _shuffled_rank(vectors.columns, vectors.n)
    first = _first_copies(vectors, answered_queries)
    mixed = answered_queries[np.lexsort((rank[answered_queries], rank[first[answered_queries]]))]
    edge = len(mixed) * 2 // 3
    while edge > 1 and first[mixed[edge]] == first[mixed[edge - 1]]:
        edge -= 1
    every = mixed[:edge] if part == "shown" else mixed[edge:]
    queries = np.sort(every[:MOST_QUERIES])
    notes = (
        *unanswered(vectors),
        *_zero_pairs(vectors, len(left)),
        *_sampled(len(every), len(queries), "queries"),
    )
    fit = np.sort(documents[np.argsort(rank[documents])[:MOST_FIT]])
    if len(documents) > MOST_DOCUMENTS:
        answering = np.isin(documents, right[np.isin(left, queries) & (grade > 0)])
        order = np.argsort(rank[documents] + np.where(answering, 0, vectors.n))
        notes += _sampled(len(documents), MOST_DOCUMENTS, "documents, with all that answer a query shown")
        documents = np.sort(documents[order[:MOST_DOCUMENTS]])
    rows = np.concatenate([queries, documents])
    relevance = Relevance(
        np.arange(len(queries)),
        len(queries) + np.arange(len(documents)),
        *_graded_pairs(vectors.n, queries, documents, left, right, grade),
    )
    fitted = f"{'the ' if len(fit) == len(documents) else ''}{len(fit):,} documents"
    words = (
        f"Transforms are fitted on {fitted}; the numbers are of {len(queries):,} of {len(answered_queries):,} queries."
    )
    rest = _rest(len(answered_queries) - len(every), "queries", part)
    return Division(vectors, fit, rows, Annotations(queries=relevance), words, rest, notes)


def _pairs(vectors: VectorSet, part: Part) -> Division:
    from scipy import sparse

    left, right, every_score = _ends(vectors)
    if len(left) < FEWEST:
        raise InputError.at("vectors", f"read-outs need at least {FEWEST} rated pairs, got {len(left)}", "Add pairs.")
    first_copy = _first_copies(vectors, np.union1d(left, right))
    every = np.arange(vectors.n)
    ends = np.concatenate([left, every]), np.concatenate([right, first_copy])
    links = sparse.coo_array((np.ones(len(ends[0])), ends), shape=(vectors.n, vectors.n))
    count, component = sparse.csgraph.connected_components(links, directed=False)
    sizes = np.bincount(component, minlength=count)
    nonzero = nonzero_rows(vectors.points)
    rank = _shuffled_rank(vectors.columns, vectors.n)
    first = np.full(count, vectors.n)
    np.minimum.at(first, component, rank)  # components in the order of their first row in the shuffle
    by_component = np.argsort(first)
    third = np.empty(count, dtype=np.int64)
    third[by_component] = np.minimum(3 * (np.cumsum(sizes[by_component]) - sizes[by_component]) // vectors.n, 2)
    of_row = third[component]
    pairs_of_third = np.bincount(of_row[left], minlength=3)
    if sizes.max() > _MOST_CONNECTED * vectors.n or pairs_of_third[1:].min() < FEWEST // 3:
        order = np.argsort(rank[left] * vectors.n + rank[right], kind="stable")
        edge = len(order) * 2 // 3
        chosen_pairs = np.sort((order[:edge] if part == "shown" else order[edge:])[:MOST_ROWS])
        fit = np.sort(nonzero[np.argsort(rank[nonzero])][:MOST_FIT])
        words = (
            "The rows cannot be divided by pairs, so transforms are fitted on "
            f"{'all ' if len(fit) == vectors.n else ''}{len(fit):,} rows; the numbers are of {len(chosen_pairs):,} of {len(left):,} pairs."
        )
    else:
        candidates = nonzero[of_row[nonzero] == 0]
        fit = np.sort(candidates[np.argsort(rank[candidates])[:MOST_FIT]])
        pairs_of_part = np.flatnonzero(of_row[left] == (1 if part == "shown" else 2))
        chosen_pairs = np.sort(pairs_of_part[np.argsort(rank[left[pairs_of_part]], kind="stable")[:MOST_ROWS]])
        words = (
            f"Transforms are fitted on {len(fit):,} rows; the numbers are of {len(chosen_pairs):,} pairs of other rows."
        )
    rows, inverse = np.unique(np.concatenate([left[chosen_pairs], right[chosen_pairs]]), return_inverse=True)
    rated = RatedPairs(inverse[: len(chosen_pairs)], inverse[len(chosen_pairs) :], every_score[chosen_pairs])
    labels, notes = _labels(vectors.columns, rows)
    notes = (*_zero_pairs(vectors, len(left)), *notes)
    annotations = Annotations(pairs=rated, labels=labels)
    return Division(vectors, fit, rows, annotations, words, notes=notes)


def _labels(columns: pd.DataFrame, rows: NDArray[np.int64]) -> tuple[Labels | None, tuple[str, ...]]:
    """Labels of those rows that have one; None, and why, where they are no classes."""
    codes, classes = label_codes(columns)
    if codes is None:
        return None, (classes,) if classes else ()
    mine = codes[rows]
    having = np.flatnonzero(mine >= 0)
    missing = len(rows) - len(having)
    notes = _sentences(f"{missing:,} {'row has' if missing == 1 else 'rows have'} no label" if missing else "")
    sizes = np.unique(mine[having], return_counts=True)[1]
    if len(sizes) < 2:
        return None, (*notes, "The rows shown have fewer than two labels, so read-outs of labels are left out.")
    if sizes.max() == 1:
        return None, (*notes, OWN_LABELS)
    k = neighbours_for(mine[having], itself=True)
    fewer = f"k-NN takes {k} instead of {NEIGHBOURS} neighbours, because half of the labels have at most {k + 1} rows"
    common = f"The most common label has {100 * sizes.max() / sizes.sum():.1f} % of the {sizes.sum():,} labelled rows"
    return Labels(having, mine[having]), (*notes, *_sentences(common, fewer if k < NEIGHBOURS else ""))


def label_codes(columns: pd.DataFrame) -> tuple[NDArray[np.int64] | None, str]:
    """Codes (n,) of the labels, −1 where there is none; None, and why if there is a reason, where they are no classes."""
    import pandas as pd

    if "label" not in columns:
        return None, ""
    codes, classes = pd.factorize(columns["label"], sort=True)
    if 2 < len(classes) == int((codes >= 0).sum()):
        return None, OWN_LABELS
    if not 2 <= len(classes) <= MOST_CLASSES:
        return None, f"The labels have {len(classes):,} distinct values; read-outs of labels need 2 to {MOST_CLASSES}."
    return codes.astype(np.int64), ""


def _shuffled(columns: pd.DataFrame, n: int) -> NDArray[np.int64]:
    """(n,) the rows, shuffled by their ids."""
    order: NDArray[Any] = np.arange(n)
    if "id" in columns:
        order = np.argsort(columns["id"].astype(str).to_numpy(dtype=object), kind="stable")
    return np.asarray(order[np.random.default_rng(0).permutation(n)], dtype=np.int64)


def _shuffled_rank(columns: pd.DataFrame, n: int) -> NDArray[np.int64]:
    """(n,): the place of each row in the shuffle."""
    return np.argsort(_shuffled(columns, n))

"""How well queries find their documents. Rankings are not sorted: the rank of each relevant document is counted.

Documents with equal scores are tied. The result is the mean over all orders of ties, as in scikit-learn's `ndcg_score`;
otherwise vectors that have all become equal would score as well as the file's order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from isoviz.readouts.image import ROUNDING, Image, top
from isoviz.statistics.paired_bootstrap import Mean, Skewness, Statistic

CUT: Final = 10
"""Ranks that nDCG, MRR and hubness consider."""
RECALLS: Final = (1, 10, 100)
_BLOCK: Final = 4_000_000
"""Scores computed at a time."""

Scored = dict[str, Statistic]


@dataclass(frozen=True)
class Relevance:
    """Graded relevance of documents to queries.

    Attributes:
        queries, documents: (q,), (c,) rows of the image.
        query, document: (g,) indices into `queries` and `documents` of each grade.
        grade: (g,) above 0; unlisted pairs have grade 0.
    """

    queries: NDArray[np.int64]
    documents: NDArray[np.int64]
    query: NDArray[np.int64]
    document: NDArray[np.int64]
    grade: NDArray[np.float64]

    @cached_property
    def graded(self) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Each query's relevant documents and their grades; queries without any are left out of the means."""
        relevant = self.grade > 0
        query, document, grade = self.query[relevant], self.document[relevant], self.grade[relevant]
        order = np.argsort(query, kind="stable")
        edges = np.searchsorted(query[order], np.arange(len(self.queries) + 1))
        return [(document[order[first:last]], grade[order[first:last]]) for first, last in itertools.pairwise(edges)]


def measure(image: Image, relevance: Relevance, requested: Collection[str] = ()) -> Scored:
    """Read-outs by slug: means over queries with a relevant document, and two over documents.

    Args:
        requested: slugs; rankings that none of them uses are skipped. Empty: all.
    """
    names = [name for name in ("dot", "cosine") if not requested or any(slug.endswith(name) for slug in requested)]
    of_documents = not requested or any(slug.startswith(("hubness", "never")) for slug in requested)
    queries, documents = image.points[relevance.queries], image.points[relevance.documents]
    lengths = image.lengths[relevance.documents]
    directed = image.directed[relevance.documents]
    scale = np.divide(1.0, lengths, out=np.zeros(len(lengths)), where=directed).astype(np.float32)
    query_lengths = image.lengths[relevance.queries]
    graded = relevance.graded
    answers: dict[str, list[_Ranking]] = {name: [] for name in names}
    times_found: dict[str, NDArray[np.int64]] = {name: np.zeros(len(documents), dtype=np.int64) for name in answers}
    step = max(1, _BLOCK // max(1, len(documents)))
    for start in range(0, len(queries), step):
        scores = queries[start : start + step] @ documents.T
        for name in names:
            if name == "cosine":
                scores *= scale
            for index, row in enumerate(scores, start):
                of_query, grades = graded[index]
                if not len(of_query):
                    continue
                # rounding depends on both lengths
                sizes = lengths[of_query] if name == "dot" else np.ones(len(of_query))
                tolerance = (ROUNDING * query_lengths[index] * sizes).astype(np.float32)[:, None]
                answers[name].append(_ranking(row, of_query, grades, tolerance))
            if of_documents:
                times_found[name] += np.bincount(top(scores, CUT).ravel(), minlength=len(documents))
    result: Scored = {}
    for name, of_name in answers.items():
        result[f"ndcg_{name}"] = Mean([one.ndcg for one in of_name])
        for index, k in enumerate(RECALLS):
            result[f"recall{k}_{name}"] = Mean([one.recalls[index] for one in of_name])
        result[f"mrr_{name}"] = Mean([one.reciprocal for one in of_name])
        if not of_documents:
            continue
        result[f"hubness_{name}"] = Skewness(times_found[name])
        result[f"never_{name}"] = Mean(times_found[name] == 0)
    return result


@dataclass(frozen=True, slots=True)
class _Ranking:
    """Scores of one query's ranking."""

    ndcg: float
    recalls: tuple[float, ...]
    reciprocal: float


def _ranking(
    row: NDArray[np.float32], documents: NDArray[np.int64], grades: NDArray[np.float64], tolerance: NDArray[np.float32]
) -> _Ranking:
    own_scores = row[documents][:, None]
    before = np.count_nonzero(row > own_scores + tolerance, axis=1)
    equal = np.count_nonzero(row >= own_scores - tolerance, axis=1) - before  # itself among them
    ideal = float(np.sort(grades)[::-1][:CUT] @ _DISCOUNTS[1 : 1 + min(CUT, len(grades))])
    gained = float(grades @ ((_SUMS[np.minimum(before + equal, CUT)] - _SUMS[np.minimum(before, CUT)]) / equal))
    recalls = tuple(float(np.clip((k - before) / equal, 0.0, 1.0).mean()) for k in RECALLS)
    first = int(before.min())
    return _Ranking(gained / ideal, recalls, _reciprocal(first, int(equal[before.argmin()]), before, first))


def _reciprocal(first: int, equal: int, before: NDArray[np.int64], rank: int) -> float:
    """Mean of 1/rank of the first relevant document, 0 beyond `CUT`, over all orders of the documents tied with it."""
    if equal == 1:
        return 1.0 / (first + 1) if first < CUT else 0.0
    relevant = int(np.count_nonzero(before == rank))
    ways = math.comb(equal, relevant)
    reach = min(equal - relevant + 1, CUT - first)
    return sum(math.comb(equal - 1 - j, relevant - 1) / ways / (first + j + 1) for j in range(max(0, reach)))


_DISCOUNTS: Final = np.array([0.0, *(1.0 / math.log2(place + 1) for place in range(1, CUT + 1))])
"""Discounts of ranks 1 … `CUT`, preceded by 0."""
_SUMS: Final = np.cumsum(_DISCOUNTS)
"""Sum of the first k discounts, k = 0 … `CUT`."""

"""How well queries find their documents. Rankings are not sorted: the rank of each relevant document is counted.

Documents with equal scores are tied. The result is the mean over all orders of ties, as in scikit-learn's `ndcg_score`;
otherwise vectors that have all become equal would score as well as the file's order.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from isoviz.readouts.image import ROUNDING, Image
from isoviz.statistics.paired_bootstrap import Mean, Statistic

CUT: Final = 10
"""Ranks that nDCG and MRR consider."""
RECALLS: Final = (1, 10, 100)
_BLOCK: Final = 4_000_000
"""Scores computed at a time."""


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


def measure(image: Image, relevance: Relevance) -> dict[str, Statistic]:
    """Read-outs by slug: means over queries with a relevant document."""
    rows, columns = relevance.queries, relevance.documents
    queries, documents = image.points[rows], image.points[columns]
    lengths, directed = image.lengths[columns], image.directed[columns]
    scale = np.divide(1.0, lengths, out=np.zeros(len(lengths)), where=directed).astype(np.float32)
    step, answers = max(1, _BLOCK // max(1, len(documents))), list[tuple[float, ...]]()
    for start in range(0, len(queries), step):
        scores = queries[start : start + step] @ documents.T
        scores *= scale  # cosines, up to the length of the query
        for index, row in enumerate(scores, start):
            of_query, grades = relevance.graded[index]
            if len(of_query):
                tolerance = np.float32(ROUNDING * image.lengths[rows[index]])
                answers.append(_ranking(row, of_query, grades, tolerance))
    scored = ("ndcg", *(f"recall{k}" for k in RECALLS), "mrr")
    values = np.reshape(answers, (-1, len(scored)))
    return {f"{slug}_cosine": Mean(values[:, place]) for place, slug in enumerate(scored)}


def _ranking(
    row: NDArray[np.float32], documents: NDArray[np.int64], grades: NDArray[np.float64], tolerance: np.float32
) -> tuple[float, ...]:
    """nDCG, recalls and the reciprocal rank of one query's ranking."""
    own_scores = row[documents][:, None]
    before = np.count_nonzero(row > own_scores + tolerance, axis=1)
    equal = np.count_nonzero(row >= own_scores - tolerance, axis=1) - before  # itself among them
    ideal = float(np.sort(grades)[::-1][:CUT] @ _DISCOUNTS[1 : 1 + min(CUT, len(grades))])
    gained = float(grades @ ((_SUMS[np.minimum(before + equal, CUT)] - _SUMS[np.minimum(before, CUT)]) / equal))
    recalls = [float(np.clip((k - before) / equal, 0.0, 1.0).mean()) for k in RECALLS]
    first = int(before.min())
    tied, relevant = int(equal[before.argmin()]), int(np.count_nonzero(before == first))
    return gained / ideal, *recalls, _reciprocal(first, tied, relevant)


def _reciprocal(first: int, equal: int, relevant: int) -> float:
    """Mean of 1/rank of the first relevant document, 0 beyond `CUT`, over all orders of the documents tied with it."""
    ways = math.comb(equal, relevant)
    reach = min(equal - relevant + 1, CUT - first)
    return sum(math.comb(equal - 1 - j, relevant - 1) / ways / (first + j + 1) for j in range(max(0, reach)))


_DISCOUNTS: Final = np.array([0.0, *(1.0 / math.log2(place + 1) for place in range(1, CUT + 1))])
"""Discounts of ranks 1 … `CUT`, preceded by 0."""
_SUMS: Final = np.cumsum(_DISCOUNTS)
"""Sum of the first k discounts, k = 0 … `CUT`."""

"""How well queries find their documents. Rankings are not sorted: the rank of each relevant document is counted.

Documents with equal scores are tied. The result is the mean over all orders of ties, as in scikit-learn's `ndcg_score`;
otherwise vectors that have all become equal would score as well as the file's order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from isoviz.readouts.image import ROUNDING, Image, top
from isoviz.statistics.paired_bootstrap import Jackknife, Mean, Statistic

CUT: Final = 10
"""Ranks that nDCG, MRR and hubness consider."""
RECALLS: Final = (1, 10, 100)
CSLS_NEIGHBOURS: Final = 10
"""Neighbours that CSLS averages over (Conneau et al. 2018, section 2.3)."""
SIMILARITIES: Final = ("dot", "cosine", "csls", "rank", "l1")
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
    names = [name for name in SIMILARITIES if not requested or any(slug.endswith(f"_{name}") for slug in requested)]
    of_documents = not requested or any(slug.startswith(("hubness", "never")) for slug in requested)
    lengths, query_lengths = image.lengths[relevance.documents], image.lengths[relevance.queries]
    of_unit = {"csls": 2.0, "rank": 1.0, "l1": math.sqrt(image.points.shape[1])}  # by how much rounding changes a score
    graded = relevance.graded
    answers: dict[str, list[_Ranking]] = {name: [] for name in names}
    nearest: dict[str, list[NDArray[np.int64]]] = {name: [] for name in names}
    for start, name, scores in _scores(image, relevance, names):
        for index, row in enumerate(scores, start):
            of_query, grades = graded[index]
            if not len(of_query):
                continue
            # that of products of vectors depends on both lengths
            sizes = lengths[of_query] if name == "dot" else np.ones(len(of_query))
            tolerance = (ROUNDING * of_unit.get(name, query_lengths[index]) * sizes).astype(np.float32)[:, None]
            answers[name].append(_ranking(row, of_query, grades, tolerance))
        if of_documents:
            nearest[name].append(_last_at_the_end(top(scores, CUT + 1), scores))
    result: Scored = {}
    for name, of_name in answers.items():
        result[f"ndcg_{name}"] = Mean([one.ndcg for one in of_name])
        for index, k in enumerate(RECALLS):
            result[f"recall{k}_{name}"] = Mean([one.recalls[index] for one in of_name])
        result[f"mrr_{name}"] = Mean([one.reciprocal for one in of_name])
        if of_documents:
            result |= _times_found(np.concatenate(nearest[name]), len(relevance.documents), name)
    return result


def _scores(
    image: Image, relevance: Relevance, names: Collection[str]
) -> Iterator[tuple[int, str, NDArray[np.float32]]]:
    """Scores (b, c) of b queries from `start` on with all documents by each similarity, up to a constant for each query."""
    rows, columns = relevance.queries, relevance.documents
    queries, documents = image.points[rows], image.points[columns]
    lengths, directed = image.lengths[columns], image.directed[columns]
    scale = np.divide(1.0, lengths, out=np.zeros(len(lengths)), where=directed).astype(np.float32)
    crowding = _crowding(image.unit[rows], image.unit[columns]) if "csls" in names else None
    step = max(1, _BLOCK // max(1, len(documents)))
    for start in range(0, len(queries), step):
        block = rows[start : start + step]
        if "dot" in names or "cosine" in names:
            scores = queries[start : start + step] @ documents.T
            if "dot" in names:
                yield start, "dot", scores
            if "cosine" in names:
                scores *= scale
                yield start, "cosine", scores
        if crowding is not None:
            yield start, "csls", 2 * (image.unit[block] @ image.unit[columns].T) - crowding
        if "rank" in names:
            yield start, "rank", image.ranks.unit[block] @ image.ranks.unit[columns].T
        if "l1" in names:
            from scipy.spatial.distance import cdist

            yield start, "l1", -cdist(image.own.unit[block], image.own.unit[columns], "cityblock").astype(np.float32)


def _crowding(queries: NDArray[np.float32], documents: NDArray[np.float32]) -> NDArray[np.float32]:
    """(c,): the mean cosine of each document with its nearest queries, r_S of Conneau et al. 2018, section 2.3.

    The same of each query, r_T, shifts all its scores alike and does not change its ranking.
    """
    k = min(CSLS_NEIGHBOURS, len(queries))
    blocks = np.array_split(documents, max(1, -(-len(documents) * len(queries) // _BLOCK)))
    nearest = [np.partition(block @ queries.T, len(queries) - k, axis=1)[:, -k:] for block in blocks]
    return np.concatenate(nearest).mean(axis=1)


def _last_at_the_end(near: NDArray[np.int64], scores: NDArray[np.float32]) -> NDArray[np.int64]:
    """`near` (q, k) with the document of lowest score in the last column."""
    rows, last = np.arange(len(near)), np.take_along_axis(scores, near, axis=1).argmin(axis=1)
    near[rows, last], near[:, -1] = near[:, -1], near[rows, last].copy()
    return near


def _times_found(nearest: NDArray[np.int64], count: int, name: str) -> Scored:
    """Hubness and the share of documents never found, with the first `CUT` + 1 documents of each query, the last one last."""
    found, following = nearest[:, :CUT], nearest[:, CUT:]
    times = np.bincount(found.ravel(), minlength=count)
    number = np.arange(times.max(initial=0) + len(nearest) + 1, dtype=np.float64)
    powers = number[:, None] ** np.arange(4)
    total = powers[times].sum(axis=0)

    def without() -> NDArray[np.float64]:
        """(count,) skewness without each document, for which its queries find their next one."""
        sums = total - powers[times]
        if following.size:
            moves, more = np.unique((found * count + following).ravel(), return_counts=True)
            lost, gained = np.divmod(moves, count)
            np.add.at(sums, lost, powers[times[gained] + more] - powers[times[gained]])
        return _skewness(sums)

    return {
        f"hubness_{name}": Jackknife(float(_skewness(total)), count, without),
        f"never_{name}": Mean(times == 0),
    }


def _skewness(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """E(x − x̄)³/σ³ from (..., 4): the number of values and the sums of their first three powers."""
    mean, square, cube = (sums[..., power] / sums[..., 0] for power in (1, 2, 3))
    variance = square - mean**2
    third = cube - 3 * mean * square + 2 * mean**3
    return np.divide(third, np.abs(variance) ** 1.5, out=np.full(third.shape, np.nan), where=variance > 1e-9)


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

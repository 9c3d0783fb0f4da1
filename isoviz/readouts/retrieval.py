"""How well queries find their documents. Rankings are not sorted: the rank of each relevant document is counted.

Documents with equal scores are tied. The result is the mean over all orders of ties, as in scikit-learn's `ndcg_score`;
otherwise vectors that have all become equal would score as well as the file's order. Hubness is the skewness of the mean counts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoviz.readouts.image import ROUNDING, Image, top
from isoviz.statistics.paired_bootstrap import Jackknife, Mean, Statistic

if TYPE_CHECKING:
    from scipy.sparse import csr_array

CUT: Final = 10
"""Ranks that nDCG, MRR and hubness consider."""
RECALLS: Final = (1, 10, 100)
SIMILARITIES: Final = ("dot", "cosine")
_BLOCK: Final = 4_000_000
"""Scores computed at a time."""
_MOST_GAINS: Final = 2e7
"""Most pairs of documents in one tie for which hubness has an interval."""

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
    graded = relevance.graded
    answers: dict[str, list[tuple[float, ...]]] = {name: [] for name in names}
    nearest: dict[str, list[_Nearest]] = {name: [] for name in names}
    for start, name, scores in _scores(image, relevance, names):
        for index, row in enumerate(scores, start):
            of_query, grades = graded[index]
            if not len(of_query):
                continue
            # that of products of vectors depends on both lengths
            sizes = lengths[of_query] if name == "dot" else np.ones(len(of_query))
            tolerance = (ROUNDING * query_lengths[index] * sizes).astype(np.float32)[:, None]
            answers[name].append(_ranking(row, of_query, grades, tolerance))
        if of_documents:
            tolerances = ROUNDING * query_lengths[start : start + len(scores)]
            nearest[name].append(_nearest(scores, tolerances, lengths if name == "dot" else np.ones(len(lengths))))
    result: Scored = {}
    scored = ("ndcg", *(f"recall{k}" for k in RECALLS), "mrr")
    for name, of_name in answers.items():
        values = np.reshape(of_name, (-1, len(scored)))
        result |= {f"{slug}_{name}": Mean(values[:, place]) for place, slug in enumerate(scored)}
        if of_documents:
            result |= _times_found(nearest[name], len(relevance.documents), name)
    return result


def _scores(
    image: Image, relevance: Relevance, names: Collection[str]
) -> Iterator[tuple[int, str, NDArray[np.float32]]]:
    """Scores (b, c) of b queries from `start` on with all documents by each similarity, up to a constant for each query."""
    rows, columns = relevance.queries, relevance.documents
    queries, documents = image.points[rows], image.points[columns]
    lengths, directed = image.lengths[columns], image.directed[columns]
    scale = np.divide(1.0, lengths, out=np.zeros(len(lengths)), where=directed).astype(np.float32)
    step = max(1, _BLOCK // max(1, len(documents)))
    for start in range(0, len(queries), step):
        scores = queries[start : start + step] @ documents.T
        if "dot" in names:
            yield start, "dot", scores
        if "cosine" in names:
            scores *= scale
            yield start, "cosine", scores


class _Nearest(NamedTuple):
    """The first `CUT` documents of queries.

    Attributes:
        untied: (q, `CUT` + 1) documents of queries without a tie at the last place or the next, the following document last.
        certain, tied: (t, c) of other queries: 1 for documents before the tie, and in it, which share the places that are left.
    """

    untied: NDArray[np.int64]
    certain: csr_array
    tied: csr_array


def _nearest(scores: NDArray[np.float32], tolerance: NDArray[np.float64], lengths: NDArray[np.float64]) -> _Nearest:
    """Of the scores (b, c) of some queries.

    Args:
        tolerance: (b,) by how much rounding changes a score with a document of length 1.
        lengths: (c,) of the documents.
    """
    from scipy.sparse import csr_array

    near = top(scores, CUT + 2)
    of_near = np.take_along_axis(scores, near, axis=1)
    order = np.argsort(-of_near, axis=1, kind="stable")
    near, of_near = np.take_along_axis(near, order, axis=1), np.take_along_axis(of_near, order, axis=1)
    if near.shape[1] <= CUT:
        nothing = csr_array((0, scores.shape[1]), dtype=np.float32)
        return _Nearest(near, nothing, nothing)
    step = (tolerance * lengths[near[:, CUT - 1]]).astype(np.float32)
    last_ties = of_near[:, CUT - 1] - of_near[:, CUT] <= step
    ties = last_ties | (of_near[:, CUT] - of_near[:, CUT + 1 :].max(axis=1, initial=-np.inf) <= step)
    above = scores[ties] - of_near[ties, np.where(last_ties, CUT - 1, CUT)[ties]][:, None]
    rows, columns = np.nonzero(above >= -step[ties, None])
    certain = above[rows, columns] > step[ties][rows]
    parts = [
        csr_array((np.ones(part.sum(), np.float32), (rows[part], columns[part])), shape=above.shape)
        for part in (certain, ~certain)
    ]
    return _Nearest(near[~ties, : CUT + 1], *parts)


def _times_found(parts: Sequence[_Nearest], count: int, name: str) -> Scored:
    """Hubness and the share of documents never found."""
    from scipy.sparse import coo_array, vstack

    untied = np.concatenate([part.untied for part in parts])
    found, following = untied[:, :CUT], untied[:, CUT:]
    certain, tied = vstack([part.certain for part in parts]), vstack([part.tied for part in parts])
    places, sizes = CUT - certain.sum(axis=1, dtype=np.float64), tied.sum(axis=1, dtype=np.float64)
    chance = places / sizes
    surely = np.bincount(found.ravel(), minlength=count) + certain.sum(axis=0)
    times = surely + chance @ tied
    never = np.where(surely > 0, 0.0, np.exp(np.log1p(-chance) @ tied))
    total = _powers(times).sum(axis=0)

    def without() -> NDArray[np.float64]:
        """(count,) skewness without each document, for which its queries find their next one, or the others of a tie more often."""
        if float(sizes @ sizes) > _MOST_GAINS:
            return np.full(count, np.nan)
        gains = certain.T @ (tied / sizes[:, None]) + tied.T @ (tied * (chance / (sizes - 1))[:, None])
        moves = found[:, : CUT * following.shape[1]]
        next_ones = np.broadcast_to(following, moves.shape)
        of_untied = coo_array((np.ones(moves.size), (moves.ravel(), next_ones.ravel())), shape=(count, count))
        lost, gained = (gains := (gains + of_untied).tocoo()).coords
        changes = _powers(times[gained] + gains.data) - _powers(times[gained])
        changes[lost == gained] = 0.0
        sums = total - _powers(times)
        np.add.at(sums, lost, changes)
        return _skewness(sums)

    return {f"hubness_{name}": Jackknife(float(_skewness(total)), count, without), f"never_{name}": Mean(never)}


def _powers(times: NDArray[np.float64]) -> NDArray[np.float64]:
    """(..., 4): the powers 0 to 3."""
    return np.asarray(times, np.float64)[..., None] ** np.arange(4)


def _skewness(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """E(x − x̄)³/σ³ from (..., 4): the number of values and the sums of their first three powers."""
    mean, square, cube = (sums[..., power] / sums[..., 0] for power in (1, 2, 3))
    variance = square - mean**2
    third = cube - 3 * mean * square + 2 * mean**3
    return np.divide(third, np.abs(variance) ** 1.5, out=np.full(third.shape, np.nan), where=variance > 1e-9)


def _ranking(
    row: NDArray[np.float32], documents: NDArray[np.int64], grades: NDArray[np.float64], tolerance: NDArray[np.float32]
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

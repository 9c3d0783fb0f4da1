"""Is a search's best hit right? P(it is relevant | its cosine), and below which cosine to answer *not found*; intervals over queries."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from isoviz.readouts.ruler.pairs import FEWEST_RELATED, ROUNDING, Matrix, Relation
from isoviz.readouts.ruler.records import WIDEST, Hits, Share, Threshold
from isoviz.statistics import dyads

_BLOCK: Final = 4_000_000
Rows = NDArray[np.intp]


def measure_hits(x: Matrix, relation: Relation, queries: Rows, documents: Rows, wanted: float) -> Hits:
    """Of each query its best hit among all documents. Queries that share a relevant document are one unit."""
    cosine, right = best(x, relation.pairs, queries, documents)
    groups = relation.groups[queries]
    grid = np.linspace(cosine.min(), cosine.max(), 101)
    curve = calibrated(cosine, right, groups, grid)
    return Hits(
        queries=len(queries),
        documents=len(documents),
        right=share(right, np.ones(len(right)), groups),
        wanted=wanted,
        threshold=threshold(cosine, right, groups, np.interp(cosine, grid, curve[0]), wanted),
        **{name: y.tolist() for name, y in zip(("cosine", "probability", "low", "high"), (grid, *curve), strict=True)},
    )


def best(x: Matrix, pairs: Rows, queries: Rows, documents: Rows) -> tuple[Matrix, Matrix]:
    """Each query's highest cosine with a document other than itself, and the share of the documents with it that are relevant."""
    from scipy.sparse import csr_array

    unit, parts = x / np.linalg.norm(x, axis=1, keepdims=True), []
    relevant = csr_array((np.ones(len(pairs), bool), pairs.T), shape=(len(x), len(x)))
    for block in np.array_split(queries, 1 + len(queries) * len(documents) // _BLOCK):
        cosines = np.clip(unit[block] @ unit[documents].T, -1, 1)
        cosines[block[:, None] == documents] = -np.inf
        first = cosines >= cosines.max(axis=1, keepdims=True) - ROUNDING
        right = (first & relevant[block][:, documents].toarray()).sum(axis=1) / first.sum(axis=1)
        parts.append((cosines.max(axis=1), right))
    cosine, right = np.concatenate(parts, axis=1)
    return cosine, right


def calibrated(cosine: Matrix, right: Matrix, groups: Rows, at: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """P(right | cosine), an isotonic curve, at these cosines, with the 95 % interval of the share of the n^⅔ queries around each."""
    from scipy.optimize import isotonic_regression

    values, place, counts = np.unique(cosine, return_inverse=True, return_counts=True)
    probability = np.interp(at, values, isotonic_regression(np.bincount(place, right) / counts, weights=counts).x)
    order, half = np.argsort(cosine, kind="stable"), round(len(cosine) ** (2 / 3)) // 2
    near = [order[max(middle - half, 0) : middle + half] for middle in np.searchsorted(cosine[order], at)]
    _, low, high = np.transpose([share(right[rows], np.ones(len(rows)), groups[rows]) for rows in near])
    low, high = np.maximum.accumulate(low), np.minimum.accumulate(high[::-1])[::-1]
    return probability, np.minimum(low, probability), np.maximum(high, probability)


def threshold(cosine: Matrix, right: Matrix, groups: Rows, predicted: Matrix, wanted: float) -> Threshold | None:
    """The lowest cosine from which on the curve expects the wanted precision, and the precision that the best hits have there."""
    order = np.argsort(-cosine, kind="stable")
    expected = np.cumsum(predicted[order]) / np.arange(1, len(order) + 1)
    last = np.append(np.diff(cosine[order]) < 0, True)  # of equal cosines
    reached = np.flatnonzero(last & (expected >= wanted) & (np.arange(len(order)) >= FEWEST_RELATED - 1))
    if not reached.size:
        return None
    least = float(cosine[order[reached[-1]]])
    below = (cosine < least).astype(float)
    value, low, high = share(right, 1 - below, groups)
    lost, avoided = (share(below, of, groups) for of in (right, 1 - right))
    narrow, recall = high - low <= WIDEST, 1 - lost[0]
    return Threshold(
        cosine=least, precision=value, low=low, high=high, recall=recall, recommended=narrow, lost=lost, avoided=avoided
    )


def share(values: Matrix, weights: Matrix, groups: Rows) -> Share:
    """A weighted mean of values from 0 to 1 with its 95 % interval, which counts groups."""
    counted = weights > 0
    if not counted.any():
        return 0.0, 0.0, 1.0
    weights = weights / weights.sum()
    mean = float(values @ weights)
    terms = ((values - mean) * weights)[counted]
    sums = np.bincount(np.unique(groups[counted], return_inverse=True)[1], terms)
    freedom = max(len(sums) - 1, 1)
    variance = max(float(sums @ sums), float(terms @ terms)) * len(sums) / freedom
    return mean, *dyads.share_interval(mean, dyads.effective(mean, dyads.Variance(variance, freedom, len(sums))))

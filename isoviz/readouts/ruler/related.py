"""What related pairs add: separation, P(related | cosine), its error, a threshold; and what transforms change of it."""

from __future__ import annotations

import itertools
from typing import Final

import numpy as np
from numpy.typing import NDArray

from isoviz import posthoc
from isoviz.errors import InputError
from isoviz.readouts.ruler.pairs import (
    FEWEST_RELATED,
    FEWEST_ROWS,
    MOST_RELATED,
    ROUNDING,
    Matrix,
    PairCosines,
    Relation,
    pairs_of,
    together,
)
from isoviz.readouts.ruler.records import WIDEST, Related, Threshold, Variant
from isoviz.statistics import dyads

ALPHA: Final = 0.01
"""How often unrelated pairs are called separable by a threshold."""
_BINS: Final = 200
_FINE: Final = np.linspace(0, 1, 1001)
"""Quantiles among which a threshold is looked for."""
_HALVES: Final = 200
_PERMUTATIONS: Final = 999
_MOST_PERMUTED: Final = 3_000
_FEWEST_ABOVE: Final = 10
_GROUPS: Final = 10
"""Of probabilities, for their error."""


def judge(x: Matrix, relation: Relation, generator: np.random.Generator) -> PairCosines:
    """The cosines from which related pairs are judged."""
    pairs = pairs_of(x, relation, generator, MOST_RELATED, paired=True)
    if min(pairs.related.sum(), pairs.unrelated.sum()) < FEWEST_RELATED:
        raise InputError.at("pairs", "too few related or unrelated pairs among the rows drawn")
    return pairs.cosines(x)


def measure_related(
    x: Matrix, relation: Relation, share: float, wanted: float, generator: np.random.Generator
) -> Related:
    judged = judge(x, relation, generator)
    p = permuted(x, relation.pairs, generator)
    auc, terms = judged.auc()
    cosine, probability, error = _calibrated(judged, share, generator)
    return Related(
        pairs=len(relation.pairs),
        share=share,
        auc=(auc, *dyads.share_interval(auc, dyads.effective(auc, judged.variance(terms)))),
        p=p,
        separates=p <= ALPHA,
        cosine=cosine.tolist(),
        probability=probability.tolist(),
        error=error,
        threshold=_threshold(judged, share, wanted) if p <= ALPHA else None,
        wanted=wanted,
        alignment=judged.alignment(),
    )


def _threshold(judged: PairCosines, share: float, wanted: float) -> Threshold | None:
    """The lowest cosine from which on no precision falls below the wanted one, as long as `_FEWEST_ABOVE` related pairs lie above."""
    candidates = np.unique([np.quantile(values, _FINE) for values in (judged.related, judged.unrelated)])
    alarms, recalls = judged.above(candidates)
    enough = np.flatnonzero(recalls >= _FEWEST_ABOVE / len(judged.related))
    precision = share * recalls[enough] / (share * recalls[enough] + (1 - share) * alarms[enough])
    misses = np.flatnonzero(precision < wanted)
    reached = enough[misses[-1] + 1 :] if misses.size else enough
    if not reached.size:
        return None
    cosine = float(candidates[reached[0]])
    value, low, high = judged.precision(cosine, share)
    recall = float(recalls[reached[0]])
    return Threshold(
        cosine=cosine, precision=value, low=low, high=high, recall=recall, recommended=high - low <= WIDEST
    )


def _calibrated(
    judged: PairCosines, share: float, generator: np.random.Generator
) -> tuple[Matrix, Matrix, tuple[float, float, float]]:
    """Cosines, P(related) there, never falling, and its expected error in ten groups of equal weight with a 95 % interval.

    The curves of random halves of the groups are as far from the curve of all as that one is from the truth (half-samples, McCarthy 1969,
    doi:10.2307/1402116; subsamples remain valid for isotonic curves, unlike the bootstrap).
    """
    # half of the edges from related pairs, because these are few
    shares, count = np.linspace(0, 1, _BINS // 2), judged.pairs.group_count
    edges = np.unique([np.quantile(values, shares) for values in (judged.related, judged.unrelated)])
    halves = [generator.permutation(count) < count // 2 for _ in range(_HALVES)]
    every, *others = np.moveaxis(_histograms(judged, edges, np.stack([np.ones(count, bool), *halves], axis=1)), 2, 0)
    curve, weight, errors = _curve(every, share), share * every[1] + (1 - share) * every[0], []
    for half in others:
        predicted = _curve(half, share)
        order = np.argsort(predicted, kind="stable")
        groups = np.minimum((_GROUPS * (np.cumsum(weight[order]) - weight[order] / 2)).astype(int), _GROUPS - 1)
        errors.append(np.abs(np.bincount(groups, ((predicted - curve) * weight)[order])).sum())
    low, high = np.quantile(errors, [0.025, 0.975])
    return np.append((edges[:-1] + edges[1:]) / 2, edges[-1]), curve, (float(np.mean(errors)), float(low), float(high))


def _histograms(judged: PairCosines, edges: Matrix, samples: NDArray[np.bool_]) -> Matrix:
    """(2, bins, r): shares of unrelated and of related pairs in each bin, of those whose groups are both in each sample (groups, r)."""
    pairs = judged.pairs
    compared = np.flatnonzero(pairs.unrelated | pairs.related)
    places = np.searchsorted(edges, judged.values.ravel()[compared], side="right") - 1
    places += len(edges) * pairs.related.ravel()[compared]
    order = np.argsort(places, kind="stable")
    row, column = np.divmod(compared[order], judged.values.shape[1])
    left, right, drawn = pairs.groups[0][row], pairs.groups[1][column], samples.astype(np.float32)
    counts = np.zeros((2 * len(edges), samples.shape[1]))
    starts = np.searchsorted(places[order], np.arange(2 * len(edges) + 1))
    for place, (start, end) in enumerate(itertools.pairwise(starts)):
        counts[place] = np.einsum("pr,pr->r", drawn[left[start:end]], drawn[right[start:end]])
    sums = counts.reshape(2, len(edges), -1)
    return sums / np.maximum(sums.sum(axis=1, keepdims=True), 1e-300)


def _curve(histograms: Matrix, share: float) -> Matrix:
    """P(related) in each bin, never falling."""
    from scipy.optimize import isotonic_regression

    wanted, other = share * histograms[1], (1 - share) * histograms[0]
    weights = np.maximum(wanted + other, 1e-12)
    fitted: Matrix = isotonic_regression(wanted / weights, weights=weights).x
    return fitted


def permuted(x: Matrix, pairs: NDArray[np.intp], generator: np.random.Generator) -> float:
    """p of the test that the related rows were matched at random: rows (of the right side, if there are two) change places."""
    two = not np.intersect1d(pairs[:, 0], pairs[:, 1]).size
    rows = max(len(np.unique(side)) for side in (pairs.T if two else (pairs,)))
    most = 20 * MOST_RELATED if rows <= _MOST_PERMUTED else _MOST_PERMUTED // (1 if two else 2)
    if len(pairs) > most:
        pairs = pairs[generator.choice(len(pairs), most, replace=False)]
    lefts, rights = (np.unique(side) for side in (pairs.T if two else (pairs, pairs)))
    partner, place = np.searchsorted(lefts, pairs[:, 0]), np.searchsorted(rights, pairs[:, 1])
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    products = unit[lefts] @ unit[rights].T

    def statistic(order: NDArray[np.intp]) -> float:
        return float(products[partner if two else order[partner], order[place]].sum())

    observed = statistic(np.arange(len(rights)))
    least = observed - 1e-9 * max(1.0, abs(observed))
    above = sum(statistic(generator.permutation(len(rights))) >= least for _ in range(_PERMUTATIONS))
    return (above + 1) / (_PERMUTATIONS + 1)


# ---------------------------------------------------------------------------------------------------------- variants


def measure_variants(x: Matrix, relation: Relation | None, generator: np.random.Generator) -> list[Variant]:
    """The vectors as they are and after each transform, which is fitted on the rows that do not judge."""
    every = np.arange(len(x))
    groups = every if relation is None else together(relation.groups, every)
    count = int(groups.max()) + 1
    fits = (generator.permutation(count) < count // 2)[groups]
    rows = np.flatnonzero(~fits)
    inside = None if relation is None else relation.among(rows)
    compared = pairs_of(x[rows], inside, generator, MOST_RELATED)
    if compared.unrelated.sum() < FEWEST_ROWS:
        return []
    paired = None
    if inside is not None and len(inside.pairs) >= FEWEST_RELATED:
        paired = pairs_of(x[rows], inside, generator, MOST_RELATED, paired=True)
    if paired is not None and min(paired.related.sum(), paired.unrelated.sum()) < FEWEST_RELATED:
        paired = None
    transforms = {
        "as they are": None,
        "centred": posthoc.zca(strength=0.0),
        "all-but-the-top": posthoc.all_but_the_top(),
        "each dimension standardised": posthoc.batch_norm(),
        "soft ZCA whitening": posthoc.zca(ridge=1.0),
        "CSLS": None,
    }
    found: list[Variant] = []
    first: tuple[float, Matrix] | None = None
    for name, transform in transforms.items():
        y = x[rows] if transform is None else np.asarray(transform.fit(x[fits]).transform(x[rows]), dtype=np.float64)
        if np.linalg.norm(y, axis=1).min() <= ROUNDING * np.linalg.norm(x[rows], axis=1).max():
            continue  # nothing, or only rounding, is left of a row
        local = name == "CSLS"
        noise = float(np.quantile(compared.cosines(y, local).unrelated, 0.99))
        auc = gain = None
        if paired is not None:
            judged = paired.cosines(y, local)
            auc, terms = judged.auc()
            first = first or (auc, terms)
            change, spread = auc - first[0], judged.variance(terms - first[1]).spread
            gain = change, change - spread, change + spread
        found.append(Variant(name=name, noise_floor=noise, auc=auc, gain=gain))
    return found

"""What related pairs add: separation, P(related | cosine), its error, a threshold; and what transforms change of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from isoviz import posthoc
from isoviz.cosines.floor import Floor
from isoviz.cosines.records import Related, Threshold, Variant
from isoviz.cosines.sides import FEWEST_RELATED, MOST_RELATED, Matrix, Sides, sides_of
from isoviz.errors import InputError

ALPHA: Final = 0.01
"""How often unrelated pairs are called separable by a threshold."""
_BINS: Final = 200
_REPLICATES: Final = 200
_PERMUTATIONS: Final = 999
_MOST_PERMUTED: Final = 3_000
_FEWEST_ABOVE: Final = 10


@dataclass(frozen=True)
class _Judged:
    """The cosines of some rows in bins, and the units that are drawn with replacement: rows, or groups that pairs connect."""

    bins: NDArray[np.intp]
    edges: Matrix
    is_related: NDArray[np.bool_]
    units: tuple[NDArray[np.intp], NDArray[np.intp]]
    count: int

    def histograms(self, weights: Matrix | None, half: NDArray[np.bool_] | None = None) -> Matrix:
        """(2, bins): weights of unrelated and of related pairs, each with sum 1; of one half's pairs only, if given."""
        left, right = self.units
        drawn = np.ones(self.count) if weights is None else weights
        of_pair = np.where(
            left == right, drawn[left], drawn[left] * drawn[right]
        )  # pairs within a unit are drawn with it
        if half is not None:
            of_pair = of_pair * (half[left] & half[right])
        sums = np.bincount(self.bins + len(self.edges) * self.is_related, of_pair, 2 * len(self.edges)).reshape(2, -1)
        return sums / np.maximum(sums.sum(axis=1, keepdims=True), 1e-300)


def judge(
    x: Matrix, relation: NDArray[np.intp], generator: np.random.Generator, most: int, *, local: bool = False
) -> _Judged:
    if (
        len(relation) > most and np.bincount(relation.ravel()).max() <= 3
    ):  # whole pairs rather than rows whose partners are not drawn
        relation = relation[np.sort(generator.choice(len(relation), most, replace=False))]
    two = not np.intersect1d(relation[:, 0], relation[:, 1]).size
    sides = sides_of(relation, len(x), generator, most) if two else sides_of(None, 0, generator, most)
    if not two:
        rows = np.unique(relation)
        rows = np.sort(generator.choice(rows, most, replace=False)) if len(rows) > most else rows
        sides = Sides(rows, rows, False, False)
    cosines, known = sides.cosines(x, local), sides.known(relation)
    chosen = ~sides.same
    inside = np.union1d(sides.left, sides.right)
    units = units_of(relation, len(x), inside)
    number = np.full(int(units.max()) + 1, -1)
    used = np.unique(units[inside])
    number[used] = np.arange(len(used))
    row, column = np.nonzero(chosen)
    values = cosines[chosen]
    is_related = known[chosen]
    if is_related.sum() < FEWEST_RELATED or (~is_related).sum() < FEWEST_RELATED:
        raise InputError("pairs: too few related or unrelated pairs among the rows drawn", field="pairs")
    # half of the edges from related pairs, because these are few
    edges = np.unique(
        np.concatenate(
            [np.quantile(values[group], np.linspace(0, 1, _BINS // 2)) for group in (is_related, ~is_related)]
        )
    )
    bins = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 1)
    ends = (number[units[sides.left[row]]], number[units[sides.right[column]]])
    return _Judged(bins, edges, is_related, ends, len(used))


def units_of(relation: NDArray[np.intp], n: int, inside: NDArray[np.intp]) -> NDArray[np.intp]:
    """(n,) the group of each row that pairs connect; each row alone, if one group has more than a tenth of the rows `inside`."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    groups: NDArray[np.intp] = connected_components(
        coo_array((np.ones(len(relation)), relation.T), (n, n)), directed=False
    )[1]
    return groups if np.bincount(groups[inside]).max() <= 0.1 * len(inside) else np.arange(n)


def auc_of(histograms: Matrix) -> float:
    unrelated, related = histograms
    return float((related * (np.cumsum(unrelated) - unrelated / 2)).sum())


def _precision(histograms: Matrix, share: float) -> tuple[Matrix, Matrix]:
    """Precision and recall of the pairs at or above each bin."""
    unrelated, related = histograms[:, ::-1].cumsum(axis=1)[:, ::-1]
    wanted, other = share * related, (1 - share) * unrelated
    return wanted / np.maximum(wanted + other, 1e-300), related


def _lowest(histograms: Matrix, share: float, wanted: float, few: float) -> int | None:
    """The lowest bin from which on no precision falls below the wanted one, as long as more than `few` of the related pairs lie above."""
    precision, recall = _precision(histograms, share)
    enough = np.flatnonzero(recall >= few)
    misses = np.flatnonzero(precision[enough] < wanted)
    reached = enough[misses[-1] + 1 :] if misses.size else enough
    return int(reached[0]) if reached.size else None


def _curve(histograms: Matrix, share: float) -> Matrix:
    """P(related) in each bin, never falling."""
    from scipy.optimize import isotonic_regression

    wanted, other = share * histograms[1], (1 - share) * histograms[0]
    weights = np.maximum(wanted + other, 1e-12)
    fitted: Matrix = isotonic_regression(wanted / weights, weights=weights).x
    return fitted


def _error(judged: _Judged, weights: Matrix | None, half: NDArray[np.bool_], share: float) -> float:
    """Expected calibration error in ten groups of equal weight: each half of the units judges the curve of the other."""
    errors = []
    for fitting in (half, ~half):
        predicted = _curve(judged.histograms(weights, fitting), share)
        test = judged.histograms(weights, ~fitting) * np.array([[1 - share], [share]])
        order = np.argsort(predicted, kind="stable")
        total = test.sum(axis=0)[order]
        group = np.minimum((10 * (np.cumsum(total) - total / 2) / max(total.sum(), 1e-300)).astype(int), 9)
        gap = np.bincount(group, predicted[order] * total - test[1][order], 10)
        errors.append(float(np.abs(gap).sum()))
    return sum(errors) / 2


def measure_related(
    x: Matrix, relation: NDArray[np.intp], share: float, wanted: float, generator: np.random.Generator
) -> Related:
    judged = judge(x, relation, generator, MOST_RELATED)
    p = _permuted(x, relation, generator)
    histograms = judged.histograms(None)
    half = generator.permutation(judged.count) < judged.count // 2
    few = _FEWEST_ABOVE / judged.is_related.sum()
    place = _lowest(histograms, share, wanted, few)
    draws = draws_of(judged.count, generator)
    again = [judged.histograms(draw) for draw in draws]
    auc = auc_of(histograms), *ends([auc_of(one) for one in again])
    separates = p <= ALPHA
    threshold = None
    if separates and place is not None:
        precision, recall = _precision(histograms, share)
        # a threshold chosen on these pairs looks too good on them: by as much as one chosen on a replicate looks better there than here
        chosen = [(one, at) for one in again if (at := _lowest(one, share, wanted, few)) is not None]
        optimism = float(np.mean([_precision(one, share)[0][at] - precision[at] for one, at in chosen] or [0.0]))
        estimate = float(precision[place]) - optimism
        low, high = _around(estimate, [float(_precision(one, share)[0][place]) for one in again])
        threshold = Threshold(
            cosine=float(judged.edges[place]), precision=estimate, low=low, high=high, recall=float(recall[place])
        )
    error = _error(judged, None, half, share), *ends([_error(judged, draw, half, share) for draw in draws])
    return Related(
        pairs=len(relation),
        share=share,
        auc=auc,
        p=p,
        separates=separates,
        cosine=judged.edges.tolist(),
        probability=_curve(histograms, share).tolist(),
        error=error,
        threshold=threshold,
        wanted=wanted,
    )


def draws_of(count: int, generator: np.random.Generator) -> list[Matrix]:
    """How often each unit is drawn, in each replicate of the bootstrap."""
    return [
        np.bincount(generator.integers(count, size=count), minlength=count).astype(float) for _ in range(_REPLICATES)
    ]


def ends(values: Sequence[float]) -> tuple[float, float]:
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def _around(estimate: float, values: Sequence[float]) -> tuple[float, float]:
    """A 95 % interval of a share from its bootstrap: normal on the logit scale, so that it stays within 0 and 1."""
    from scipy.special import expit, logit

    least = 1e-6
    spread = float(np.std(logit(np.clip(values, least, 1 - least)), ddof=1))
    low, high = expit(float(logit(np.clip(estimate, least, 1 - least))) + 1.96 * spread * np.array([-1, 1]))
    return float(low), float(high)


def _permuted(x: Matrix, relation: NDArray[np.intp], generator: np.random.Generator) -> float:
    """p of the test that the related rows were matched at random: rows (of the right side, if there are two) change places."""
    if len(relation) > 20 * MOST_RELATED:
        relation = relation[generator.choice(len(relation), 20 * MOST_RELATED, replace=False)]
    left, right = relation.T
    two = not np.intersect1d(left, right).size
    rows = np.unique(right) if two else np.unique(relation)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    place = np.searchsorted(rows, right)
    if two:
        # Σ over related pairs of x̂_left · x̂_right, with the right rows in another order: their partners' sums are computed once
        sums = np.zeros((len(rows), x.shape[1]))
        np.add.at(sums, place, unit[left])
        products = sums @ unit[rows].T
        each = np.arange(len(rows))
        statistic = lambda order: products[each, order].sum()  # noqa: E731
    else:
        products = unit[rows] @ unit[rows].T if len(rows) <= _MOST_PERMUTED else None
        ends = np.searchsorted(rows, left), place

        def statistic(order: NDArray[np.intp]) -> float:
            a, b = order[ends[0]], order[ends[1]]
            return float(products[a, b].sum() if products is not None else (unit[rows[a]] * unit[rows[b]]).sum())

    observed = statistic(np.arange(len(rows)))
    least = observed - 1e-9 * max(1.0, abs(observed))
    above = sum(statistic(generator.permutation(len(rows))) >= least for _ in range(_PERMUTATIONS))
    return (above + 1) / (_PERMUTATIONS + 1)


# ---------------------------------------------------------------------------------------------------------- variants


def measure_variants(x: Matrix, relation: NDArray[np.intp] | None, generator: np.random.Generator) -> list[Variant]:
    """The vectors as they are and after each transform, which is fitted on the rows that do not judge."""
    every = np.arange(len(x))
    groups = every if relation is None else units_of(relation, len(x), every)
    fits = (generator.permutation(int(groups.max()) + 1) < (int(groups.max()) + 1) // 2)[groups]
    rows = np.flatnonzero(~fits)
    inside = None
    if relation is not None:
        number = np.full(len(x), -1)
        number[rows] = np.arange(len(rows))
        inside = number[relation]
        inside = inside[(inside >= 0).all(axis=1)]
        if len(inside) < FEWEST_RELATED:
            inside = None
    ridge = float(x[fits].var(axis=0).mean())
    transforms = {
        "as they are": None,
        "centred": posthoc.zca(strength=0.0),
        "all-but-the-top": posthoc.all_but_the_top(),
        "each dimension standardised": posthoc.batch_norm(),
        "soft ZCA whitening": posthoc.zca(eps=ridge),
        "CSLS": None,
    }
    found: list[Variant] = []
    first: list[float] = []
    seeds = int(generator.integers(2**31))
    for name, transform in transforms.items():
        y = x[rows] if transform is None else np.asarray(transform.fit(x[fits]).transform(x[rows]), dtype=np.float64)
        if not np.linalg.norm(y, axis=1).all():
            continue
        sides = sides_of(inside, len(y), np.random.default_rng(seeds), MOST_RELATED)
        local = name == "CSLS"
        cosines = sides.cosines(y, local)
        floor = Floor(cosines, ~sides.known(inside) & ~sides.same)
        auc = gain = None
        if inside is not None:
            same_draws = np.random.default_rng(seeds)
            judged = judge(y, inside, same_draws, MOST_RELATED, local=local)
            draws = draws_of(judged.count, same_draws)
            values = [auc_of(judged.histograms(None)), *(auc_of(judged.histograms(draw)) for draw in draws)]
            first = first or values
            auc = values[0]
            gain = auc - first[0], *ends([now - then for now, then in zip(values[1:], first[1:], strict=True)])
        found.append(Variant(name=name, noise_floor=floor.level(0.99).cosine, auc=auc, gain=gain))
    return found

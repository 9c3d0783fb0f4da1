"""Rank correlations within tasks, combined over tasks without mixing them.

Pooling the raw points of several tasks correlates the tasks' levels: one task may be easy and have isotropic embeddings while
another is hard, and the pooled correlation may even have the opposite sign of the correlation within each task (Simpson's
paradox). So ranks are computed within each task, and only points of the same task are compared. The value over several tasks is
the mean of their correlations, weighted by their number of points minus one.

A point is one setting, averaged over seeds. Seeds of one setting share their level in both numbers, so counting them as
separate points would overstate the evidence.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from isoviz.statistics.intervals import LEVEL, Interval

if TYPE_CHECKING:
    Array = np.ndarray[Any, np.dtype[np.float64]]

Kind = Literal["spearman", "kendall"]

POINTS_FOR_A_TEST = 4
"""Points in one task; with three points any order is likely by chance."""
POINTS_FOR_AN_INTERVAL = 7
"""Points in each task; with fewer, the bootstrap interval's coverage is too low."""
EXACT = 50_000
"""Up to this number, all permutations are enumerated."""
DRAWS = 9_999
RESAMPLES = 2_000


@dataclass(frozen=True)
class RankCorrelation:
    """A rank correlation over one task or several.

    Attributes:
        estimate: from −1 to 1; None if nothing varies.
        interval: from the bootstrap over points within tasks; None if a task has too few points or all are in perfect order.
        p: from the permutation test of no relation within tasks; None with too few points.
        points, tasks: their numbers; tasks with fewer than three points or without variation are left out.
        by_task: each task's correlation; None if the task is left out.
        mixed: the correlation of all points with tasks mixed; used for a warning only, never reported as a result.
    """

    estimate: float | None
    interval: Interval | None
    p: float | None
    points: int
    tasks: int
    by_task: dict[Hashable, float | None]
    mixed: float | None


def rank_correlation(
    x: Sequence[float],
    y: Sequence[float],
    tasks: Sequence[Hashable] | None = None,
    *,
    kind: Kind = "spearman",
    level: float = LEVEL,
    interval: bool = True,
    seed: int = 0,
) -> RankCorrelation:
    """The rank correlation of x and y within tasks.

    Args:
        x, y: one value per setting, all defined.
        tasks: the task of each point; a single task if None.
        interval: False skips it, which halves the time.
        seed: of the bootstrap, and of the permutations if there are too many to enumerate.
    """
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    names = list(tasks) if tasks is not None else [""] * len(first)
    if not len(first) == len(second) == len(names):
        raise ValueError(f"x, y and tasks must be equally long, got {len(first)}, {len(second)} and {len(names)}")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("x and y must be finite: remove undefined values first")
    places = {name: np.array([at for at, other in enumerate(names) if other == name]) for name in dict.fromkeys(names)}
    by_task = {name: _single(first[at], second[at], kind) for name, at in places.items()}
    parts = [(first[places[name]], second[places[name]]) for name, value in by_task.items() if value is not None]
    mixed = _single(first, second, kind)
    points = sum(len(part) for part, _ in parts)
    if not parts:
        return RankCorrelation(None, None, None, 0, 0, by_task, mixed)
    rng = np.random.default_rng(seed)
    estimate = _pooled([np.array([value]) for value in by_task.values() if value is not None], parts)[0]
    tested = any(len(part) >= POINTS_FOR_A_TEST for part, _ in parts)
    enough = interval and all(len(part) >= POINTS_FOR_AN_INTERVAL for part, _ in parts)
    ends = _bootstrap(parts, kind, level, rng) if enough else None
    p = _permutation_p(parts, kind, float(estimate), rng) if tested else None
    return RankCorrelation(float(estimate), ends, p, points, len(parts), by_task, mixed)


def _pooled(of_tasks: Sequence[Array], parts: Sequence[tuple[Array, Array]]) -> Array:
    weights = np.array([len(part) - 1 for part, _ in parts], dtype=np.float64)
    return np.asarray(weights @ np.vstack(of_tasks) / weights.sum())


def _single(x: Array, y: Array, kind: Kind) -> float | None:
    if len(x) < 3:
        return None
    value = float(_correlations(x[None], y[None], kind)[0])
    return None if math.isnan(value) else value


def _correlations(x: Array, y: Array, kind: Kind) -> Array:
    """Row by row, (m, n) and (m, n) → (m,); nan for a row that does not vary. Ties as in Spearman's ρ and Kendall's τ_b."""
    if kind == "spearman":
        from scipy import stats

        first, second = stats.rankdata(x, axis=1), stats.rankdata(y, axis=1)
        first -= first.mean(axis=1, keepdims=True)
        second -= second.mean(axis=1, keepdims=True)
    else:
        left, right = np.triu_indices(x.shape[1], 1)
        first, second = np.sign(x[:, left] - x[:, right]), np.sign(y[:, left] - y[:, right])
    return _cosines((first * second).sum(axis=1), (first * first).sum(axis=1), (second * second).sum(axis=1))


def _cosines(products: Array, first: Array, second: Array) -> Array:
    sizes = np.sqrt(first * second)
    return np.divide(products, sizes, out=np.full(len(sizes), np.nan), where=sizes > 0)


def _permuted(x: Array, y: Array, orders: np.ndarray[Any, np.dtype[np.int64]], kind: Kind) -> Array:
    """(n,), (n,) and m orders (m, n) → (m,): the correlation of x with y in each order. Ranks and their spread do not
    change."""
    if kind == "spearman":
        from scipy import stats

        first, second = (stats.rankdata(values) - (len(values) + 1) / 2 for values in (x, y))
        products = second[orders] @ first
    else:
        first, second = (np.sign(values[:, None] - values).astype(np.float32) for values in (x, y))
        products = np.empty(len(orders))
        for index, order in enumerate(orders):
            products[index] = np.vdot(first, second[order[:, None], order])
    spreads = (np.full(len(orders), (values.astype(np.float64) ** 2).sum()) for values in (first, second))
    return _cosines(products, *spreads)


def _resampled(x: Array, y: Array, counts: Array, kind: Kind) -> Array:
    """(n,), (n,) and counts of draws (m, n) → (m,): the correlation in each resample, without copying points."""
    if kind == "spearman":
        first, second = _ranks_of_resamples(x, counts), _ranks_of_resamples(y, counts)
        return _cosines(
            (counts * first * second).sum(axis=1), (counts * first**2).sum(axis=1), (counts * second**2).sum(axis=1)
        )
    first, second = (np.sign(values[:, None] - values) for values in (x, y))
    forms = (first * second, first**2, second**2)
    return _cosines(*(((counts @ form) * counts).sum(axis=1) for form in forms))


def _ranks_of_resamples(values: Array, counts: Array) -> Array:
    """Each point's rank in each resample (m, n), minus the mean rank. Equal values share their mean rank."""
    _, place = np.unique(values, return_inverse=True)
    equal = (place[:, None] == np.arange(place.max() + 1)).astype(np.float64)
    of_values = counts @ equal
    ranks = np.cumsum(of_values, axis=1) - (of_values - 1) / 2
    return np.asarray((ranks - (counts.sum(axis=1, keepdims=True) + 1) / 2)[:, place])


def _permutation_p(
    parts: Sequence[tuple[Array, Array]], kind: Kind, estimate: float, rng: np.random.Generator
) -> float:
    """Two-sided; permutes y within each task. Exact for one task with few points; otherwise from random draws, with the data
    counted as one draw."""
    exact = len(parts) == 1 and math.factorial(len(parts[0][0])) <= EXACT
    of_tasks = []
    for x, y in parts:
        if exact:
            orders = np.array(list(itertools.permutations(range(len(y)))))
        else:
            orders = rng.permuted(np.tile(np.arange(len(y)), (DRAWS, 1)), axis=1)
        of_tasks.append(_permuted(x, y, orders, kind))
    as_extreme = np.abs(_pooled(of_tasks, parts)) >= abs(estimate) - 1e-9
    return float(as_extreme.mean()) if exact else float((as_extreme.sum() + 1) / (DRAWS + 1))


def _bootstrap(
    parts: Sequence[tuple[Array, Array]], kind: Kind, level: float, rng: np.random.Generator
) -> Interval | None:
    """Percentiles; points are drawn within each task. A draw in which nothing varies has no correlation and is ignored. None if
    all draws agree, because draws from points in perfect order say nothing about other points.
    """
    of_tasks = []
    for x, y in parts:
        draws = rng.integers(0, len(x), size=(RESAMPLES, len(x)))
        counts = np.zeros((RESAMPLES, len(x)))
        np.add.at(counts, (np.arange(RESAMPLES)[:, None], draws), 1.0)
        of_tasks.append(_resampled(x, y, counts, kind))
    low, high = np.nanquantile(_pooled(of_tasks, parts), [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high)) if high - low > 1e-9 else None

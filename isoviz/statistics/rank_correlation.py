"""Spearman's rank correlation within tasks, combined over tasks without mixing them.

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
from typing import TYPE_CHECKING, Any

import numpy as np

from isoviz.statistics.intervals import LEVEL, Interval

if TYPE_CHECKING:
    Array = np.ndarray[Any, np.dtype[np.float64]]

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
        least_p: the smallest p that so few points can have; None where p is.
        bend: the correlation of y's ranks with the squared distance of x's ranks from their middle, within tasks, from −1 (a hill)
            to 1 (a valley), and its p from the same permutations; None where p is.
    """

    estimate: float | None
    interval: Interval | None
    p: float | None
    points: int
    tasks: int
    by_task: dict[Hashable, float | None]
    mixed: float | None
    least_p: float | None = None
    bend: tuple[float, float] | None = None


def rank_correlation(
    x: Sequence[float], y: Sequence[float], tasks: Sequence[Hashable] | None = None
) -> RankCorrelation:
    """The rank correlation of x and y within tasks.

    Args:
        x, y: one value per setting, all defined.
        tasks: the task of each point; a single task if None.
    """
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    names = list(tasks) if tasks is not None else [""] * len(first)
    places = {name: np.array([at for at, other in enumerate(names) if other == name]) for name in dict.fromkeys(names)}
    by_task = {name: _single(first[at], second[at]) for name, at in places.items()}
    parts = [(first[places[name]], second[places[name]]) for name, value in by_task.items() if value is not None]
    mixed = _single(first, second)
    if not parts:
        return RankCorrelation(None, None, None, 0, 0, by_task, mixed)
    rng = np.random.default_rng(0)  # of the bootstrap, and of the permutations if there are too many to enumerate
    sizes = [len(part) for part, _ in parts]
    estimate = float(_pooled([np.array([value]) for value in by_task.values() if value is not None], sizes)[0])
    interval = _bootstrap(parts, rng) if min(sizes) >= POINTS_FOR_AN_INTERVAL else None
    if max(sizes) < POINTS_FOR_A_TEST:
        return RankCorrelation(estimate, interval, None, sum(sizes), len(parts), by_task, mixed)
    ranks = [(_ranks(x), _ranks(y)) for x, y in parts]
    p = _permutation_p(ranks, estimate, rng)
    least = 2 / math.prod(math.factorial(size) for size in sizes)
    bend = None
    bent = [(x * x - (x * x).mean(), y) for x, y in ranks]
    bends = [float(_correlations(x, y)) for x, y in bent]
    if not any(map(math.isnan, bends)):
        pooled = float(_pooled([np.array([value]) for value in bends], sizes)[0])
        bend = (pooled, _permutation_p(bent, pooled, rng))
    return RankCorrelation(estimate, interval, p, sum(sizes), len(parts), by_task, mixed, least, bend)


def _pooled(of_tasks: Sequence[Array], sizes: Sequence[int]) -> Array:
    weights = np.array(sizes, dtype=np.float64) - 1
    return np.asarray(weights @ np.vstack(of_tasks) / weights.sum())


def _single(x: Array, y: Array) -> float | None:
    if len(x) < 3:
        return None
    value = float(_correlations(_ranks(x), _ranks(y)))
    return None if math.isnan(value) else value


def _ranks(values: Array) -> Array:
    """Ranks along the last axis minus their mean; equal values share their mean rank."""
    from scipy import stats

    return np.asarray(stats.rankdata(values, axis=-1) - (values.shape[-1] + 1) / 2)


def _correlations(first: Array, second: Array) -> Array:
    """Of ranks, along the last axis; nan where they do not vary."""
    sizes = np.sqrt((first * first).sum(axis=-1) * (second * second).sum(axis=-1))
    products = (first * second).sum(axis=-1)
    return np.divide(products, sizes, out=np.full(np.shape(sizes), np.nan), where=sizes > 0)


def _permutation_p(parts: Sequence[tuple[Array, Array]], estimate: float, rng: np.random.Generator) -> float:
    """Two-sided, of centred ranks; permutes y's within each task. Exact for one task with few points; otherwise from random draws,
    with the data counted as one draw."""
    exact = len(parts) == 1 and math.factorial(len(parts[0][0])) <= EXACT
    of_tasks = []
    for x, y in parts:
        if exact:
            orders = np.array(list(itertools.permutations(range(len(y)))))
        else:
            orders = rng.permuted(np.tile(np.arange(len(y)), (DRAWS, 1)), axis=1)
        of_tasks.append(_correlations(x, y[orders]))
    as_extreme = np.abs(_pooled(of_tasks, [len(x) for x, _ in parts])) >= abs(estimate) - 1e-9
    return float(as_extreme.mean()) if exact else float((as_extreme.sum() + 1) / (DRAWS + 1))


def _bootstrap(parts: Sequence[tuple[Array, Array]], rng: np.random.Generator) -> Interval | None:
    """Percentiles; points are drawn within each task. A draw in which nothing varies has no correlation and is ignored. None if
    all draws agree, because draws from points in perfect order say nothing about other points.
    """
    of_tasks = []
    for x, y in parts:
        draws = rng.integers(0, len(x), size=(RESAMPLES, len(x)))
        of_tasks.append(_correlations(_ranks(x[draws]), _ranks(y[draws])))
    ends = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    low, high = np.nanquantile(_pooled(of_tasks, [len(x) for x, _ in parts]), ends)
    return Interval(float(low), float(high)) if high - low > 1e-9 else None

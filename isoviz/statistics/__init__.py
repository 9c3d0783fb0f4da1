"""Statistics of runs that differ only in their seed, and of several such sets. Pure functions of numbers; scipy is imported on
use."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence


def mean_sd(values: Iterable[float | None]) -> tuple[float | None, float | None]:
    """Mean and sample standard deviation (divisor n − 1) of the defined values; None and nan count as undefined. The deviation
    is None for fewer than two values, the mean for none.
    """
    defined = [float(value) for value in values if value is not None and not math.isnan(value)]
    if not defined:
        return None, None
    return statistics.fmean(defined), statistics.stdev(defined) if len(defined) > 1 else None


def front(points: Sequence[tuple[float, float]]) -> list[int]:
    """The Pareto front: indices of the points that no other point dominates (at least as large in both coordinates, larger in one),
    sorted by the first coordinate. Equal points are all on the front.
    """
    order = sorted(range(len(points)), key=lambda at: (-points[at][0], -points[at][1]))
    places: list[int] = []
    for at in order:
        last = points[places[-1]] if places else None
        if last is None or points[at][1] > last[1] or points[at] == last:
            places.append(at)
    return places[::-1]

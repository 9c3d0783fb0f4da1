"""Before runs start: which difference would so many seeds show, by the spread of the runs that have finished?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from isoviz.runs.comparisons.comparing import ALPHA
from isoviz.statistics.power import detectable

ENOUGH = 4
"""Degrees of freedom from which a spread is estimated."""


def smallest_difference(scores: Iterable[Sequence[float]], seeds: int) -> tuple[float, int] | None:
    """The difference of two methods that a t-test at 5 % would find with 80 % power, and from how many runs the spread is.

    Args:
        scores: of each finished setting, the metric of its seeds; settings with one seed say nothing. Their variances are pooled.
        seeds: that each of the two methods will have. Pairs of seeds usually show less, so this is on the safe side.

    Returns:
        None for one seed, or where too few runs have finished.
    """
    groups = [values for values in map(list, scores) if len(values) > 1]
    freedom = sum(len(values) - 1 for values in groups)
    if seeds < 2 or freedom < ENOUGH:
        return None
    squares = sum((value - math.fsum(values) / len(values)) ** 2 for values in groups for value in values)
    return detectable(seeds, ALPHA, paired=False) * math.sqrt(squares / freedom), freedom + len(groups)

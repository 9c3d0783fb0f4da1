"""Statistics of runs that differ only in their seed, and of several such sets. Pure functions of numbers; scipy is imported on
use."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable


def mean_sd(values: Iterable[float | None]) -> tuple[float | None, float | None]:
    """Mean and sample standard deviation (divisor n − 1) of the defined values; None and nan count as undefined. The deviation
    is None for fewer than two values, the mean for none.
    """
    defined = [float(value) for value in values if value is not None and not math.isnan(value)]
    if not defined:
        return None, None
    return statistics.fmean(defined), statistics.stdev(defined) if len(defined) > 1 else None

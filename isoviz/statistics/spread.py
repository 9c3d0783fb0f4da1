"""The spread of single values."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable


def mean_sd(values: Iterable[float | None]) -> tuple[float | None, float | None]:
    """Mean and sample standard deviation (divisor n − 1) of the values that are defined; undefined are None and nan.

    The deviation is None below two of them, the mean below one.
    """
    defined = [float(value) for value in values if value is not None and not math.isnan(value)]
    if not defined:
        return None, None
    return statistics.fmean(defined), statistics.stdev(defined) if len(defined) > 1 else None

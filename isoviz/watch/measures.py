"""The measures that a watch reports."""

from __future__ import annotations

import math
from typing import Any, Final

from isoviz import metrics
from isoviz.metrics.intervals import interval_of
from isoviz.metrics.measuring import reading_of
from isoviz.metrics.sample import Sample

MEASURES: Final = ("isoscore_unbiased", "effective_rank", "mean_cosine", "uniformity", "rogue_share", "hubness")


def measures_of(vectors: Any) -> tuple[dict[str, float], dict[str, str]]:
    """Isotropy measures of vectors (n, d), independent rows: values by name, and the reasons for missing ones.

    `isoscore_unbiased` and `directions` (its participation ratio, unbiased) come with `_low` and `_high`, their 95 % jackknife
    interval. A biased measure is left out below the number of points that it declares enough.

    Raises:
        InputError: (a ValueError) wrong shape or non-finite entries.
    """
    sample = Sample(vectors)
    values: dict[str, float] = {}
    missing: dict[str, str] = {}
    for slug in MEASURES:
        metric = metrics.get(slug)
        enough = metric.enough.points(sample.d) if metric.enough.points else 0
        if metric.enough.bias == "falls" and sample.n < enough:
            missing[slug] = f"not enough points: {sample.n} of {math.ceil(enough)}"
            continue
        reading = reading_of(metric, sample, interval=False)
        if isinstance(reading.value, float):
            values[slug] = reading.value
        else:
            missing[slug] = reading.undefined
    if "isoscore_unbiased" in values and sample.moments is not None:
        between = interval_of(sample.moments)
        width = sample.d - 1
        values["directions"] = 1 + width * values["isoscore_unbiased"]
        if not between.problem:
            for end, value in (("low", between.low), ("high", between.high)):
                values[f"isoscore_unbiased_{end}"], values[f"directions_{end}"] = value, 1 + width * value
    return values, missing

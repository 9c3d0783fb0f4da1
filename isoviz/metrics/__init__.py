"""Estimators of isotropy on a cloud of n points in d dimensions, shape (n, d).

Numpy in gives a float or a float64 array, a torch tensor in gives a tensor on its device. An undefined value
(a collapsed cloud, a single point, ...) is `nan` with an `UndefinedWarning`; a wrong shape or a non-finite
entry raises `ValueError`.

Names are loaded when first used, so that importing this package loads neither torch nor scipy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isoviz.metrics.cloud import SmallSampleWarning, UndefinedWarning
    from isoviz.metrics.cosine import mean_cosine
    from isoviz.metrics.dimensions import (
        StdHistogram,
        abs_correlation,
        correlation_order,
        dimension_std,
        mean_activation,
        outlier_dimensions,
        rogue_share,
        std_histogram,
    )
    from isoviz.metrics.intervals import Interval, isoscore_interval, one_per_group, participation_ratio_interval
    from isoviz.metrics.neighbours import twonn
    from isoviz.metrics.partition_function import partition, row_norms
    from isoviz.metrics.penalties import (
        Shrinkage,
        cosine_penalty,
        istar_penalty,
        istar_unbiased_penalty,
    )
    from isoviz.metrics.scores import (
        isoscore,
        isoscore_from_covariance,
        isoscore_star,
        isoscore_unbiased,
        participation_ratio,
    )
    from isoviz.metrics.spectrum import effective_rank, explained_variance
    from isoviz.metrics.streaming import CovarianceAccumulator
    from isoviz.metrics.summary import describe

# No module carries the name of a function: importing it would put the module in the function's place.
_MODULE_OF = {
    "CovarianceAccumulator": "streaming",
    "Interval": "intervals",
    "Shrinkage": "penalties",
    "SmallSampleWarning": "cloud",
    "StdHistogram": "dimensions",
    "UndefinedWarning": "cloud",
    "abs_correlation": "dimensions",
    "correlation_order": "dimensions",
    "cosine_penalty": "penalties",
    "describe": "summary",
    "dimension_std": "dimensions",
    "effective_rank": "spectrum",
    "explained_variance": "spectrum",
    "isoscore": "scores",
    "isoscore_from_covariance": "scores",
    "isoscore_interval": "intervals",
    "isoscore_star": "scores",
    "isoscore_unbiased": "scores",
    "istar_penalty": "penalties",
    "istar_unbiased_penalty": "penalties",
    "mean_activation": "dimensions",
    "mean_cosine": "cosine",
    "one_per_group": "intervals",
    "outlier_dimensions": "dimensions",
    "participation_ratio": "scores",
    "participation_ratio_interval": "intervals",
    "partition": "partition_function",
    "rogue_share": "dimensions",
    "row_norms": "partition_function",
    "std_histogram": "dimensions",
    "twonn": "neighbours",
}

__all__ = [
    "CovarianceAccumulator",
    "Interval",
    "Shrinkage",
    "SmallSampleWarning",
    "StdHistogram",
    "UndefinedWarning",
    "abs_correlation",
    "correlation_order",
    "cosine_penalty",
    "describe",
    "dimension_std",
    "effective_rank",
    "explained_variance",
    "isoscore",
    "isoscore_from_covariance",
    "isoscore_interval",
    "isoscore_star",
    "isoscore_unbiased",
    "istar_penalty",
    "istar_unbiased_penalty",
    "mean_activation",
    "mean_cosine",
    "one_per_group",
    "outlier_dimensions",
    "participation_ratio",
    "participation_ratio_interval",
    "partition",
    "rogue_share",
    "row_norms",
    "std_histogram",
    "twonn",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

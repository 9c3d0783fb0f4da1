"""The catalogue of metrics, and isotropy estimators for a cloud of n points in d dimensions, shape (n, d).

The catalogue contains every `Metric` that a module in this folder lists under `METRICS`, and the metrics of installed packages
(entry points `isoviz.metrics`). The functions that they declare are available here by name.

Numpy input gives a float or a float64 array; a torch tensor gives a tensor on its device. An undefined value
(a collapsed cloud, a single point, ...) is `nan` with an `UndefinedWarning`; a wrong shape or a non-finite
entry raises `ValueError`.

Names are loaded on first use, so importing this package loads neither torch nor scipy.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

from isoviz import catalogues
from isoviz.errors import named
from isoviz.metrics.protocol import Metric

# Besides the metrics. No module shares its name with a function: importing the module would replace the function.
MODULE_OF = {
    "CovarianceAccumulator": "streaming",
    "Interval": "intervals",
    "Shrinkage": "penalties",
    "SmallSampleWarning": "cloud",
    "StdHistogram": "dimensions",
    "UndefinedWarning": "cloud",
    "correlation_order": "dimensions",
    "cosine_penalty": "penalties",
    "describe": "measuring",
    "isoscore_from_covariance": "scores",
    "isoscore_interval": "intervals",
    "istar_penalty": "penalties",
    "istar_unbiased_penalty": "penalties",
    "one_per_group": "intervals",
    "outlier_dimensions": "dimensions",
    "participation_ratio_interval": "intervals",
    "row_norms": "partition_function",
    "std_histogram": "dimensions",
}


@functools.cache
def catalogue() -> Mapping[str, Metric]:
    """All metrics by slug, in display order. Loads neither torch nor scipy."""
    metrics: dict[str, Metric] = catalogues.discover(__name__, "isoviz.metrics", Metric, listed_as="METRICS")
    return MappingProxyType(dict(sorted(metrics.items(), key=lambda item: (item[1].place, item[0]))))


def get(slug: str) -> Metric:
    """The metric with this slug; `InputError` with the allowed names if there is none."""
    return named(catalogue(), slug, "metric")


@functools.cache
def _functions() -> Mapping[str, Any]:
    return {metric.function.__name__: metric.function for metric in catalogue().values()}


def __getattr__(name: str) -> Any:
    if name.startswith("_"):  # looked up by the import system, also while the catalogue is being built
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    if name in MODULE_OF:
        value = getattr(import_module(f"{__name__}.{MODULE_OF[name]}"), name)
    elif name in _functions():
        value = _functions()[name]
    else:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *MODULE_OF, *_functions()})

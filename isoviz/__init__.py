"""IsoViz: measure, change and compare the isotropy of transformer embeddings.

Importing this package is cheap: torch, transformers and datasets are imported by the modules that compute with them,
never by the catalogues, the configuration or the store.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any as _Any

__version__ = "1.0.0"

_MODULE_OF = {
    "IsotropyEvaluator": "watch",
    "RunConfig": "config",
    "Store": "runs.store",
    "Watch": "watch",
    "baseline": "watch.drift",
    "check": "watch.drift",
    "compare": "readouts.encoders",
    "rows": "metrics.each_row",
    "ruler": "readouts.ruler",
    "show": "notebook",
    "train": "notebook",
}
"""Public names that are loaded on first use → the modules that have them."""
_MODULES = ("losses", "methods", "metrics", "plots", "posthoc", "vectors", "watch")


def __getattr__(name: str) -> _Any:
    if name in _MODULE_OF:
        return getattr(_import_module(f"isoviz.{_MODULE_OF[name]}"), name)
    if name in _MODULES:
        return _import_module(f"isoviz.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(["__version__", *_MODULE_OF, *_MODULES])

"""IsoViz: measure, change and compare the isotropy of transformer embeddings.

Importing this package is cheap: torch, transformers and datasets are imported by the modules that compute with them,
never by the catalogues, the configuration or the store.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "1.0.0"


def __getattr__(name: str) -> Any:
    if name == "ruler":
        return import_module("isoviz.cosines").ruler
    if name in ("baseline", "check"):
        return getattr(import_module("isoviz.drift"), name)
    if name in ("Watch", "IsotropyEvaluator"):
        return getattr(import_module("isoviz.watch"), name)
    if name in ("watch", "losses"):
        return import_module(f"isoviz.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

"""The dashboard's figures in a notebook, as Plotly figures: `isoviz.plots.correlations(points)`. Needs the extra `app`.

`dashboard/plots.py` holds the functions. The engine draws nothing itself, and in the wheel the dashboard lies inside this package.
"""

from __future__ import annotations

import logging
from types import ModuleType
from typing import Any


def _module() -> ModuleType:
    from isoviz.commands import dashboard

    dashboard.require("isoviz.plots", "plots.py", package="plotly")
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)  # Streamlit warns that there is no server
    try:
        return dashboard.module("plots")
    finally:
        logging.disable(before)


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        return getattr(_module(), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    module = _module()
    return sorted(name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__)

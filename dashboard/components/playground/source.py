"""The playground's scripts, styles and texts, for both the app and the self-contained file."""

from __future__ import annotations

import functools
import json
import re
from typing import Any

from dashboard.components import bundle
from isoviz import metrics, posthoc

_WORKER = ("random", "linear", "shape", "truth", "measure", "transforms", "engine", "worker")
_SCREEN = ("state", "cloud_view", "controls", "numbers", "plots", "playground")
MEASURES = (
    *("isoscore", "isoscore_unbiased", "isoscore_star", "participation_ratio", "effective_rank", "ev_1", "rogue_share"),
    *("abs_correlation", "mean_cosine", "uniformity", "rankme", "i1", "i2", "twonn", "hubness"),
)
TRANSFORMS = {
    "centring": None,
    "all_but_the_top": "remove",
    "zca": "strength",
    "isobn": "beta",
    "batch_norm": None,
}
"""Slug of a transform → parameter of its slider."""
_FORMULAS = {
    "isoscore": "IsoScore = (PR − 1)/(d − 1).",
    "isoscore_star": "IsoScore of (1 − ζ) Σ + ζ Σ_S; Σ_S is the true covariance here.",
    "participation_ratio": "PR = (Σλᵢ)²/Σλᵢ²: the effective number of directions.",
}


@functools.cache
def engine() -> str:
    """The computing part, as a classic script without the worker's message handling."""
    return classic(*_WORKER)


@functools.cache
def worker() -> str:
    """The script of the web worker."""
    return f"{engine()}\nserve(globalThis);\n"


@functools.cache
def script() -> str:
    """The drawing part, as one module that exports `Playground`, `toLink` and `fromLink`."""
    source = json.dumps(worker()).replace("<", "\\u003c")  # safe inside a script element
    names = [f"playground/{name}.js" for name in _SCREEN]
    return f"const WORKER_SOURCE = {source};\n{bundle('look.js', 'copied.js', *names)}"


@functools.cache
def styles() -> str:
    return bundle("playground/playground.css")


@functools.cache
def words() -> dict[str, Any]:
    """Names and explanations of measures and transforms, from the engine's catalogues."""
    return {
        "measures": {slug: _measure(slug) for slug in MEASURES},
        "transforms": {slug: _transform(slug, name) for slug, name in TRANSFORMS.items()},
    }


def _measure(slug: str) -> dict[str, Any]:
    metric = metrics.get(slug)
    tip = " ".join(filter(None, (_FORMULAS.get(slug), metric.sees, metric.blind_to)))
    title = {"abs_correlation": "Mean |ρ|", "twonn": "Intrinsic dimension", "i1": "I₁", "i2": "I₂", "ev_1": "EV₁"}
    return {
        "title": title.get(slug, metric.number_title),
        "tip": tip,
        "comparison": metric.comparison,
        "decimals": metric.decimals,
    }


def _transform(slug: str, name: str | None) -> dict[str, Any]:
    if slug == "centring":  # in the engine, all-but-the-top with no directions
        return {"title": "Centring", "summary": "Subtracts the mean.", "slider": None}
    transform = posthoc.get(slug)
    description: dict[str, Any] = {"title": transform.title, "summary": transform.summary, "slider": None}
    if name is not None:
        field = transform.Params.model_fields[name]
        extra: Any = field.json_schema_extra
        lowest, highest, step = extra["slider"]
        description["slider"] = {"name": name, "label": field.title, "min": lowest, "max": highest, "step": step}
    return description


def classic(*names: str) -> str:
    """Files of the playground as one classic script, without `export`."""
    return re.sub(r"^export ", "", bundle(*(f"playground/{name}.js" for name in names)), flags=re.MULTILINE)

"""The playground's scripts, styles and texts, for both the app and the self-contained file."""

from __future__ import annotations

import functools
import json
import re
from typing import Any

from pydantic.fields import FieldInfo

from dashboard.components import bundle
from isoviz import metrics, posthoc
from isoviz.lessons.reading import NUMBERS
from isoviz.metrics.protocol import Metric

_WORKER = ("random", "linear", "shape", "truth", "measure", "transforms", "engine", "worker")
_SCREEN = ("state", "cloud_view", "controls", "numbers", "plots", "playground")
MEASURES = tuple(name for name in NUMBERS if name != "best_accuracy")
TRANSFORMS: dict[str, tuple[str, ...]] = {
    "centring": (),
    "all_but_the_top": ("remove",),
    "truncation": ("keep",),
    "zca": ("strength", "eps"),
    "isobn": ("beta",),
    "batch_norm": (),
    "unit_norm": (),
}
"""Slug of a transform → parameters of its sliders."""
_RANGES = {"keep": (2, 1024, 1), "eps": (1e-6, 100, 0)}
"""Lowest and highest value and step of sliders for which the catalogue has none."""
_OWN = {
    "centring": ("Centring", "Subtracts the mean."),  # in the engine, all-but-the-top with no directions
    "unit_norm": ("Unit length", "Divides every vector by its length."),
}
_SHORT = {
    "abs_correlation": "Mean |ρ|",
    "i1": "I₁",
    "i2": "I₂",
    "ev_1": "EV₁",
    "alpha_req": "Spectral decay α",
    "twonn": "TwoNN dimension",
    "local_dimension": "ML dimension",
    "epps_pulley": "Epps–Pulley",
    "massive_activation": "Largest ÷ median entry",
    "reciprocity": "Reciprocity",
    "rogue_share": "Widest dimension",
}
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
    names = [f"playground/{name}.js" for name in _SCREEN]
    return f"const WORKER_SOURCE = {as_text(worker())};\n{bundle('look.js', 'copied.js', *names)}"


def as_text(script: str) -> str:
    """A script as a JavaScript text that is safe inside a script element."""
    return json.dumps(script).replace("<", "\\u003c")


@functools.cache
def styles() -> str:
    return bundle("playground/playground.css")


@functools.cache
def words() -> dict[str, Any]:
    """Names and explanations of measures and transforms, from the engine's catalogues."""
    return {
        "measures": {slug: _measure(slug) for slug in MEASURES},
        "transforms": {slug: _transform(slug, names) for slug, names in TRANSFORMS.items()},
    }


def _measure(slug: str) -> dict[str, Any]:
    metric = metrics.get(slug)
    tip = " ".join(filter(None, (_FORMULAS.get(slug), metric.sees, metric.blind_to)))
    return {
        "title": short_title(metric),
        "tip": tip,
        "comparison": metric.comparison,
        "decimals": metric.decimals,
    }


def short_title(metric: Metric) -> str:
    """For a narrow column of names."""
    return _SHORT.get(metric.slug, metric.number_title)


def _transform(slug: str, names: tuple[str, ...]) -> dict[str, Any]:
    if slug in _OWN:
        title, summary = _OWN[slug]
        return {"title": title, "summary": summary, "sliders": []}
    transform = posthoc.get(slug)
    sliders = [_slider(name, transform.Params.model_fields[name]) for name in names]
    return {"title": transform.title, "summary": transform.summary, "sliders": sliders}


def _slider(name: str, field: FieldInfo) -> dict[str, Any]:
    extra: Any = field.json_schema_extra
    lowest, highest, step = extra.get("slider") or _RANGES[name]
    label = "Soft-ZCA ε" if name == "eps" else field.title
    scale = "ridge" if name == "eps" else "linear"
    return {
        "name": name,
        "label": label,
        "help": field.description,
        "scale": scale,
        "min": lowest,
        "max": highest,
        "step": step,
    }


def classic(*names: str) -> str:
    """Files of the playground as one classic script, without `export`."""
    return stripped(bundle(*(f"playground/{name}.js" for name in names)))


def stripped(script: str) -> str:
    """A module as a classic script, without `export`."""
    return re.sub(r"^export ", "", script, flags=re.MULTILINE)

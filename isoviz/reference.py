"""Descriptions of methods, measures and transforms, the source of the Methods page and the generated `docs/`.

The texts come from the classes (`Method`, `Metric`, `CataloguedTransform`), so items of installed packages are described in the
same way. Costs come from the record of `benchmarks/costs.py`, which covers bundled items only.
"""

from __future__ import annotations

import functools
import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
from pydantic import BaseModel

from isoviz import bibliography, metrics, posthoc
from isoviz.formatting import sentence
from isoviz.methods.protocol import Method
from isoviz.metrics.protocol import CHANGES, Change, Metric
from isoviz.parameters import bounds_text, choices_of, extra, start_values, sweep_title
from isoviz.posthoc.protocol import CataloguedTransform

CHANGE_WORDS: Mapping[Change, str] = {
    "shift": "adding one vector to all points",
    "scale": "multiplying all points by one factor",
    "rotation": "rotating the cloud",
    "stretch": "multiplying each dimension by its own factor",
    "order": "reordering the points",
    "duplicates": "repeating every point equally often",
}
_MEASURES = {
    "isoscore": "IsoScore",
    "isoscore_star": "IsoScore*",
    "mean_cosine": "the mean cosine",
    "penalty": "its own penalty (no effect on isotropy is claimed)",
}
_MOVES = {
    "up": "raises {}",
    "down": "lowers {}",
    "with λ": "raises {} for λ > 0 and lowers it for λ < 0",
    "against λ": "lowers {} for λ > 0 and raises it for λ < 0",
}


@dataclass(frozen=True)
class ParameterEntry:
    """One parameter in words; `allowed` and `tried` may be empty. `tried_as` says whose values `tried` has."""

    name: str
    label: str
    symbol: str
    default: str
    allowed: str
    tried: str
    tried_as: str
    help: str
    source: str


def parameters(params: type[BaseModel]) -> list[ParameterEntry]:
    """All parameters in declaration order."""
    entries = []
    for name, field in params.model_fields.items():
        about = extra(field)
        entries.append(
            ParameterEntry(
                name=name,
                label=field.title or name,
                symbol=str(about.get("symbol", "")),
                default=_value(field.default),
                allowed=", ".join(map(_value, choices_of(field))) or bounds_text(field),
                tried=", ".join(map(_value, about.get("sweep", ()))),
                tried_as=sweep_title(field),
                help=field.description or "",
                source=str(about.get("source", "")),
            )
        )
    return entries


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return (f"{value:,}" if isinstance(value, int) else f"{value:g}").replace("-", "−")
    return "none" if value is None else str(value)


def direction(method: type[Method]) -> str:
    """The method's effect on isotropy, from its `effects`, which the conformance suite measures; empty if it declares none."""
    moves = [_MOVES[effect].format(_MEASURES.get(name, name)) for name, effect in method.effects.items()]
    return sentence("; ".join(moves))


@functools.cache
def effects(slug: str) -> Mapping[str, str]:
    """What a transform does to a cloud of 500 points in 16 dimensions whose spread falls from 8 to 0.25, around a mean of 2: title
    of a measure → `before → after`. Empty for a transform that needs more than points."""
    kind = posthoc.get(slug)
    if kind.needs:
        return {}
    points = np.random.default_rng(0).normal(size=(500, 16)) * np.geomspace(8, 0.25, 16) + 2
    clouds = points, kind(**start_values(kind.Params)).fit_transform(points)
    shown = [metrics.get(slug) for slug in ("isoscore", "ev_1", "mean_cosine")]
    return {one.heading: " → ".join(f"{one.evaluate(cloud):z.2f}" for cloud in clouds) for one in shown}


def unchanged_and_changed(metric: Metric) -> tuple[list[Change], list[Change]]:
    """The changes of a cloud to which a measure is invariant, and those that move it; `tests/metrics/test_claims.py` measures
    both."""
    return [c for c in CHANGES if c in metric.unchanged_by], [c for c in CHANGES if c not in metric.unchanged_by]


def bibtex_of(item: type[Method] | type[CataloguedTransform] | Metric) -> str:
    """Its BibTeX; empty if there is none."""
    if isinstance(item, Metric):
        return bibliography.entries().get(item.paper.key, "")
    papers = [item.paper, *getattr(item, "variants", {}).values()]
    return "\n\n".join(paper.bibtex.strip() for paper in papers if paper)


# -------------------------------------------------------------------------------------------------------- glossary


@dataclass(frozen=True)
class Term:
    """A word of the project: how it stands on screen, and what it means in one or two sentences."""

    title: str
    text: str


@functools.cache
def glossary() -> Mapping[str, Term]:
    """The terms that no catalogue explains, by name: tooltips of the dashboard, and docs/glossary.md."""
    terms = tomllib.loads(files("isoviz").joinpath("glossary.toml").read_text(encoding="utf-8"))
    return {name: Term(**term) for name, term in terms.items()}


# ----------------------------------------------------------------------------------------------------------- costs


@functools.cache
def costs() -> Mapping[str, Any]:
    """The record: `machine`, `n`, `d`, `rows`; `methods` (slug → encoder → ratios), `measures` and `transforms` (slug → ratio)."""
    record: dict[str, Any] = json.loads(files("isoviz").joinpath("costs.json").read_text(encoding="utf-8"))
    return record


def cost(item: type[Method] | type[CataloguedTransform] | Metric) -> str:
    """The measured cost in one sentence; empty if it was not measured."""
    if isinstance(item, Metric):
        if item.slug == "isoscore":
            return "The reference measure for timings."
        return _over_isoscore(costs()["measures"].get(item.slug))
    if issubclass(item, Method):
        return _of_step(item, costs()["methods"].get(item.slug, {}))
    return _over_isoscore(costs()["transforms"].get(item.slug), "Fitting and applying it takes")


def step_ratio(slug: str) -> float | None:
    """The largest ratio of a method's training step to the plain step over the encoders; None if it was not measured."""
    return max((ratios["step"] for ratios in costs()["methods"].get(slug, {}).values()), default=None)


def _of_step(method: type[Method], measured: Mapping[str, Mapping[str, float]]) -> str:
    if not measured:
        return ""
    if method.slug == "baseline":
        return "The plain step, the reference for the others."
    steps = ", ".join(f"{ratios['step']:.2f} on {encoder}" for encoder, ratios in measured.items())
    sentence = f"Training step ÷ plain step: {steps}."
    before = [ratios["before_epoch"] for ratios in measured.values() if "before_epoch" in ratios]
    if before:
        sentence += f" Before each epoch it reads training rows: up to {max(before):.2f} of a plain step per batch."
    if method.frozen_stage:
        sentence += " Its second stage trains on cached vectors, so it takes seconds."
    return sentence


def _over_isoscore(ratio: float | None, verb: str = "Takes") -> str:
    if ratio is None:
        return ""
    return f"{verb} {ratio:g} × the time of IsoScore on {costs()['n']:,} points in {costs()['d']} dimensions."


def of_this_project(items: Iterable[Any]) -> list[Any]:
    """The bundled items, without those of installed packages."""
    return [item for item in items if home_package(item) == __name__.partition(".")[0]]


def home_package(item: type[Method] | type[CataloguedTransform] | Metric) -> str:
    """The top-level package of an item."""
    module = item.function.__module__ if isinstance(item, Metric) else item.__module__
    return module.partition(".")[0]

"""Names of a run's method, parameters and settings, on all screens and in all tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from isoviz import methods
from isoviz.config import RunConfig
from isoviz.errors import shortened
from isoviz.parameters import extra

MOST_LISTED = 30
"""Characters of the longest list of names in an experiment's name; a longer list becomes their number."""
LONGEST_NAME = 80
"""Characters of an experiment's name."""


def method_title(slug: str) -> str:
    """The method's name on screen; its slug if it is not in the catalogue (any more)."""
    method = methods.find(slug)
    return method.title if method else slug


def variant(slug: str, params: Mapping[str, Any]) -> str:
    """`λ = 1, ζ = 0.8`: always the method's first parameter, the others if they differ from their defaults."""
    method = methods.find(slug)
    if method is None:
        return ", ".join(f"{name} = {setting(value)}" for name, value in params.items())
    parts = []
    for place, (name, field) in enumerate(method.Params.model_fields.items()):
        leads = extra(field).get("leading", place == 0)  # in a combination, each part's first parameter
        if name in params and (leads or params[name] != field.default):
            parts.append(f"{_symbol(name, field)} = {setting(params[name])}")
    return ", ".join(parts)


def experiment_name(configs: Iterable[RunConfig]) -> str:
    """What runs launched together compare: `IsoBN, I-STAR against baseline on acceptability`."""
    runs = list(configs)
    settings = {
        method: {variant(method, run.params) for run in runs if run.method == method} for method in _of(runs, "method")
    }
    plain = settings.pop("baseline", None) is not None
    titles = [
        method_title(method) + (f" with {len(values)} settings" if len(values) > 1 else "")
        for method, values in settings.items()
    ]
    compared = _listed(titles, "methods") + (" against baseline" if plain else "") if titles else "Baseline"
    default = {run.model for run in runs} == {RunConfig.model_fields["model"].default}
    by_model = "" if default else f" with {_listed(_of(runs, 'model'), 'models')}"
    return shortened(f"{compared} on {_listed(_of(runs, 'task'), 'tasks')}{by_model}", LONGEST_NAME)


def _of(runs: Iterable[RunConfig], field: str) -> list[str]:
    return [str(name).rpartition("/")[2] for name in dict.fromkeys(getattr(run, field) for run in runs)]


def _listed(names: list[str], plural: str) -> str:
    text = ", ".join(names)
    return f"{len(names)} {plural}" if len(names) > 1 and len(text) > MOST_LISTED else text


def parameter_symbols(slug: str) -> dict[str, str]:
    """Parameter of a method → its symbol, or its title in lower case; empty for a method that is not in the catalogue."""
    method = methods.find(slug)
    return {name: _symbol(name, field) for name, field in method.Params.model_fields.items()} if method else {}


def parameter_label(name: str, field: Any) -> str:
    """`Strength λ`: a parameter's title with its symbol; its name if its method has no such field (any more)."""
    if field is None:
        return name
    symbol = extra(field).get("symbol")
    return f"{field.title or name} {symbol}" if symbol else str(field.title or name)


def _symbol(name: str, field: Any) -> str:
    return str(extra(field).get("symbol") or _lowered(field.title or name))


def _lowered(title: str) -> str:
    """In lower case, except for the name of a method before a colon."""
    method, colon, words = title.rpartition(": ")
    return f"{method}{colon}{words.lower()}"


def setting(value: Any) -> str:
    """A setting as readable text."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "all"}[value]
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return re.sub(r"e([+-])0", r"e\1", text).replace("-", "−") if isinstance(value, (int, float)) else text

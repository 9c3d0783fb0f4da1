"""Names of a run's method, parameters and settings, on all screens and in all tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isoviz import methods


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
        leads = _extra(field).get("leading", place == 0)  # in a combination, each part's first parameter
        if name in params and (leads or params[name] != field.default):
            parts.append(f"{_symbol(name, field)} = {setting(params[name])}")
    return ", ".join(parts)


def parameter_symbols(slug: str) -> dict[str, str]:
    """Parameter of a method → its symbol, or its title in lower case; empty for a method that is not in the catalogue."""
    method = methods.find(slug)
    return {name: _symbol(name, field) for name, field in method.Params.model_fields.items()} if method else {}


def parameter_label(name: str, field: Any) -> str:
    """`Strength λ`: a parameter's title with its symbol; its name if its method has no such field (any more)."""
    if field is None:
        return name
    symbol = _extra(field).get("symbol")
    return f"{field.title or name} {symbol}" if symbol else str(field.title or name)


def _symbol(name: str, field: Any) -> str:
    return str(_extra(field).get("symbol") or _lowered(field.title or name))


def _extra(field: Any) -> Mapping[str, Any]:
    return field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}


def _lowered(title: str) -> str:
    """In lower case, except for the name of a method before a colon."""
    method, colon, words = title.rpartition(": ")
    return f"{method}{colon}{words.lower()}"


def setting(value: Any) -> str:
    """A setting as readable text."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "all"}[value]
    return f"{value:g}".replace("-", "−") if isinstance(value, (int, float)) else str(value)

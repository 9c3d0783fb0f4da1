"""What a run's method, parameters and settings are called, on every screen and in every table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isoviz import methods


def method_title(slug: str) -> str:
    """The method's name on screen; its slug if it is not in the catalogue (any more)."""
    known = methods.find(slug)
    return known.title if known else slug


def variant(slug: str, params: Mapping[str, Any]) -> str:
    """`λ = 1, ζ = 0.8`: the method's first parameter always, the others where they differ from their default."""
    known = methods.find(slug)
    if known is None:
        return ", ".join(f"{name} = {setting(value)}" for name, value in params.items())
    parts = []
    for place, (name, field) in enumerate(known.Params.model_fields.items()):
        leads = _extra(field).get("leading", place == 0)  # of a combination, each part's first
        if name in params and (leads or params[name] != field.default):
            parts.append(f"{_symbol(name, field)} = {setting(params[name])}")
    return ", ".join(parts)


def parameter_symbols(slug: str) -> dict[str, str]:
    """Parameter of a method → its symbol, or its title in lower case; empty for a method that is not in the catalogue."""
    known = methods.find(slug)
    return {name: _symbol(name, field) for name, field in known.Params.model_fields.items()} if known else {}


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
    """In lower case, but for the name of a method that stands before a colon."""
    method, colon, words = title.rpartition(": ")
    return f"{method}{colon}{words.lower()}"


def setting(value: Any) -> str:
    """A setting as people write it."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "all"}[value]
    return f"{value:g}".replace("-", "−") if isinstance(value, (int, float)) else str(value)

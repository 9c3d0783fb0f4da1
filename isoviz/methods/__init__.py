"""The catalogue of methods: every `Method` in this folder and in installed packages, and their combinations."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from types import MappingProxyType

from pydantic import ValidationError

from isoviz.catalogues import discover
from isoviz.errors import InputError, input_error, named, unknown_name
from isoviz.methods import composition
from isoviz.methods.protocol import Method, Params
from isoviz.parameters import ParamValue

__all__ = ["catalogue", "check_params", "combinations", "find", "get", "place"]


@functools.cache
def catalogue() -> Mapping[str, type[Method]]:
    """All methods by slug, baseline first, then by name."""
    items = discover(__name__, "isoviz.methods", Method)
    return MappingProxyType(dict(sorted(items.items(), key=lambda pair: (pair[0] != "baseline", pair[0]))))


def get(slug: str) -> type[Method]:
    """The method with this slug, or a combination such as `isobn+istar`; the order does not matter.

    Raises:
        InputError: unknown name, with the allowed names; or methods that cannot be combined, with the reason.
    """
    if composition.JOIN in slug:
        parts = [_single(part.strip()) for part in slug.split(composition.JOIN)]
        return _composed(tuple(sorted((part.slug for part in parts), key=list(catalogue()).index)))
    return _single(slug)


def find(slug: str) -> type[Method] | None:
    """Like `get`, but None if the method does not exist, or no longer exists."""
    try:
        return get(slug)
    except InputError:
        return None


@functools.cache
def combinations() -> Mapping[str, type[Method]]:
    """All valid pairs, by slug. Combinations of more than two methods are allowed too."""
    pairs = itertools.combinations(catalogue().values(), 2)
    joined = (composition.JOIN.join(part.slug for part in pair) for pair in pairs if not composition.why_not(pair))
    return MappingProxyType({slug: get(slug) for slug in joined})


def place(slug: str) -> tuple[int, ...]:
    """Sort key for methods: the catalogue's order, then combinations, then unknown slugs."""
    order = list(catalogue())
    parts = slug.split(composition.JOIN)
    return (len(parts), *(order.index(part) if part in order else len(order) for part in parts))


def _single(slug: str) -> type[Method]:
    return named(catalogue(), slug, "method")


@functools.cache
def _composed(slugs: tuple[str, ...]) -> type[Method]:
    return composition.compose([catalogue()[slug] for slug in slugs])


def check_params(slug: str, values: Mapping[str, object]) -> dict[str, ParamValue]:
    """Validate a method's parameters and fill in defaults; `InputError` names the parameter, the value and the allowed
    values."""
    method = get(slug)
    allowed = method.Params.model_fields
    for name in values:
        if name not in allowed:
            if not allowed:
                raise InputError(f"method '{slug}' has no parameters, got '{name}'", field=f"params.{name}")
            raise unknown_name(f"parameter of '{slug}'", name, allowed, field=f"params.{name}")
    if issubclass(method, composition.Composed):  # one method at a time, so that each method's own validators run
        return {
            f"{part.slug}.{name}": value
            for part in method.part_classes
            for name, value in _validated(part, composition.own_params(part.slug, values), f"{part.slug}.").items()
        }
    return _validated(method, values)


def _validated(method: type[Method], values: Mapping[str, object], prefix: str = "") -> dict[str, ParamValue]:
    try:
        params: Params = method.Params.model_validate(dict(values))
    except ValidationError as error:
        raise input_error(error, prefix=f"params.{prefix}") from None
    return params.model_dump()

"""The catalogue of methods: every module of this folder that defines a `Method` is in it."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType

from pydantic import ValidationError

from isoviz.config import ParamValue, input_error
from isoviz.errors import InputError, unknown_name
from isoviz.methods.protocol import Method, Params

__all__ = ["catalogue", "check_params", "get"]


@functools.cache
def catalogue() -> Mapping[str, type[Method]]:
    """All methods by slug, baseline first, then by name."""
    found: dict[str, type[Method]] = {}
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        for _, item in inspect.getmembers(module, inspect.isclass):
            if issubclass(item, Method) and item is not Method and item.__module__ == module.__name__:
                found[item.slug] = item
    return MappingProxyType(dict(sorted(found.items(), key=lambda pair: (pair[0] != "baseline", pair[0]))))


def get(slug: str) -> type[Method]:
    """The method of that name; `InputError` with the allowed names otherwise."""
    try:
        return catalogue()[slug]
    except KeyError:
        raise unknown_name("method", slug, catalogue(), field="method") from None


def check_params(slug: str, values: Mapping[str, object]) -> dict[str, ParamValue]:
    """Validate and complete a method's parameters; `InputError` names the parameter, what was got and what is allowed."""
    method = get(slug)
    allowed = method.Params.model_fields
    for name in values:
        if name not in allowed:
            if not allowed:
                raise InputError(f"method '{slug}' has no parameters, got '{name}'", field=f"params.{name}")
            raise unknown_name(f"parameter of '{slug}'", name, allowed, field=f"params.{name}")
    try:
        params: Params = method.Params.model_validate(dict(values))
    except ValidationError as error:
        raise input_error(error, prefix="params.") from None
    return params.model_dump()

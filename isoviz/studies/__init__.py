"""The catalogue of studies: the papers' tables and figures as data, what to compute and how to draw it.

Every module of this folder that defines a `Study` is in the catalogue.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType

from isoviz.errors import unknown_name
from isoviz.studies.inputs import Inputs
from isoviz.studies.protocol import Study
from isoviz.studies.result import Result

__all__ = ["Inputs", "Result", "Study", "catalogue", "get"]


@functools.cache
def catalogue() -> Mapping[str, type[Study]]:
    """All studies by slug, in alphabetical order. Importing them loads no torch."""
    found: dict[str, type[Study]] = {}
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        for _, item in inspect.getmembers(module, inspect.isclass):
            if issubclass(item, Study) and item is not Study and item.__module__ == module.__name__:
                found[item.slug] = item
    return MappingProxyType(dict(sorted(found.items())))


def get(slug: str) -> type[Study]:
    """The study of that name; `InputError` with the allowed names otherwise."""
    try:
        return catalogue()[slug]
    except KeyError:
        raise unknown_name("study", slug, catalogue(), field="study") from None

"""The catalogue of studies: the papers' tables and figures as data, what to compute and how to draw it.

Every module of this folder that defines a `Study` is in the catalogue.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType

from isoviz.catalogues import in_folder
from isoviz.errors import unknown_name
from isoviz.studies.inputs import Inputs
from isoviz.studies.papers import every_place
from isoviz.studies.protocol import Study
from isoviz.studies.result import Result

__all__ = ["Inputs", "Result", "Study", "catalogue", "get", "places"]


@functools.cache
def catalogue() -> Mapping[str, type[Study]]:
    """All studies by slug, in alphabetical order. Importing them loads no torch."""
    return MappingProxyType(dict(sorted(in_folder(__name__, Study).items())))


@functools.cache
def places() -> tuple[type[Study], ...]:
    """The studies that show one figure or table each, in the order of print; bundles of them are left out."""
    single = [study for study in catalogue().values() if not study.parts]
    order = {(source.paper.short, place.name): at for at, (source, place) in enumerate(every_place())}
    return tuple(sorted(single, key=lambda one: order.get((one.paper.short, one.place), len(order))))


def get(slug: str) -> type[Study]:
    """The study of that name; `InputError` with the allowed names otherwise."""
    try:
        return catalogue()[slug]
    except KeyError:
        raise unknown_name("study", slug, catalogue(), field="study") from None

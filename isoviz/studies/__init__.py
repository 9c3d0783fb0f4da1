"""The catalogue of studies: the papers' tables and figures as data, what to compute and how to draw it.

Every module of this folder that defines a `Study` is in the catalogue.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from isoviz.catalogues import in_folder
from isoviz.errors import unknown_name
from isoviz.studies.inputs import Inputs
from isoviz.studies.papers import Place, Source, every_place
from isoviz.studies.protocol import Study
from isoviz.studies.result import Result

__all__ = ["Inputs", "Listed", "Result", "Study", "catalogue", "get", "listed"]


@functools.cache
def catalogue() -> Mapping[str, type[Study]]:
    """All studies by slug, in alphabetical order. Importing them loads no torch."""
    return MappingProxyType(dict(sorted(in_folder(__name__, Study).items())))


class Listed(NamedTuple):
    """One figure or table: its slug, its place in the paper, and its study."""

    slug: str
    source: Source
    place: Place
    study: type[Study]


@functools.cache
def listed() -> tuple[Listed, ...]:
    """All figures and tables of the papers with a study, in the order of print."""
    names = {
        (study.paper.short, place): (slug, study)
        for study in catalogue().values()
        for slug, place in (study.parts or {study.slug: study.place}).items()
    }
    places = [(names.get((source.paper.short, place.name)), source, place) for source, place in every_place()]
    return tuple(Listed(named[0], source, place, named[1]) for named, source, place in places if named)


def get(slug: str) -> type[Study]:
    """The study with this slug, or the study that contains this part. Raises `InputError` with the allowed names."""
    entries = {**{part.slug: part.study for part in listed()}, **catalogue()}
    try:
        return entries[slug]
    except KeyError:
        raise unknown_name("study", slug, entries, field="study") from None

"""The catalogue of studies: the papers' tables and figures as data, what to compute and how to draw it.

Every module of this folder that lists `STUDIES` adds them to the catalogue.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from isoviz.catalogues import discover
from isoviz.errors import named
from isoviz.studies.inputs import Inputs
from isoviz.studies.papers import PAPERS, Source, slug_of
from isoviz.studies.result import Result
from isoviz.studies.study import Study

__all__ = ["Inputs", "Listed", "Result", "Study", "catalogue", "get", "listed"]


@functools.cache
def catalogue() -> Mapping[str, Study]:
    """All studies by slug, in alphabetical order. Importing them loads no torch."""
    return MappingProxyType(dict(sorted(discover(__name__, "isoviz.studies", Study, listed_as="STUDIES").items())))


class Listed(NamedTuple):
    """One figure or table: its slug, its paper and place, and its study."""

    slug: str
    source: Source
    place: str
    study: Study


@functools.cache
def listed() -> tuple[Listed, ...]:
    """All figures and tables of the papers, in the order of print, then the studies of other packages."""
    studies = {slug: study for study in catalogue().values() for slug in (study.slug, *study.parts)}
    places = [(slug_of(source, place), source, place) for source in PAPERS for place in source.places]
    printed = [Listed(slug, source, place, studies[slug]) for slug, source, place in places]
    others = [study for study in catalogue().values() if study not in [one.study for one in printed]]
    return (*printed, *(Listed(study.slug, study.source, study.place, study) for study in others))


def get(slug: str) -> Study:
    """The study with this slug, or the study that contains this part. Raises `InputError` with the allowed names."""
    return named({**{part.slug: part.study for part in listed()}, **catalogue()}, slug, "study")

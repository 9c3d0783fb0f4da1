"""The papers' training recipes as settings of a run, from `recipes.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from isoviz.errors import named


@dataclass(frozen=True)
class Recipe:
    """One paper's training setup; `recipes.toml` explains the fields."""

    slug: str
    title: str
    settings: Mapping[str, Any] = field(repr=False)
    seeds: int
    notes: tuple[str, ...]


RECIPES: Mapping[str, Recipe] = {
    slug: Recipe(slug, **{**fields, "notes": tuple(fields["notes"])})
    for slug, fields in tomllib.loads(files("isoviz").joinpath("recipes.toml").read_text(encoding="utf-8")).items()
}


def get(slug: str) -> Recipe:
    """The recipe with this name; `InputError` with the allowed names if there is none."""
    return named(RECIPES, slug, "recipe")

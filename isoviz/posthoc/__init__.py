"""Transforms of finished embeddings: fit on one cloud, apply to another. The catalogue holds those of this folder and of
installed packages.

Each transform is called by its slug: `isoviz.posthoc.zca(strength=0.5).fit(train).transform(dev)`. Arrays have shape
(points, dimensions); numpy in, float64 out; a tensor in, a tensor of its working type on its device out.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from isoviz.catalogues import in_folder, installed
from isoviz.errors import InputError, unknown_name
from isoviz.posthoc.affine_map import Affine
from isoviz.posthoc.protocol import CataloguedTransform, State, Transform
from isoviz.posthoc.sequence import Chain, chain

__all__ = ["Affine", "CataloguedTransform", "Chain", "State", "Transform", "catalogue", "chain", "from_state", "get"]


@functools.cache
def catalogue() -> Mapping[str, type[CataloguedTransform]]:
    """All transforms by slug, by name."""
    items = _ours() | installed("isoviz.transforms", CataloguedTransform, taken={*_ours(), Chain.slug})
    return MappingProxyType(dict(sorted(items.items())))


@functools.cache
def _ours() -> dict[str, type[CataloguedTransform]]:
    return in_folder(__name__, CataloguedTransform)


def get(slug: str) -> type[CataloguedTransform]:
    """The transform of that name; `InputError` with the allowed names otherwise."""
    try:
        return catalogue()[slug]
    except KeyError:
        raise unknown_name("transform", slug, catalogue(), field="transform") from None


def from_state(state: State) -> Transform:
    """The fitted transform, or chain, that `state()` described; `InputError` where the description does not hold."""
    spec = state.get("spec") if isinstance(state, Mapping) else None
    if not isinstance(spec, Mapping) or not isinstance(state.get("arrays"), Mapping):
        raise InputError("a saved transform must hold 'spec' and 'arrays'")
    slug = str(spec.get("slug"))
    return Chain.from_state(state, from_state) if slug == Chain.slug else get(slug).from_state(state)


def __getattr__(name: str) -> Any:
    # The import system itself asks for names with underscores in front while this package is half loaded.
    if not name.startswith("_"):
        # ours first: an installed package may import them while the catalogue is being made
        for items in (_ours, catalogue):
            if name in items():
                return items()[name]
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *catalogue()})

"""Transforms of finished embeddings: fit on one cloud, apply to another. The catalogue lists the transforms in this folder and
in installed packages.

Call a transform by its slug: `isoviz.posthoc.zca(strength=0.5).fit(train).transform(dev)`. Arrays have shape (points,
dimensions). numpy input gives float64; a tensor gives a tensor of its working type on its device.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from isoviz.catalogues import in_folder, installed
from isoviz.errors import named
from isoviz.posthoc.protocol import Affine, CataloguedTransform, Transform
from isoviz.posthoc.sequence import Chain, chain

__all__ = ["Affine", "CataloguedTransform", "Chain", "Transform", "catalogue", "chain", "get"]


@functools.cache
def catalogue() -> Mapping[str, type[CataloguedTransform]]:
    """All transforms by slug, sorted by name."""
    items = _ours() | installed("isoviz.transforms", CataloguedTransform, taken={*_ours(), Chain.slug})
    return MappingProxyType(dict(sorted(items.items())))


@functools.cache
def _ours() -> dict[str, type[CataloguedTransform]]:
    return in_folder(__name__, CataloguedTransform)


def get(slug: str) -> type[CataloguedTransform]:
    """The transform with this slug; `InputError` with the allowed names if there is none."""
    return named(catalogue(), slug, "transform")


def __getattr__(name: str) -> Any:
    # The import system looks up underscore names while this package is still loading.
    if not name.startswith("_"):
        # built-in transforms first: an installed package may import them while the catalogue is being built
        for items in (_ours, catalogue):
            if name in items():
                return items()[name]
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *catalogue()})

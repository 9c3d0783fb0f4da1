"""IsoScore* of a view: its tokens' covariance mixed with Σ_S, the covariance of training tokens that the same encoder gives.

A view reads one split, so the training rows are read after it. ζ, and which layers are taken together, are those of the value
that runs report (`isoviz.training.measuring`); of an encoder-decoder a view reads the encoder, a run the decoder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import IsoVizError
from isoviz.metrics.cloud import too_few
from isoviz.metrics.cloud_stream import CloudStream
from isoviz.metrics.scores import REPORTED_ZETA
from isoviz.models.views import Views

if TYPE_CHECKING:
    from isoviz.exploring.request import ViewRequest

MEASURE: Final = "isoscore_star"
OF_TOKENS: Final = "Σ_S is of training tokens, so it is a measure of pooling tokens"
_DEPENDENT: Final = "isoscore_unbiased is undefined: tokens of one text are not independent points"
_BY_LAYER: Final = "twonn is taken layer by layer only"


@dataclass(frozen=True)
class Target:
    """Training tokens for Σ_S.

    Attributes:
        streams: layer → running sums over its tokens.
        facts: ready for JSON: `zeta`; of the training rows `split`, `rows`, `rows_in_split`, `seed`, `shared` (rows that the
            view reads too) and `truncated`; `tokens`, how many of them each layer has; `words`, all of it as a sentence.
    """

    streams: Mapping[int, CloudStream]
    facts: dict[str, Any]


def training_rows(request: ViewRequest, count: int) -> NDArray[np.int64]:
    """Which of `count` training rows Σ_S is from, ascending: as many as the view takes at most, drawn by its seed."""
    drawn = np.random.default_rng((request.seed, 1)).permutation(count)  # as a run draws them
    return np.sort(drawn[: request.max_rows])


def target(request: ViewRequest, count: int, views: Views, read: Callable[[NDArray[np.int64]], Views]) -> Target | str:
    """The training tokens of a view, or why there are none.

    Args:
        count: rows of the training split.
        views: what the view itself has read.
        read: gives the tokens of every layer for training rows by their number.
    """
    rows = training_rows(request, count)
    shared = int((rows < views.rows).sum()) if request.split == "train" else 0  # a view reads the first ones
    same = shared == views.rows == len(rows)
    try:
        found = views if same else read(rows)
    except IsoVizError as error:
        return f"its training rows cannot be read: {error}"
    streams = {layer: view.stream for layer, view in found.tokens.items()}
    tokens = streams[views.depth].count
    if tokens < 2:
        return f"Σ_S is undefined: {too_few(tokens)}"
    words = (
        f"ζ = {REPORTED_ZETA}, Σ_S from {tokens:,} tokens of each layer, of {len(rows):,} of {count:,} rows of train"
    )
    words += f" drawn with seed {request.seed}" if len(rows) < count else ""
    if same:
        words += ": the very rows of the view, so it equals isoscore"
    elif request.split == "train":
        words += f", the split of the view itself: {shared:,} of them are rows of the view"
    if found.truncated:
        words += f"; {found.truncated:,} of the training rows were cut at {found.max_length} tokens"
    facts = {
        "zeta": REPORTED_ZETA,
        "split": "train",
        "rows": len(rows),
        "rows_in_split": count,
        "seed": request.seed,
        "shared": shared,
        "truncated": found.truncated,
        "tokens": tokens,
        "words": words,
    }
    return Target(streams, facts)


def without(entries: Iterable[Mapping[str, Any]], why: str) -> list[dict[str, Any]]:
    """Entries of `isoviz.models.profile` with `isoscore_star` None, and why in their notes."""
    return [_with(entry, None, why) for entry in entries]


def scored(entries: Iterable[Mapping[str, Any]], views: Views, found: Target) -> list[dict[str, Any]]:
    """Entries of `isoviz.models.profile` with `isoscore_star`: of every layer's tokens, with Σ_S of the same layer."""
    whole = []
    for entry in entries:
        if entry["pooling"] != "tokens":
            whole.append(_with(entry, None, OF_TOKENS))
            continue
        covariance = found.streams[entry["layer"]].covariance()
        estimate = views.tokens[entry["layer"]].stream.isoscore_star(covariance, found.facts["zeta"])
        value = None if estimate.problem else float(estimate.value)
        whole.append(_with(entry, value, estimate.problem or found.facts["words"]))
    return whole


def together(views: Views, found: Target, *, split: str) -> dict[str, Any]:
    """The entry of cloud `layers`: the tokens of all layers but the embedding output as one cloud, as runs take them.

    As an entry of `isoviz.models.profile`, with `layer` None, `layers` the first and the last one, and `isoscore_star`.
    """
    from isoviz.models.profile import of_dimensions

    cloud = _union(views.depth, {layer: view.stream for layer, view in views.tokens.items()})
    sigma = _union(views.depth, found.streams).covariance()
    values = cloud.describe()
    estimate = cloud.isoscore_star(sigma, found.facts["zeta"])
    entry = {
        "cloud": "layers",
        "layer": None,
        "layers": [min(1, views.depth), views.depth],
        "pooling": "tokens",
        "split": split,
        **values,
        "isoscore_unbiased": None,
        "isoscore_unbiased_interval": None,
        "twonn": None,
        "warnings": [*values["warnings"], _DEPENDENT, _BY_LAYER],
        **of_dimensions(cloud),
        "truncated": views.truncated,
    }
    value = None if estimate.problem else float(estimate.value)
    return _with(entry, value, estimate.problem or found.facts["words"])


def _union(depth: int, streams: Mapping[int, CloudStream]) -> CloudStream:
    from isoviz.training.measuring import TokenClouds

    layers = range(min(1, depth), depth + 1)
    clouds = TokenClouds(len(layers), streams[depth].sums.d)
    for own, layer in zip(clouds.layers, layers, strict=True):
        own.merge(streams[layer])
    return clouds.union()


def _with(entry: Mapping[str, Any], value: float | None, told: str) -> dict[str, Any]:
    note = f"{MEASURE} is undefined: {told}" if value is None else f"{MEASURE}: {told}"
    return {**entry, MEASURE: value, "warnings": [*entry["warnings"], note]}

"""IsoScore* of a view: its tokens' covariance mixed with Σ_S, the covariance of training tokens from the same encoder.

A view reads one split, so the training rows are read afterwards. ζ and the layers are the same as in runs
(`isoviz.training.measuring`); for an encoder-decoder, a view reads the encoder, a run the decoder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz import metrics
from isoviz.errors import IsoVizError
from isoviz.metrics.cloud import too_few
from isoviz.metrics.measuring import measure_cloud, reading_of
from isoviz.metrics.record import CloudRecord, Reading
from isoviz.metrics.scores import REPORTED_ZETA
from isoviz.metrics.streaming import CovarianceAccumulator
from isoviz.models.views import Views

if TYPE_CHECKING:
    from isoviz.exploring.request import ViewRequest

MEASURE: Final = "isoscore_star"
OF_TOKENS: Final = "Σ_S is of training tokens, so it is a measure of pooling tokens"


@dataclass(frozen=True)
class Target:
    """Training tokens for Σ_S.

    Attributes:
        streams: layer → running sums over its tokens.
        facts: JSON-ready: `words`, which say in a sentence how ζ, tokens and training rows were chosen.
    """

    streams: Mapping[int, CovarianceAccumulator]
    facts: dict[str, Any]


def training_rows(request: ViewRequest, count: int) -> NDArray[np.int64]:
    """Ascending indices of the training rows for Σ_S, sampled from `count` with the view's seed, at most `max_rows`."""
    sampled = np.random.default_rng((request.seed, 1)).permutation(count)  # the same sample as in runs
    return np.sort(sampled[: request.max_rows])


def target(request: ViewRequest, count: int, views: Views, read: Callable[[NDArray[np.int64]], Views]) -> Target | str:
    """The training tokens of a view, or the reason why there are none.

    Args:
        count: rows of the training split.
        views: the view's own clouds.
        read: returns the tokens of every layer for training rows by index.
    """
    rows = training_rows(request, count)
    shared = int((rows < views.rows).sum()) if request.split == "train" else 0  # a view reads the first rows
    same_rows = shared == views.rows == len(rows)
    try:
        training_views = views if same_rows else read(rows)
    except IsoVizError as error:
        return f"its training rows cannot be read: {error}"
    streams = {layer: view.stream for layer, view in training_views.tokens.items()}
    tokens = streams[views.depth].count
    if tokens < 2:
        return f"Σ_S is undefined: {too_few(tokens)}"
    note = f"ζ = {REPORTED_ZETA}, Σ_S from {tokens:,} tokens of each layer, of {len(rows):,} of {count:,} rows of train"
    note += f" drawn with seed {request.seed}" if len(rows) < count else ""
    if same_rows:
        note += ": the same rows as the view, so it equals isoscore"
    elif request.split == "train":
        note += f", the view's own split: the view contains {shared:,} of them"
    if training_views.truncated:
        note += f"; {training_views.truncated:,} of the training rows were cut at {training_views.max_length} tokens"
    return Target(streams, {"words": note})


def without(records: Iterable[CloudRecord], reason: str) -> list[CloudRecord]:
    """Records with undefined `isoscore_star` and its reason."""
    return [record.with_readings({MEASURE: Reading(undefined=reason)}) for record in records]


def scored(records: Iterable[CloudRecord], views: Views, shrinkage_target: Target) -> list[CloudRecord]:
    """Records with `isoscore_star` of each layer's tokens, with Σ_S of the same layer."""
    complete_records = []
    for record in records:
        reading = Reading(undefined=OF_TOKENS)
        if record.pooling == "tokens" and record.layer is not None:
            reading = _reading(
                views.tokens[record.layer].stream, shrinkage_target.streams[record.layer], shrinkage_target
            )
        complete_records.append(record.with_readings({MEASURE: reading}))
    return complete_records


def together(views: Views, shrinkage_target: Target, *, split: str) -> CloudRecord:
    """The record of cloud `layers`: the tokens of all layers except the embedding output as one cloud, as in runs."""
    cloud = _union(views.depth, {layer: view.stream for layer, view in views.tokens.items()})
    where = {"pooling": "tokens", "truncated": views.truncated}
    record = measure_cloud(cloud.sample(), "layers", "tokens", split=split, where=where)
    return record.with_readings(
        {MEASURE: _reading(cloud, _union(views.depth, shrinkage_target.streams), shrinkage_target)}
    )


def _reading(cloud: CovarianceAccumulator, training: CovarianceAccumulator, shrinkage_target: Target) -> Reading:
    sample = cloud.sample(shrinkage_cov=training.covariance, zeta=REPORTED_ZETA)
    reading = reading_of(metrics.get(MEASURE), sample)
    provenance = {
        "note": f"is taken with {shrinkage_target.facts['words']}",
        "settings": {"zeta": REPORTED_ZETA},
    }
    return reading if reading.undefined else reading.model_copy(update=provenance)


def _union(depth: int, streams: Mapping[int, CovarianceAccumulator]) -> CovarianceAccumulator:
    return CovarianceAccumulator.union(streams[layer] for layer in range(min(1, depth), depth + 1))

"""One pass over validation rows in evaluation mode: predictions for the task's metric, point clouds for the isotropy."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from isoviz import metrics
from isoviz.events import Measured
from isoviz.metrics.cloud_stream import CloudStream
from isoviz.metrics.measuring import applicable, measure_cloud, measure_weights
from isoviz.metrics.protocol import QUICK
from isoviz.metrics.record import CloudRecord, Measurement, Reading
from isoviz.metrics.sample import Sample
from isoviz.metrics.scores import REPORTED_ZETA
from isoviz.metrics.spectrum import cumulative_shares
from isoviz.models.adapter import HeadedModel
from isoviz.training import checked_arrays
from isoviz.training.batches import Encoded
from isoviz.training.heads import Head
from isoviz.training.shrinkage import Shrinkage

if TYPE_CHECKING:
    from accelerate import Accelerator

SPLIT = "validation"
ONE_TOKEN = "one random token of each row"
"""How the `head` and `pooled` clouds are sampled if the output layer reads every token."""

Check = Callable[[], None]
"""Called between batches; raises to abort the pass (after a request to stop)."""


Gather = Callable[[Any], list[Any]]
"""Collects every process's item on all processes (`processes.Processes.gather`)."""


_HELD_TOKENS, _HELD_BYTES = 2_048, 64 * 2**20
"""Most points buffered before summing, because each addition to running sums costs d² for any number of points."""


class TokenClouds:
    """Streams the unpadded token vectors of each layer."""

    def __init__(self, layers: int, width: int) -> None:
        self.layers = [CloudStream(width) for _ in range(layers)]
        self._held: list[list[Tensor]] = [[] for _ in range(layers)]

    def update(self, hidden_states: Iterable[Tensor], keep: Tensor) -> None:
        """Add one batch: (B, L, d) per layer; `keep` (B, L) masks the tokens to include."""
        for buffer, hidden in zip(self._held, hidden_states, strict=True):
            buffer.append(hidden[keep].float())
        tokens = sum(map(len, self._held[0]))
        if tokens >= _HELD_TOKENS or 4 * tokens * self.layers[0].sums.d * len(self.layers) >= _HELD_BYTES:
            self._sum()

    def _sum(self) -> None:
        for layer, buffer in zip(self.layers, self._held, strict=True):
            if buffer:
                layer.update(torch.cat(buffer))
                buffer.clear()

    def reduce(self, gather: Gather) -> None:
        """Add the points of the other processes, with the same result on all of them. Call once, before reading the clouds."""
        self._sum()
        self.layers = [layer.reduce(gather) for layer in self.layers]

    def union(self) -> CloudStream:
        """All layers' points as one cloud."""
        total = CloudStream(self.layers[0].sums.d)
        for layer in self.layers:
            total.merge(layer)
        return total


@dataclass
class Pass:
    """The result of one pass.

    Attributes:
        loss: mean task loss over the rows.
        predictions: the head's prediction for each item, in order.
        pooled, head: (p, h) one vector of each probe row before and after the method, in row order.
        drawn: how these vectors were sampled if a row has several; otherwise "".
        tokens: the probe rows' token clouds.
        cloud_seconds: additional seconds for collecting the clouds.
    """

    loss: float
    predictions: list[Any]
    pooled: np.ndarray
    head: np.ndarray
    drawn: str
    tokens: TokenClouds
    cloud_seconds: float


def run_pass(
    model: HeadedModel,
    predictor: Head,
    encoded: Encoded,
    batches: Iterable[dict[str, Tensor]],
    accelerator: Accelerator,
    gather: Gather,
    probe_rows: int,
    seed: int,
    check: Check,
) -> Pass:
    """Predict all items; collect clouds of the first items of the first `probe_rows` rows. Each process handles its part.

    If the output layer reads every token, the `pooled` and `head` clouds have one token per row, sampled by seed and row, because
    neighbouring tokens are not independent points.
    """
    model.eval()
    tokens = TokenClouds(model.num_layers, model.width)
    probed = encoded.firsts(probe_rows)
    shares = np.random.default_rng((seed, 2)).random(len(encoded))
    predictions: list[tuple[int, Any]] = []
    vectors: list[tuple[np.ndarray, ...]] = []
    loss, labels, cloud_seconds = 0.0, 0, 0.0
    with torch.inference_mode():
        for batch in batches:
            check()
            items = batch.pop("item").numpy()
            batch = {name: value.to(accelerator.device) for name, value in batch.items()}
            with accelerator.autocast():
                outputs = model(**batch)
                predictions += zip(items.tolist(), predictor.predict(model, outputs, batch), strict=True)
            loss += float(outputs.terms["task"]) * outputs.count
            labels += outputs.count
            began = time.perf_counter()
            probe, mask = probed[items], outputs.reps.attention_mask
            places = np.arange(len(items))
            if model.per_token:
                counts = mask.sum(dim=1).cpu().numpy()
                places = np.cumsum(counts) - counts + (shares[items] * counts).astype(np.int64)
            positions = torch.from_numpy(places[probe]).to(mask.device)
            layers_read = (outputs.reps.pooled[positions].float(), outputs.head[positions].float())
            vectors.append((items[probe], *(value.cpu().numpy() for value in layers_read)))
            tokens.update(outputs.reps.hidden_states, mask.bool() & torch.from_numpy(probe).to(mask.device)[:, None])
            cloud_seconds += time.perf_counter() - began
    results = gather((loss, labels, predictions, vectors))
    mean_loss = sum(process_result[0] for process_result in results) / sum(
        process_result[1] for process_result in results
    )
    if math.isfinite(mean_loss):  # otherwise there are no clouds, and the caller ends the run
        began = time.perf_counter()
        tokens.reduce(gather)
        cloud_seconds += time.perf_counter() - began
    parts = [part for process_result in results for part in process_result[3]]
    numbers, pooled, head = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(numbers, kind="stable")
    return Pass(
        loss=mean_loss,
        predictions=[
            value
            for _, value in sorted(
                (pair for process_result in results for pair in process_result[2]), key=itemgetter(0)
            )
        ],
        pooled=pooled[order],
        head=head[order],
        drawn=ONE_TOKEN if model.per_token else "",
        tokens=tokens,
        cloud_seconds=cloud_seconds,
    )


def measured(
    eval_pass: Pass,
    target: Shrinkage,
    weight: Tensor,
    *,
    step: int,
    epoch: int,
    arrays: str,
    folder: Path | None = None,
) -> Measured:
    """The event of one measurement.

    Args:
        target: Σ_S of the reported IsoScore*.
        weight: (labels, h) of the output layer, for I1, I2 and their norm.
        arrays: path of the head's arrays, relative to the run's `folder`.
        folder: None writes nothing.
    """
    head = Sample(eval_pass.head)
    if folder is not None:
        save_arrays(folder / arrays, head)
    return Measured(
        step=step,
        epoch=epoch,
        isotropy=Measurement(
            clouds=measured_clouds(eval_pass, head, target),
            # no float64 copy of a vocabulary with a quarter million rows
            output=measure_weights(weight.detach().float().cpu().numpy()),
        ),
        arrays=arrays,
    )


_HEAD_ONLY = Reading(undefined="it compares all pairs of points, so every epoch it is taken on the head cloud only")


def measured_clouds(eval_pass: Pass, head: Sample, target: Shrinkage) -> dict[str, CloudRecord]:
    """`head`, `pooled`, `layers` and `layer_k`, each with n and d; undefined values have a reason.

    Because every epoch waits for this, single layers get only closed forms, and only the head gets metrics over pairs of points.
    """
    selection = {"drawn": eval_pass.drawn}
    clouds = {"head": measure_cloud(head, "head", split=SPLIT, where=selection)}
    if np.array_equal(eval_pass.head, eval_pass.pooled):  # the method changes nothing before the head: measured once
        clouds["pooled"] = clouds["head"].model_copy(update={"cloud": "pooled"})
    else:
        pooled = measure_cloud(Sample(eval_pass.pooled), "pooled", split=SPLIT, where=selection, costs=QUICK)
        left_out = {metric.slug: _HEAD_ONLY for metric in applicable("rows") if metric.cost not in QUICK}
        clouds["pooled"] = pooled.with_readings(left_out)
    clouds["layers"] = layers_record(eval_pass.tokens, target)
    for number, layer in enumerate(eval_pass.tokens.layers, start=1):
        name, position = f"layer_{number}", {"layer": number}
        clouds[name] = measure_cloud(
            layer.sample(), name, "tokens", split=SPLIT, where=position, costs=("closed form",)
        )
    return clouds


def layers_record(tokens: TokenClouds, target: Shrinkage) -> CloudRecord:
    """All layers' tokens as one cloud, with IsoScore* at ζ = 0.2 and its error from sampling Σ_S."""
    union = tokens.union()
    sample = union.sample(shrinkage_cov=target.covariance, zeta=REPORTED_ZETA)
    record = measure_cloud(sample, "layers", "tokens", split=SPLIT)
    reading = record.readings.get("isoscore_star")
    error = None
    if reading is not None and not reading.undefined:
        error = target.half_width(union.covariance(), REPORTED_ZETA)
    if reading is None or error is None:
        return record
    note = f"is taken with Σ_S from {target.rows:,} of {target.of_rows:,} training rows: ± {error:.2g} (95 %) against all of them"
    return record.with_readings({"isoscore_star": reading.model_copy(update={"error": error, "note": note})})


def save_arrays(path: Path, head: Sample) -> None:
    """Write the head cloud's |ρ|, its clustered order, σ and EV curve, atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    checked_arrays.save(path, _arrays(head))


def _arrays(head: Sample) -> dict[str, np.ndarray]:
    if head.n < 2:  # one row has no correlations; measures that need more report why they are undefined
        correlation, order = np.full((head.d, head.d), np.nan), np.arange(head.d)
    else:
        correlation = head.abs_correlation
        order = metrics.correlation_order(correlation)
    count = min(head.n, head.d)
    ev = np.full(count, np.nan) if head.eigenvalues is None else cumulative_shares(head.eigenvalues, count)
    return {
        "abs_correlation": correlation.astype(np.float16),
        "order": np.asarray(order, dtype=np.int32),
        "std": head.std.astype(np.float32),
        "ev": ev.astype(np.float32),
    }

"""The record of one measurement: every cloud of a validation pass, and the arrays that figures read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from torch import Tensor

from isoviz import metrics
from isoviz.metrics.measuring import applicable, measure_cloud, measure_weights
from isoviz.metrics.protocol import QUICK
from isoviz.metrics.record import CloudRecord, Measurement, Reading
from isoviz.metrics.sample import Sample
from isoviz.metrics.scores import REPORTED_ZETA
from isoviz.metrics.spectrum import cumulative_shares
from isoviz.metrics.streaming import CovarianceAccumulator
from isoviz.training.evaluation import Pass
from isoviz.training.shrinkage import SampledShrinkage

SPLIT = "validation"


def measurement(
    validated: Pass, target: SampledShrinkage, weight: Tensor, arrays: Path | None = None, widths: Sequence[int] = ()
) -> Measurement:
    """Everything measured on one validation pass.

    Args:
        target: Σ_S of the reported IsoScore*.
        weight: (labels, h) of the output layer, for I1, I2 and their norm, which embeddings do not have (labels = 0).
        arrays: the file to write the head's arrays to; None writes nothing.
        widths: numbers of first dimensions of the head, each measured as `head_WIDTH`.
    """
    head = Sample(validated.head)
    if arrays is not None:
        arrays.parent.mkdir(parents=True, exist_ok=True)
        _save(arrays, _arrays(head))
    # no float64 copy of a vocabulary with a quarter million rows
    output = measure_weights(weight.detach().float().cpu().numpy()) if len(weight) else None
    return Measurement(clouds=measured_clouds(validated, head, target, widths), output=output)


_HEAD_ONLY = Reading(undefined="it compares all pairs of points, so every epoch it is taken on the head cloud only")


def measured_clouds(
    validated: Pass, head: Sample, target: SampledShrinkage, widths: Sequence[int] = ()
) -> dict[str, CloudRecord]:
    """`head`, `head_WIDTH`, `pooled`, `layers` and `layer_k`, each with n and d; undefined values have a reason.

    Because every epoch waits for this, single layers get only closed forms, and only the head gets metrics over pairs of points.
    """
    selection = {"drawn": validated.drawn}
    clouds = {"head": measure_cloud(head, "head", split=SPLIT, where=selection)}
    for width in widths:
        name, cut = f"head_{width}", Sample(validated.head[:, :width])
        clouds[name] = measure_cloud(cut, name, split=SPLIT, where=selection, costs=("closed form",))
    if np.array_equal(validated.head, validated.pooled):  # the method changes nothing before the head: measured once
        clouds["pooled"] = clouds["head"].model_copy(update={"cloud": "pooled"})
    else:
        pooled = measure_cloud(Sample(validated.pooled), "pooled", split=SPLIT, where=selection, costs=QUICK)
        left_out = {metric.slug: _HEAD_ONLY for metric in applicable("rows") if metric.cost not in QUICK}
        clouds["pooled"] = pooled.with_readings(left_out)
    clouds["layers"] = layers_record(validated.layers, target)
    for number, layer in enumerate(validated.layers, start=1):
        name, position = f"layer_{number}", {"layer": number}
        clouds[name] = measure_cloud(
            layer.sample(), name, "tokens", split=SPLIT, where=position, costs=("closed form",)
        )
    return clouds


def layers_record(layers: Sequence[CovarianceAccumulator], target: SampledShrinkage) -> CloudRecord:
    """All layers' tokens as one cloud, with IsoScore* at ζ = 0.2."""
    union = CovarianceAccumulator.union(layers)
    sample = union.sample(shrinkage_cov=target.covariance, zeta=REPORTED_ZETA)
    record = measure_cloud(sample, "layers", "tokens", split=SPLIT)
    reading = record.readings.get("isoscore_star")
    if reading is None or reading.undefined or target.rows == target.of_rows:
        return record
    note = f"is taken with Σ_S from {target.rows:,} of {target.of_rows:,} training rows"
    return record.with_readings({"isoscore_star": reading.model_copy(update={"note": note})})


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


def _save(path: Path, arrays: dict[str, np.ndarray]) -> None:
    partial = path.with_name(f".writing-{path.name}")
    try:
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, partial)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)  # on a full disk the store may need the space to report the error
        raise

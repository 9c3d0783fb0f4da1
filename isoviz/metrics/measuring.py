"""Measures one cloud or one output matrix with every metric of the catalogue that applies to it; the records as flat JSON."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from isoviz import metrics
from isoviz.metrics.cloud import Estimate, Points
from isoviz.metrics.dimensions import dead_dimensions, outliers_of
from isoviz.metrics.directions import indistinct
from isoviz.metrics.partition_function import WeightSample, row_norms
from isoviz.metrics.protocol import COSTS, QUICK, CloudKind, Cost, Metric
from isoviz.metrics.record import PENDING, CloudRecord, Dimensions, Measurement, Reading, WeightsRecord
from isoviz.metrics.sample import Sample

DEPENDENT = "tokens of one text are not independent points"
POINTS_NEEDED = "it needs the points themselves, but only running sums of this cloud are stored"


def applicable(kind: CloudKind, costs: Collection[Cost] = COSTS) -> list[Metric]:
    """The metrics in records of this kind of cloud, in display order."""
    return [
        metric
        for metric in metrics.catalogue().values()
        if kind in metric.kinds and metric.cost in costs and metric.estimate is not None
    ]


def readings_of(
    sample: Sample,
    kind: CloudKind = "rows",
    *,
    costs: Collection[Cost] = COSTS,
    independent: Sample | None = None,
    drawn: Sample | None = None,
    most: int | None = None,
    seed: int = 0,
    interval: bool = True,
) -> dict[str, Reading]:
    """Every applicable metric of a cloud; undefined values carry their reason.

    Args:
        sample: the cloud; for tokens usually running sums. Metrics whose `inputs` it lacks are skipped.
        kind: `rows` for independent points, `tokens` for dependent ones.
        costs: cost classes to measure.
        independent: for tokens, one per row, for metrics that require independent points.
        drawn: points of the cloud if `sample` has none.
        most: maximum number of points for metrics over pairs, if lower than their own.
        seed: of the subsample.
        interval: False skips intervals.
    """
    readings = {}
    for metric in applicable(kind, costs):
        if not all(name in sample.inputs for name in metric.inputs):
            continue
        points: Sample | None = sample
        if metric.independent and kind == "tokens":
            points, missing = independent, DEPENDENT
        elif not metric.from_sums and sample.points is None:
            points, missing = drawn, POINTS_NEEDED
        if points is None:
            readings[metric.slug] = Reading(undefined=missing)
            continue
        limits = [limit for limit in (metric.most, most if metric.cost == "pairs" else None) if limit is not None]
        points = points.subset(min(limits, default=None), seed)
        inputs = {name: value for name, value in sample.inputs.items() if name in metric.inputs}
        settings = {name: float(value) for name, value in inputs.items() if np.ndim(value) == 0}
        fewer = points.n if points.n != sample.n else None
        reading = reading_of(metric, points, interval=interval)
        readings[metric.slug] = reading.model_copy(update={"points": fewer, "settings": settings})
    return readings


def reading_of(metric: Metric, sample: Any, *, interval: bool = True) -> Reading:
    """One metric on one sample."""
    assert metric.estimate is not None
    estimate: Estimate = metric.estimate(sample)
    ends, why_not = None, ""
    enough = metric.enough.points
    if metric.interval is not None and (interval or (enough is not None and sample.n < enough(sample.d))):
        between = metric.interval(sample)
        ends, why_not = (None, between.problem) if between.problem else ((between.low, between.high), "")
        if ends is not None and ends[1] - ends[0] > _width(metric, sample):
            why = f"it {cannot_be_estimated(sample.n)}: its 95 % interval is wider than its range"
            return Reading(undefined=why, note=estimate.note)
        ends, why_not = (ends, why_not) if interval else (None, "")
    if estimate.problem:
        return Reading(undefined=estimate.problem, note=estimate.note, no_interval=why_not)
    value = tuple(map(float, estimate.value)) if np.ndim(estimate.value) else float(estimate.value)
    return Reading(value=value, note=estimate.note, interval=ends, no_interval=why_not, p=estimate.p)


def cannot_be_estimated(n: int) -> str:
    """What stands in place of a number whose interval is wider than its range."""
    return f"cannot be estimated from {n:,} rows"


def _width(metric: Metric, sample: Any) -> float:
    """From a metric's lowest value to that of an isotropic population; its estimates may lie beyond both."""
    low, high = metric.range.low, metric.at_isotropy.value
    return np.inf if low is None or high is None else float(high(sample.n, sample.d)) - float(low(sample.n, sample.d))


def measure_cloud(
    sample: Sample,
    cloud: str,
    kind: CloudKind = "rows",
    *,
    split: str = "",
    where: Mapping[str, Any] | None = None,
    **options: Any,
) -> CloudRecord:
    """The record of a cloud.

    Args:
        cloud, split: see `CloudRecord`.
        where: further fields of `CloudRecord` (`drawn`, `layer`, `pooling`, `notes`, `truncated`).
        options: as for `readings_of`.
    """
    return CloudRecord(
        cloud=cloud,
        split=split,
        n=sample.n,
        d=sample.d,
        readings=readings_of(sample, kind, **options),
        dimensions=dimensions_of(sample),
        **(where or {}),
    )


def dimensions_of(sample: Sample) -> Dimensions | None:
    """Statistics of single dimensions; None without points."""
    if sample.n == 0:
        return None
    mean, std = sample.mean, sample.std
    biggest = float(np.abs(mean).max()) or 1.0
    return Dimensions(
        sigma=(float(std.min()), float(np.median(std)), float(std.max())),
        outliers=tuple(int(index) for index in outliers_of(mean, std=std)[:20]),
        mean_norm=biggest * float(np.linalg.norm(mean / biggest)),
        dead=tuple(int(index) for index in dead_dimensions(std, mean, sample.eps)[:20]),
    )


def measure_weights(weights: Any) -> WeightsRecord:
    """The record of an output matrix (N, d). Reads it in blocks of rows, because it may be large."""
    sample = WeightSample(weights)
    return WeightsRecord(
        rows=sample.n,
        d=sample.d,
        readings={metric.slug: reading_of(metric, sample) for metric in applicable("weights")},
        norm=float(np.linalg.norm(np.asarray(row_norms(weights)))),
    )


def notes_of(record: CloudRecord) -> list[str]:
    """Notes on a record, one sentence each: undefined values and their reasons, values from fewer points, and values that read
    low or high because there are few points."""
    notes = list(record.notes)
    if record.dimensions is None and record.n == 0:
        notes.append("sigma and mean_norm are undefined: there are no points")
    few_points = _few_points(record)
    if few_points:
        notes.append(few_points)
    if alike := indistinct(record.number("mean_cosine")):
        notes.append(alike)
    for slug, reading in record.readings.items():
        if reading.undefined == PENDING:
            notes.append(f"{slug} is {PENDING}")
        elif reading.undefined:
            notes.append(f"{slug} is undefined: {reading.undefined}")
        if reading.no_interval:
            notes.append(f"{slug}_interval is undefined: {reading.no_interval}")
        if reading.note:
            notes.append(f"{slug} {reading.note}")
        if reading.points is not None:
            metric = metrics.catalogue().get(slug)
            of_rows = metric is not None and metric.independent and reading.points != metric.most
            taken_from = "one token of each row, " if of_rows else "a sample of "
            notes.append(f"{slug} is taken on {taken_from}{reading.points} of {record.n} points")
    return notes


def _few_points(record: CloudRecord) -> str:
    """A warning for fewer than five points per dimension, empty otherwise."""
    n, d = record.n, record.d
    if not 0 < n < 5 * d:
        return ""
    catalogue = metrics.catalogue()
    defined = [
        catalogue[slug] for slug, reading in record.readings.items() if slug in catalogue and not reading.undefined
    ]
    clauses = []
    for direction in ("low", "high"):
        slugs = [metric.slug for metric in defined if metric.enough.reads == direction]
        if slugs:
            clauses.append(f"{', '.join(slugs)} read{'s' if len(slugs) == 1 else ''} {direction}")
    where = f"n = {n} points in d = {d} dimensions, n/d = {n / d:.2g} below 5"
    return f"{where}: {' and '.join(clauses)}" if clauses else ""


# ------------------------------------------------------------------------------------------------- as JSON


def describe(points: Points, twonn: bool = True, interval: bool = True) -> dict[str, Any]:
    """All metrics of a cloud (n, d), numpy or torch, in float64. Issues no Python warnings.

    Args:
        twonn: False skips metrics over pairs of points, including TwoNN, because they cost O(n²d).
        interval: False skips the interval (None, without a reason). At (2000, 768) on one thread the interval multiplies the
            time by 1.16 with TwoNN and by 1.64 without.

    Returns:
        See `as_json`.
    """
    costs = COSTS if twonn else QUICK
    return as_json(measure_cloud(Sample(points), "", costs=costs, interval=interval))


def as_json(record: CloudRecord) -> dict[str, Any]:
    """A record as flat JSON: `measure --json` and `describe`.

    n, d; n_per_d: n/d; below 5 the plain score reads low, and `warnings` says so; one entry per metric by its slug, None if
    undefined, with the reason in `warnings`; isoscore_unbiased_interval: [low, high] at 95 % by the jackknife over points,
    valid for independent points only; epps_pulley_p: of the hypothesis that the points come from an isotropic Gaussian; ev: at
    most 50 values; sigma (min, median and max population standard deviation of the
    dimensions), outlier_dimensions (at most 20, the most extreme first), dead_dimensions (at most 20, they do
    not vary), mean_norm: length of the mean vector.
    """
    values: dict[str, Any] = {"n": record.n, "d": record.d, "n_per_d": record.n / record.d if record.d else None}
    for slug, reading in record.readings.items():
        values[slug] = list(reading.value) if isinstance(reading.value, tuple) else reading.value
        if reading.interval or reading.no_interval or slug == "isoscore_unbiased":
            values[f"{slug}_interval"] = list(reading.interval) if reading.interval else None
        if reading.points is not None:
            values[f"{slug}_points"] = reading.points
        if reading.error is not None:
            values[f"{slug}_error"] = reading.error
        if reading.p is not None:
            values[f"{slug}_p"] = reading.p
        values |= reading.settings
    of_dimensions = record.dimensions
    names = ("min", "median", "max")
    values["sigma"] = dict(zip(names, of_dimensions.sigma, strict=True)) if of_dimensions else None
    values["outlier_dimensions"] = list(of_dimensions.outliers) if of_dimensions else []
    values["dead_dimensions"] = list(of_dimensions.dead) if of_dimensions else []
    values["mean_norm"] = of_dimensions.mean_norm if of_dimensions else None
    values.setdefault("twonn", None)
    values["warnings"] = notes_of(record)
    return values


def measurement_json(isotropy: Measurement) -> dict[str, Any]:
    """A run's isotropy in the format of `train --json`. The head's values are at the top level by slug, with `cloud`, `split`,
    n and d, and so are the values that the run reports for other clouds: `isoscore_star` (`isoscore_star_cloud` gives its
    cloud, n, d and ζ; `isoscore_star_error` bounds the effect of sampling Σ_S, at 95 %), `i1`, `i2` and `weight_norm` (of the
    output matrix). `by_layer` is the IsoScore of each layer's tokens, from first to last; `by_layer_clouds` has every
    metric of each.
    """
    head = isotropy.cloud("head")
    values = {**({} if head is None else {**as_json(head), "cloud": head.cloud, "split": head.split})}
    for slug in metrics.catalogue():
        if slug not in values and (reading := isotropy.reading(slug)) is not None:
            values[slug] = isotropy.number(slug)
            cloud = isotropy.cloud(isotropy.headline_cloud(slug))
            if cloud is not None:
                context = {"cloud": cloud.cloud, "split": cloud.split, "n": cloud.n, "d": cloud.d}
                values[f"{slug}_cloud"] = {**context, **reading.settings}
            if reading.error is not None:
                values[f"{slug}_error"] = reading.error
    for name in ("pooled", "layers"):
        cloud = isotropy.cloud(name)
        if cloud is not None:
            values[name] = {"cloud": name, "split": cloud.split, **as_json(cloud)}
    if isotropy.output is not None:
        values["weight_norm"] = isotropy.output.norm
        values["output"] = {"rows": isotropy.output.rows, "d": isotropy.output.d}
    values["by_layer"] = isotropy.by_layer("isoscore")
    values["by_layer_clouds"] = [
        {"cloud": layer.cloud, "split": layer.split, **as_json(layer)} for layer in isotropy.layers()
    ]
    return values

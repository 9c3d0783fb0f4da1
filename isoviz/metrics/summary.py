"""All metrics of a cloud at once, ready for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isoviz import metrics
from isoviz.metrics.measuring import measure_cloud, notes_of
from isoviz.metrics.protocol import COSTS, QUICK
from isoviz.metrics.record import CloudRecord, Measurement
from isoviz.metrics.sample import Sample

if TYPE_CHECKING:
    from isoviz.metrics.cloud import Points


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

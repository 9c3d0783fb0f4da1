"""`isoviz measure`: every measure of an array file, or of a model on a task, by layer and pooling."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isoviz.commands import arrays
from isoviz.commands.output import print_json, print_notes, print_table, progress_bar
from isoviz.errors import InputError

if TYPE_CHECKING:
    from isoviz.models.sources import ModelSource
    from isoviz.tasks.protocol import Task

LABELS = {
    "isoscore": "IsoScore",
    "isoscore_unbiased": "IsoScore, unbiased",
    "mean_cosine": "mean cosine",
    "participation_ratio": "participation ratio",
    "effective_rank": "effective rank",
    "twonn": "TwoNN dimension",
}
SAID_ELSEWHERE = {
    *LABELS, "cloud", "n", "d", "n_per_d", "ev", "isoscore_unbiased_interval", "sigma", "abs_correlation", "mean_norm",
    "outlier_dimensions", "warnings", "dropped", "twonn_points", "unbiased_points", "truncated",
    "by_layer", "output_embeddings", "as_weights",
}  # fmt: skip
"""What the text of a cloud has a line of its own for, or a note; everything else that is measured follows by its name."""
COLUMNS = ("layer", "pooling", "n", "IsoScore", "unbiased", "EV_1", "cosine", "PR", "eff. rank", "TwoNN")
MAX_NEIGHBOURS = 20_000
"""Points for TwoNN where there is one cloud only; the table takes fewer per cloud."""


def run(options: argparse.Namespace) -> int:
    """Measure and print; 0 when done."""
    if options.embeddings:
        return _measure_file(options)
    if options.as_weights:
        raise InputError(
            "as-weights: only with --embeddings (a model's output embeddings are measured anyway)", field="as-weights"
        )
    return _measure_model(options)


def _measure_file(options: argparse.Namespace) -> int:
    from isoviz.models.profile import measure

    points = arrays.read(options.embeddings)
    try:
        values = measure(points, max_neighbours=MAX_NEIGHBOURS)
        weights = _partition(points) if options.as_weights else None
    except ValueError as error:
        raise InputError(f"embeddings: {error}", field="embeddings") from None
    n, d = points.shape
    if 1 < n < d:
        values["warnings"].append(
            f"rows are points: {n} of them, {d} numbers each; transpose the array if not so meant"
        )
    document: dict[str, Any] = {"cloud": {"name": Path(options.embeddings).name}, **values}
    if weights is not None:
        document["as_weights"] = weights
    if options.json:
        print_json(document)
        return 0
    _print_cloud(document)
    if weights is not None:
        _print_partition("rows read as output vectors", weights)
    print_notes(values["warnings"])
    return 0


def _measure_model(options: argparse.Namespace) -> int:
    from isoviz import tasks
    from isoviz.models import folders, sources

    task = _task(options)
    source = sources.resolve(options.model)
    for field in ("max_eval", "max_length", "batch_size"):
        number = getattr(options, field)
        if number is not None and number < 1:
            raise InputError(f"{field}: must be at least 1 (got {number})", field=field)
    direction = task.checked_direction(options.direction) or None
    rows = tasks.load(task, options.data, direction)
    frames = {"train": rows.train, "validation": rows.validation, **rows.extra}
    if options.split not in frames:
        allowed = ", ".join(frames)
        raise InputError(f"split: no split '{options.split}' (allowed: {allowed})", field="split")
    frame = frames[options.split].iloc[: options.max_eval]

    from isoviz.models.extract import layer_views
    from isoviz.models.profile import entry, profile
    from isoviz.models.views import Pooling, poolings_of

    whole = options.layer is None and options.pooling is None
    texts = [frame[column].tolist() for column in task.inputs]
    by_layer: list[dict[str, Any]] = []
    with progress_bar() as progress:
        source = sources.fetch(source, progress)
        offered = poolings_of(folders.config_of(Path(source.location)) or {})
        pooling: Pooling = options.pooling or offered[0]
        views = layer_views(
            source,
            texts,
            poolings="all" if whole else (pooling,),
            layers="all" if whole else "last" if options.layer is None else [options.layer],
            max_length=options.max_length,
            allow_random=options.allow_random,
            batch_size=options.batch_size,
            direction=direction,
            progress=progress,
        )
        layer = views.depth if options.layer is None else options.layer
        if whole:
            by_layer = profile(views, split=options.split, progress=progress)
            headline = next(one for one in by_layer if (one["layer"], one["pooling"]) == (layer, pooling))
        else:
            headline = entry(views, layer, pooling, split=options.split, max_neighbours=MAX_NEIGHBOURS)
    where = "last layer" if options.layer is None else f"layer {layer}"
    cloud = {
        "name": f"{options.model} on {options.task} ({options.split}), {where}, {pooling}",
        "model": options.model,
        "task": options.task,
        "split": options.split,
        "layer": options.layer,
        "pooling": pooling,
        "model_fingerprint": source.fingerprint,
        "model_revision": source.revision,
        "data_fingerprint": rows.fingerprint,
        "data_revision": rows.revision,
        "texts": list(task.inputs),
    }
    document = {**{name: value for name, value in headline.items() if name not in cloud}, "cloud": cloud}
    weights = _output_embeddings(source) if whole else None
    if whole:
        document |= {"by_layer": by_layer, "output_embeddings": weights}
    if options.json:
        print_json(document)
        return 0
    if whole:
        commit = f" (commit {source.revision[:10]})" if source.revision else ""
        print(f"{options.model}{commit} on {options.task} ({options.split}), {views.rows} rows, d = {headline['d']}")
        print_table(COLUMNS, map(_table_row, by_layer))
        print()
    _print_cloud(document)
    if weights is not None:
        _print_partition("output embeddings", weights)
    print_notes([*views.warnings, *headline["warnings"]])
    return 0


def _task(options: argparse.Namespace) -> Task:
    """The task that the options name; own data by their columns, as for `train`."""
    from isoviz import tasks
    from isoviz.commands.train import own_columns
    from isoviz.tasks import own

    columns = own_columns(options)
    return tasks.get(options.task, own.completed(options.data, columns) if columns else None)


def _output_embeddings(source: ModelSource) -> dict[str, Any] | None:
    from isoviz.models.checkpoint import output_embeddings

    weights = output_embeddings(source)
    return None if weights is None else _partition(weights)


def _partition(weights: NDArray[Any]) -> dict[str, Any]:
    """I1 and I2 of W (N, d) as it is and divided by its root-mean-square row norm, for neither is free of scale."""
    from isoviz import metrics
    from isoviz.metrics.partition_function import Reading, partitions

    norms = np.asarray(metrics.row_norms(weights))
    plain, unit = (pair or (math.nan, math.nan) for pair in partitions(weights, [Reading(), Reading(scale_free=True)]))
    unit = plain if not norms.any() else unit
    return {
        "n": weights.shape[0],
        "d": weights.shape[1],
        "i1": plain[0],
        "i2": plain[1],
        "i1_unit": unit[0],
        "i2_unit": unit[1],
        "norm_mean": float(norms.mean()),
        "norm_min": float(norms.min()),
        "norm_max": float(norms.max()),
    }


def _print_cloud(document: Mapping[str, Any]) -> None:
    print(f"{document['cloud']['name']}: n = {document['n']} points, d = {document['d']} dimensions")
    for name, label in LABELS.items():
        ends = document.get(f"{name}_interval")
        interval = f" (95 % interval {_number(ends[0], '')} to {_number(ends[1], '')})" if ends else ""
        _print_line(label, _number(document[name], "undefined") + interval)
    if document["ev"]:
        _print_line("EV_1, EV_2, EV_3", ", ".join(f"{value:.4f}" for value in document["ev"][:3]))
    if sigma := document.get("sigma"):
        _print_line("σ min, median, max", ", ".join(_number(sigma[name], "") for name in ("min", "median", "max")))
    _print_line("mean |ρ|", _number(document["abs_correlation"], "undefined"))
    _print_line("‖mean activation‖", _number(document["mean_norm"], "undefined"))
    _print_line("outlier dimensions", _text(document["outlier_dimensions"]))
    for name, value in document.items():
        if name not in SAID_ELSEWHERE:
            _print_line(name.replace("_", " "), _text(value))


def _print_partition(what: str, weights: Mapping[str, Any]) -> None:
    print(f"{what}: N = {weights['n']} vectors, d = {weights['d']} dimensions")
    _print_line("I1, I2", f"{weights['i1']:.4g}, {weights['i2']:.4g}")
    _print_line("I1, I2, rms ‖w‖ = 1", f"{weights['i1_unit']:.4g}, {weights['i2_unit']:.4g}")
    norms = (weights[name] for name in ("norm_mean", "norm_min", "norm_max"))
    _print_line("‖w‖ mean, min, max", ", ".join(f"{value:.4g}" for value in norms))


def _print_line(label: str, value: str) -> None:
    print(f"  {label:<20} {value}")


def _table_row(one: Mapping[str, Any]) -> list[str]:
    first = one["ev"][0] if one["ev"] else None
    numbers = (one["isoscore"], one["isoscore_unbiased"], first, one["mean_cosine"])
    sizes = (one["participation_ratio"], one["effective_rank"], one["twonn"])
    return [
        str(one["layer"]),
        one["pooling"],
        str(one["n"]),
        *(_number(value, "–") for value in numbers),
        *("–" if value is None else f"{value:.1f}" for value in sizes),
    ]


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_text(part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value[:8])) + (", …" if len(value) > 8 else "") or "none"
    return _number(value, "undefined") if value is None or isinstance(value, float) else str(value)


def _number(value: float | None, nothing: str) -> str:
    if value is None:
        return nothing
    return f"{value:.4f}" if value == 0 or abs(value) >= 0.001 else f"{value:.2e}"

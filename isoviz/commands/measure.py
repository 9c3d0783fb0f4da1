"""`isoviz measure`: every measure of an array file, or of a model on a task, by layer and pooling."""

from __future__ import annotations

import argparse
import io
import json
import math
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isoviz import metrics
from isoviz.commands.options import add_own, whole
from isoviz.commands.output import (
    collect_warnings,
    print_json,
    print_notes,
    print_table,
    progress_bar,
    quiet_libraries,
)
from isoviz.errors import InputError, listed
from isoviz.metrics.measuring import applicable, measure_cloud, notes_of
from isoviz.metrics.protocol import Metric
from isoviz.metrics.record import CloudRecord
from isoviz.metrics.sample import Sample
from isoviz.metrics.summary import as_json

if TYPE_CHECKING:
    from isoviz.exploring.encoders import FinishedRun
    from isoviz.models.sources import ModelSource
    from isoviz.models.views import Pooling
    from isoviz.tasks.protocol import Task
    from isoviz.vectors import VectorSet

MOST_PAIRED = 20_000
"""Points for metrics over pairs where there is one cloud only; the table takes fewer per cloud."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    from isoviz.config import RunConfig

    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--embeddings", metavar="FILE", help="vectors: .npy, .npz, .safetensors, .parquet, .arrow, .csv, .tsv, .jsonl"
    )
    source.add_argument("--model", help="bundled model, local directory or hub id, which may end in @REVISION")
    parser.add_argument("--task", default="demo/acceptability")
    parser.add_argument("--data", metavar="DIR", help="the task's files; for --task own also one file")
    parser.add_argument("--direction", metavar="FROM-TO", help=RunConfig.model_fields["direction"].description)
    add_own(parser)
    parser.add_argument("--split", default="validation", metavar="NAME")
    parser.add_argument(
        "--layer", type=whole, metavar="N", help="one cloud: from 1, 0 is the embedding output (default: the last)"
    )
    parser.add_argument(
        "--pooling",
        choices=("sentence", "cls", "last", "mean", "tokens", "head"),
        help="one cloud (default: sentence for a sentence-transformers model, else cls, for a decoder last); without --layer and "
        "--pooling, a table of all layers and poolings too",
    )
    parser.add_argument(
        "--prompt", metavar="NAME", help="prompt of a sentence-transformers model (default: the model's)"
    )
    parser.add_argument(
        "--truncate-dim", type=whole, metavar="N", help="keep the first N dimensions of its sentence vectors"
    )
    parser.add_argument(
        "--column",
        metavar="NAME",
        help="the vectors in the file: a column of lists, dim_* or names with commas for one column per dimension, or an array",
    )
    parser.add_argument(
        "--labels",
        metavar="NAME",
        help="column of its labels, or a table with a column 'label': read-outs of labels too",
    )
    parser.add_argument(
        "--pairs",
        metavar="FILE",
        help="scored pairs of ids, or relevance of documents to queries; adds their read-outs",
    )
    parser.add_argument(
        "--as-weights", action="store_true", help="also I1 and I2, the file's rows read as output vectors"
    )
    parser.add_argument("--max-eval", type=whole, metavar="N", help="use the first N rows")
    parser.add_argument("--allow-random", action="store_true", help=RunConfig.model_fields["allow_random"].description)
    parser.add_argument(
        "--max-length", type=whole, default=128, metavar="N", help="tokens read of a row (default: 128)"
    )
    parser.add_argument("--batch-size", type=whole, default=64, metavar="N", help="rows per step (default: 64)")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(options: argparse.Namespace) -> int:
    """Measure and print; 0 when done."""
    if options.embeddings is not None:
        return _measure_file(options)
    for name in ("column", "labels", "pairs"):
        if getattr(options, name) is not None:
            raise InputError(f"{name}: only with --embeddings", field=name)
    if options.as_weights:
        raise InputError(
            "as-weights: only with --embeddings (a model's output embeddings are measured anyway)", field="as-weights"
        )
    return _measure_model(options)


def measured(options: dict[str, Any]) -> dict[str, Any]:
    """The document of `measure --json`, for `isoviz.jobs.guarded`; `options` replace the command line's defaults."""
    from isoviz.devices import available_cores

    quiet_libraries()
    collect_warnings()
    parser = argparse.ArgumentParser()
    add_options(parser)
    parsed = parser.parse_args(["--model", "", "--json"])
    if options["model"] is not None:
        import torch

        torch.set_num_threads(available_cores())  # the processes that read files have one
    with redirect_stdout(io.StringIO()) as printed:
        run(argparse.Namespace(**{**vars(parsed), **options}))
    return dict(json.loads(printed.getvalue()))


def _measure_file(options: argparse.Namespace) -> int:
    from isoviz.models.profile import MOST_PAIRED as MOST_PAIRED_OF_STREAMS
    from isoviz.models.profile import STREAM_ABOVE, measure
    from isoviz.vectors import arrays

    points, columns, vector_set = _points(options)
    try:
        most = MOST_PAIRED if points.size * 8 <= STREAM_ABOVE else MOST_PAIRED_OF_STREAMS
        record = measure(points, name=Path(options.embeddings).name, most=most)
        weights = _partition(points) if options.as_weights else None
        read_outs = _read_outs(vector_set) if vector_set is not None else {}
    except ValueError as error:
        arrays.check_finite(points, "embeddings")  # says where
        raise InputError(f"embeddings: {error}", field="embeddings") from None
    if 1 < record.n < record.d:
        turned = f"rows are points: {record.n} of them, {record.d} numbers each; transpose the array if its columns are the points"
        record = record.model_copy(update={"notes": (*record.notes, turned)})
    if options.json:
        cloud = {"name": record.cloud, **({"columns": columns} if columns else {})}
        document: dict[str, Any] = {"cloud": cloud, **as_json(record)}
        print_json({**document, **({"as_weights": weights} if weights else {}), **read_outs})
        return 0
    _print_cloud(record.cloud, record)
    if columns:
        _print_line("columns", listed(columns))
    for name, values in read_outs.items():
        _print_read_outs(name, values)
    if weights is not None:
        _print_partition("rows read as output vectors", weights)
    print_notes(notes_of(record))
    return 0


def _points(options: argparse.Namespace) -> tuple[NDArray[Any], list[str], VectorSet | None]:
    """The vectors in the file, the columns of a table with them, and their labels and pairs if read-outs are requested."""
    from isoviz import vectors

    if options.labels is None and options.pairs is None:
        return *vectors.reading.named_array(options.embeddings, options.column, "embeddings"), None
    labels = options.labels or ""
    file = Path(labels).suffix.lower() in vectors.reading.tables.SUFFIXES
    columns = vectors.Columns(points=options.column, label=None if file else options.labels)
    beside = labels if file else None
    vector_set = vectors.read(options.embeddings, columns, beside=beside, relations=options.pairs, field="embeddings")
    if options.labels is None:
        vector_set = replace(vector_set, columns=vector_set.columns.drop(columns="label", errors="ignore"))
    elif "label" not in vector_set.columns:
        raise InputError(
            f"labels: '{options.labels}' has no column 'label'"
            if file
            else f"labels: '{options.embeddings}' is an array without columns; name a table with a column 'label'",
            field="labels",
        )
    return vector_set.points, vector_set.facts.get("dimensions", []), vector_set


def _read_outs(vector_set: VectorSet) -> dict[str, dict[str, Any]]:
    """By what they need (labels, pairs, queries): how many there are, and the read-outs by slug."""
    from isoviz import readouts
    from isoviz.readouts.division import annotations_of
    from isoviz.readouts.image import Image

    row_annotations = annotations_of(vector_set)
    counts: dict[str, dict[str, Any]] = {}
    if row_annotations.labels is not None:
        counts["labels"] = {"classes": int(row_annotations.labels.codes.max()) + 1}
    if row_annotations.pairs is not None:
        counts["pairs"] = {"pairs": len(row_annotations.pairs.left)}
    if row_annotations.queries is not None:
        counts["queries"] = {
            "queries": len(row_annotations.queries.queries),
            "documents": len(row_annotations.queries.documents),
        }
    slugs = [slug for slug, readout in readouts.CATALOGUE.items() if readout.needs in counts]
    measured = readouts.measure(Image(vector_set.points), row_annotations, slugs)
    for slug, statistic in measured.items():
        counts[readouts.CATALOGUE[slug].needs][slug] = statistic.value
    return counts


def _print_read_outs(name: str, values: Mapping[str, Any]) -> None:
    from isoviz.readouts import CATALOGUE

    print(f"{name}: " + ", ".join(f"{value:,} {what}" for what, value in values.items() if what not in CATALOGUE))
    for slug, value in values.items():
        if slug in CATALOGUE:
            _print_line(CATALOGUE[slug].title, _number(value, "undefined"))


def _measure_model(options: argparse.Namespace) -> int:
    from isoviz import tasks
    from isoviz.exploring import encoders
    from isoviz.models import sources

    task = _task(options)
    source = encoders.resolve(options.model)
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

    from isoviz.models.extract import layer_views, offered_poolings, usual_pooling
    from isoviz.models.profile import profile
    from isoviz.models.profile import record as record_of

    all_clouds = options.layer is None and options.pooling is None
    columns = [frame[column].tolist() for column in task.inputs]
    by_layer: list[CloudRecord] = []
    head: CloudRecord | None = None
    with progress_bar() as progress, encoders.opened(options.model) as (encoder, run):
        if run is None:
            encoder = source = sources.fetch(encoder, progress)
        offered, _ = offered_poolings(encoder, len(columns))
        pooling: Pooling = options.pooling or _usual(options, offered, usual_pooling(encoder, len(columns)))
        read: tuple[Pooling, ...] = offered if all_clouds else (pooling,)
        if run is not None:  # the encoder's own head is not the run's
            columns = encoders.prefixed(columns, run.before)
            read = tuple(one for one in read if one != "head") or ("mean",)
            if pooling == "head":
                _check_head(options, run)
        views = layer_views(
            encoder,
            columns,
            poolings=read,
            layers="all" if all_clouds else "last" if options.layer is None else [options.layer],
            max_length=options.max_length,
            allow_random=options.allow_random,
            batch_size=options.batch_size,
            direction=direction,
            prompt=options.prompt,
            truncate=options.truncate_dim,
            progress=progress,
        )
        layer = views.depth if options.layer is None else options.layer
        if run is not None and (pooling == "head" or (all_clouds and run.scores_rows)):
            points = run.head_points(columns, views.max_length)
            place = {"layer": views.depth, "pooling": "head", "truncated": views.truncated}
            most = MOST_PAIRED if pooling == "head" else None
            head = measure_cloud(Sample(points), "head", split=options.split, where=place, most=most)
        if all_clouds:
            by_layer = [*profile(views, split=options.split, progress=progress), *([head] if head else [])]
            headline = next(one for one in by_layer if (one.layer, one.pooling) == (layer, pooling))
        elif head is not None:
            headline = head
        else:
            headline = record_of(views, layer, pooling, split=options.split, most=MOST_PAIRED)
        weights = _output_embeddings(source, run) if all_clouds else None
    where = "last layer" if options.layer is None else f"layer {layer}"
    name = f"{options.model} on {options.task} ({options.split}), {where}, {pooling}"
    cloud = {
        "name": name,
        "model": options.model,
        "task": options.task,
        "split": options.split,
        "layer": options.layer,
        "pooling": pooling,
        "prompt": options.prompt,
        "truncate_dim": options.truncate_dim,
        "model_fingerprint": source.fingerprint,
        "model_revision": source.revision,
        "data_fingerprint": rows.fingerprint,
        "data_revision": rows.revision,
        "texts": list(task.inputs),
    }
    if options.json:
        document = {**as_json(headline), "truncated": headline.truncated, "cloud": cloud}
        if all_clouds:
            lines = [_line_json(one) for one in by_layer]
            document |= {"by_layer": lines, "output_embeddings": weights}
        print_json(document, views.warnings)
        return 0
    if all_clouds:
        commit = f" (commit {source.revision[:10]})" if source.revision else ""
        print(f"{options.model}{commit} on {options.task} ({options.split}), {views.rows} rows, d = {headline.d}")
        shown = [metric for metric in _numbers() if any(metric.slug in one.readings for one in by_layer)]
        print_table(
            ("layer", "pooling", "n", *(metric.heading for metric in shown)),
            (_table_row(one, shown) for one in by_layer),
        )
        print()
    _print_cloud(name, headline)
    if weights is not None:
        _print_partition("output embeddings" if run is None else "output layer of the run's head", weights)
    print_notes([*views.warnings, *notes_of(headline)])
    return 0


def _usual(options: argparse.Namespace, offered: Sequence[Pooling], usual: Pooling) -> Pooling:
    """The pooling of one cloud where none is named; earlier layers have no sentence vectors."""
    if usual == "sentence" and options.layer is not None:
        return next(one for one in offered if one != "sentence")
    return usual


def _check_head(options: argparse.Namespace, run: FinishedRun) -> None:
    if options.layer is not None:
        raise InputError("layer: the head reads the last layer; omit --layer with --pooling head", field="layer")
    if not run.scores_rows:
        raise InputError(
            f"pooling: the head of {options.model} reads every token, not one vector per row; choose another pooling",
            field="pooling",
        )


def _line_json(record: CloudRecord) -> dict[str, Any]:
    where = {"cloud": record.cloud, "layer": record.layer, "pooling": record.pooling, "split": record.split}
    return {**where, **as_json(record), "truncated": record.truncated}


def _task(options: argparse.Namespace) -> Task:
    """The task that the options name; own data by their columns, as for `train`."""
    from isoviz import tasks
    from isoviz.commands.train import own_columns
    from isoviz.tasks import own

    columns = own_columns(options)
    return tasks.get(options.task, own.completed(options.data, columns) if columns else None)


def _output_embeddings(source: ModelSource, run: FinishedRun | None) -> dict[str, Any] | None:
    from isoviz.models.checkpoint import output_embeddings

    weights = output_embeddings(source) if run is None else run.model.output.weight.detach().float().cpu().numpy()
    return None if weights is None else _partition(weights)


def _partition(weights: NDArray[Any]) -> dict[str, Any]:
    """I1 and I2 of W (N, d) as it is and divided by its root-mean-square row norm, for neither is free of scale."""
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


def _numbers() -> list[Metric]:
    """The metrics that records of clouds hold as one number each."""
    shown = applicable("rows") + [metric for metric in applicable("tokens") if "rows" not in metric.kinds]
    places = {slug: place for place, slug in enumerate(metrics.catalogue())}
    return sorted((metric for metric in shown if metric.gives != "curve"), key=lambda metric: places[metric.slug])


def _print_cloud(name: str, record: CloudRecord) -> None:
    print(f"{name}: n = {record.n} points, d = {record.d} dimensions")
    for metric in _numbers():
        reading = record.reading(metric.slug)
        if reading is None:
            continue
        ends = record.interval(metric.slug)
        interval = f" (95 % interval {_number(ends[0], '')} to {_number(ends[1], '')})" if ends else ""
        _print_line(metric.number_title, _number(record.number(metric.slug), "undefined") + interval)
    if curve := record.curve("ev"):
        _print_line("EV_1, EV_2, EV_3", ", ".join(f"{value:.4f}" for value in curve[:3]))
    if record.dimensions:
        _print_line("σ min, median, max", ", ".join(_number(value, "") for value in record.dimensions.sigma))
        _print_line("‖mean activation‖", _number(record.dimensions.mean_norm, "undefined"))
        shown = record.dimensions.outliers
        named = ", ".join(map(str, shown[:8])) + (", …" if len(shown) > 8 else "")
        _print_line("rogue dimensions by mean", named or "none")


def _print_partition(what: str, weights: Mapping[str, Any]) -> None:
    print(f"{what}: N = {weights['n']} vectors, d = {weights['d']} dimensions")
    _print_line("I1, I2", f"{weights['i1']:.4g}, {weights['i2']:.4g}")
    _print_line("I1, I2, rms ‖w‖ = 1", f"{weights['i1_unit']:.4g}, {weights['i2_unit']:.4g}")
    norms = (weights[name] for name in ("norm_mean", "norm_min", "norm_max"))
    _print_line("‖w‖ mean, min, max", ", ".join(f"{value:.4g}" for value in norms))


def _print_line(label: str, value: str) -> None:
    print(f"  {label:<31} {value}")


def _table_row(record: CloudRecord, shown: Sequence[Metric]) -> list[str]:
    cells = []
    for metric in shown:
        value = record.number(metric.slug)
        cells.append("–" if value is None else f"{value:.1f}" if metric.decimals < 3 else _number(value, "–"))
    return [str(record.layer), record.pooling, str(record.n), *cells]


def _number(value: float | None, nothing: str) -> str:
    if value is None:
        return nothing
    return f"{value:.4f}" if value == 0 or abs(value) >= 0.001 else f"{value:.2e}"
